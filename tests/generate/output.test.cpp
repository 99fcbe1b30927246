// SPDX-License-Identifier: MIT
#include <decant/generate/output.hpp>

#include <vector>

#include "support/catch.hpp"

namespace output_tests {

using decant::finish_reason;
using decant::token_id;
using decant::detail::generation_output;
using ids = std::vector<token_id>;

/// A model of so many tokens that cannot do anything.
struct held {
  std::size_t tokens = 0, length = 0;
  void truncate(std::size_t count) { tokens = count; }
  [[nodiscard]] std::size_t size() const { return tokens; }
  [[nodiscard]] std::size_t sequence_length() const { return length; }
};

TEST_CASE("room is what limits leave, the nearer one", "[generate]") {
  generation_output output(ids{1, 2, 3}, {.max_new_tokens = 5, .context_length = 7, .seed = 1});
  CHECK(output.room() == 4);
  CHECK(output.append(4, nullptr)->finish == finish_reason::none);
  CHECK(output.room() == 3);
  generation_output by_length(ids{1}, {.max_new_tokens = 2, .seed = 1});
  CHECK(by_length.room() == 2);
  (void)by_length.append(1, nullptr);
  CHECK(!by_length.ended());
  CHECK(by_length.append(1, nullptr)->finish == finish_reason::length);
  CHECK(by_length.room() == 0);
  CHECK(by_length.ended());
  generation_output full(ids{1, 2, 3}, {.context_length = 2, .seed = 1});
  CHECK(full.room() == 0);
  CHECK(full.ended());
  CHECK(full.result().finish == finish_reason::context_full);
}

TEST_CASE("start keeps what is cached of the prompt, but for its last token", "[generate]") {
  for (const auto& [cached, kept] : {std::pair{0U, 0U}, {2U, 2U}, {3U, 2U}, {99U, 2U}}) {
    held model{10, 20};
    generation_output output(ids{1, 2, 3}, {.max_new_tokens = 100, .seed = 1, .cached = cached});
    output.start(model);
    CHECK(model.tokens == kept);
    CHECK(output.room() == 17);
  }
}

TEST_CASE("a failed row keeps the text that was held back", "[generate]") {
  generation_output output(
      ids{1}, {.stop_strings = {"xxx"}, .bytes = [](token_id) { return std::string_view("x"); }, .seed = 1});
  (void)output.append(1, nullptr);
  (void)output.append(1, nullptr);
  CHECK(output.result().text.empty());
  output.fail(decant::row_status::empty);
  CHECK(output.result().text == "xx");
  CHECK(output.ended());
}

TEST_CASE("padding is cut off where the vocabulary is known", "[generate]") {
  struct sized {
    std::size_t n;
    [[nodiscard]] std::size_t vocabulary_size() const { return n; }
  };
  std::vector<float> row(8);
  CHECK(decant::detail::without_padding(sized{5}, row).size() == 5);
  CHECK(decant::detail::without_padding(sized{0}, row).size() == 8);
  CHECK(decant::detail::without_padding(sized{9}, row).size() == 8);
}

}  // namespace output_tests
