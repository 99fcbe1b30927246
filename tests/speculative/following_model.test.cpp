// SPDX-License-Identifier: MIT
#include <decant/speculative/following_model.hpp>

#include <cstddef>
#include <span>
#include <vector>

#include "support/catch.hpp"

namespace following_model_tests {

using decant::token_id;
using ids = std::vector<token_id>;

/// Notes what it is given, and ends after 8 tokens.
struct noting_model {
  std::span<const float> evaluate(std::span<const token_id> tokens) {
    given.assign(tokens.begin(), tokens.end());
    held.insert(held.end(), tokens.begin(), tokens.end());
    return {};
  }
  [[nodiscard]] std::size_t size() const { return held.size(); }
  void truncate(std::size_t count) {
    REQUIRE(count <= held.size());
    held.resize(count);
  }
  [[nodiscard]] std::size_t vocabulary_size() const { return 2; }
  [[nodiscard]] std::size_t sequence_length() const { return 8; }
  ids held, given;
};

void evaluate(noting_model& model, std::span<const token_id> missing) { static_cast<void>(model.evaluate(missing)); }

TEST_CASE("a model follows a text at the cost of what differs", "[speculative]") {
  noting_model model;
  model.held = {7, 7};  // what it held before does not count
  decant::detail::following_model follower(model);
  for (const auto& [text, given] : {std::pair{ids{1, 2, 3}, ids{1, 2, 3}},
                                    {{1, 2, 3, 4}, {4}},
                                    {{1, 2, 3, 4}, {4}},  // the last is always evaluated: its row is wanted
                                    {{1, 2, 5}, {5}},
                                    {{1, 2}, {2}},
                                    {{3}, {3}}}) {
    evaluate(model, follower.follow(text));
    CHECK(model.given == given);
    CHECK(model.held == text);
  }
}

TEST_CASE("many tokens can be pending", "[speculative]") {
  noting_model model;
  decant::detail::following_model follower(model);
  evaluate(model, follower.follow(ids{1, 2, 3, 4}, 3));
  CHECK(model.given == ids{1, 2, 3, 4});
  evaluate(model, follower.follow(ids{1, 2, 3, 4, 5}, 3));
  CHECK(model.given == ids{3, 4, 5});
  model.truncate(1);  // the drafter took some back itself
  evaluate(model, follower.follow(ids{1, 2, 3, 4, 5}));
  CHECK(model.given == ids{2, 3, 4, 5});
  CHECK_THROWS_AS(follower.follow(ids{1}, 2), assertion_error);
}

TEST_CASE("room and padding", "[speculative]") {
  noting_model model;
  const decant::detail::following_model follower(model);
  CHECK(follower.fits(8));
  CHECK(!follower.fits(9));
  const std::vector<float> padded{1, 2, 3};
  CHECK(follower.trimmed(padded).size() == 2);
}

}  // namespace following_model_tests
