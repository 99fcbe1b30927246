// SPDX-License-Identifier: MIT
#include <decant/speculative/foreign_text.hpp>

#include <span>
#include <string_view>
#include <vector>

#include <decant/chain.hpp>
#include <decant/generate/stateless.hpp>
#include <decant/samplers/mirostat.hpp>
#include <decant/samplers/multinomial.hpp>

#include "speculative/two_alphabets.hpp"
#include "support/catch.hpp"

namespace foreign_text_tests {

using namespace decant;
using two_alphabets::ids;

/// Remembers what it was asked about, and prefers "a".
struct asked_model {
  ids held{};
  std::vector<ids> asked{};
  std::size_t limit = 100;
  std::vector<float> logits{0, 0, 1};

  std::span<const float> evaluate(std::span<const token_id> tokens) {
    held.insert(held.end(), tokens.begin(), tokens.end());
    asked.push_back(held);
    return logits;
  }
  [[nodiscard]] std::size_t size() const { return held.size(); }
  [[nodiscard]] std::size_t vocabulary_size() const { return 3; }
  [[nodiscard]] std::size_t sequence_length() const { return limit; }
  void truncate(std::size_t count) { held.resize(count); }
};

const auto as_it_is = [](std::span<const float> row) { return row; };

step_context context_of(const ids& target_tokens, std::size_t prompt_size) {
  return context_after(target_tokens, prompt_size, draw_stream(1));
}

TEST_CASE("a foreign text is the target's in the draft model's tokens", "[speculative]") {
  asked_model model;
  ids seen;
  std::size_t prompt = 0;
  const auto look = [&](candidates&, const step_context& context) {
    seen.assign(context.tokens.begin(), context.tokens.end());
    prompt = context.prompt_size;
  };
  detail::foreign_text text(model, look | multinomial{}, two_alphabets::to_draft());
  law out;
  const ids target{0, 1, 2, 1};  // a b ba b: ab b ab to the draft model
  text.begin(context_of(target, 2));
  REQUIRE(text.has_row());
  text.law_after(out, as_it_is);
  CHECK(seen == ids{0, 1, 0});
  CHECK(prompt == 1);
  CHECK(model.held == seen);
  CHECK(out.ids == ids{0, 1, 2});
  CHECK(text.appended().empty());

  text.append(2);
  text.append(1);
  text.law_after(out, [](std::span<const float> row) { return row.first(2); });
  CHECK(seen == ids{0, 1, 0, 2, 1});
  CHECK(prompt == 1);
  CHECK(out.ids == ids{0, 1});
  CHECK(ids(text.appended().begin(), text.appended().end()) == ids{2, 1});

  const ids shorter{0, 1, 0};  // a b a: ab a
  text.begin(context_of(shorter, 3));
  text.law_after(out, as_it_is);
  CHECK(seen == ids{0, 2});
  CHECK(prompt == 2);
  CHECK(model.held == seen);
  CHECK(text.appended().empty());
}

TEST_CASE("a foreign text has no row where there is no text, and none beyond the model's context", "[speculative]") {
  asked_model model;
  model.limit = 3;
  detail::foreign_text text(model, chain() | multinomial{}, two_alphabets::to_draft());
  text.begin(context_of({}, 0));
  CHECK(!text.has_row());
  const ids target{0, 1, 1};
  text.begin(context_of(target, 3));  // ab b
  CHECK(text.has_row());
  text.append(1);
  CHECK(text.has_row());
  text.append(1);
  CHECK(!text.has_row());
}

TEST_CASE("a prompt that alone is cut into more tokens than the text is no longer than it", "[speculative]") {
  asked_model model;
  std::size_t prompt = 99;
  const auto look = [&](candidates&, const step_context& context) { prompt = context.prompt_size; };
  const retokeniser merging{.bytes = [](token_id) { return std::string_view("a"); },
                            .encode = [](std::string_view text) { return text.size() < 2 ? ids{2, 2, 2} : ids{0}; }};
  detail::foreign_text text(model, look | multinomial{}, merging);
  const ids target{0, 1};
  text.begin(context_of(target, 1));
  law out;
  text.law_after(out, as_it_is);
  CHECK(prompt == 1);
}

TEST_CASE("a decoder with state writes no foreign text", "[speculative]") {
  asked_model model;
  using stateful = decltype(chain() | mirostat(2, 0.3));
  const auto make = [&] { detail::foreign_text<asked_model, stateful>(model, chain() | mirostat(2, 0.3), {}); };
  CHECK_THROWS_AS(make(), assertion_error);
}

}  // namespace foreign_text_tests
