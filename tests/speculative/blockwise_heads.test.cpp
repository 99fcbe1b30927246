// SPDX-License-Identifier: MIT
#include <decant/speculative/blockwise_heads.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <decant/speculative/medusa.hpp>
#include <decant/speculative/tree_shape.hpp>

#include "toy_target.hpp"

namespace blockwise_heads_tests {

using decant::blockwise_heads;
using decant::draft;

static_assert(decant::DraftSource<blockwise_heads>);

/// A target whose heads know: head k says what the target will say k tokens on, greedily.
class knowing : public toy::target {
 public:
  using toy::target::target;

  [[nodiscard]] std::size_t head_count() const { return 3; }
  std::span<const float> head_row(std::size_t k, std::size_t i) {
    toy::tokens text = passed_.at(i);
    for (std::size_t step = 0; step < k; ++step) text.push_back(toy::argmax(row_after(text)));
    return row_after(text);
  }
  void score(std::span<const decant::token_id> more) {
    toy::target::score(more);
    passed_.clear();
    for (std::size_t i = 0; i < more.size(); ++i) {
      passed_.emplace_back(held().begin(), held().end() - static_cast<std::ptrdiff_t>(more.size() - 1 - i));
    }
  }
  void score(std::span<const decant::token_id> nodes, std::span<const std::int32_t> parents) {
    toy::target::score(nodes, parents);
    passed_.clear();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      passed_.push_back(parents[i] == decant::no_parent ? held() : passed_[static_cast<std::size_t>(parents[i])]);
      passed_.back().push_back(nodes[i]);
    }
  }

 private:
  std::vector<toy::tokens> passed_;
};

TEST_CASE("blockwise_heads: it is medusa with one pick a head", "[speculative]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    toy::target model(4, seed);
    blockwise_heads block;
    decant::medusa chain(decant::tree_shape::chain(3));
    model.score(toy::tokens{0, 2, 1});
    const std::vector<std::size_t> rows{0, 1, 2};
    block.observe(model, rows);
    chain.observe(model, rows);
    for (const std::size_t depth : {0U, 1U, 2U, 8U}) {
      draft a, b;
      block.propose(toy::request_after(toy::tokens{0, 2, 1, 3}, depth), a);
      chain.propose(toy::request_after(toy::tokens{0, 2, 1, 3}, depth), b);
      CHECK(std::ranges::equal(a.tokens(), b.tokens()));
      CHECK(a.is_chain());
      CHECK(a.size() == std::min<std::size_t>(depth, 3));
    }
  }
}

TEST_CASE("blockwise_heads: random heads are slower and no worse", "[speculative]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    toy::target model(4, seed);
    blockwise_heads drafter;
    const auto done = toy::greedy_rounds(model, drafter, {0, 1}, 30);
    CHECK(done.text == toy::greedy_text(model, {0, 1}, 30));
  }
}

TEST_CASE("blockwise_heads: heads that know write blocks of heads + 1 tokens", "[speculative]") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    knowing model(4, seed);
    blockwise_heads drafter;
    const auto done = toy::greedy_rounds(model, drafter, {0, 1}, 41);
    CHECK(done.text == toy::greedy_text(model, {0, 1}, 41));
    CHECK(done.accepted == done.proposed);
    CHECK(done.passes == 10);  // the prompt's pass wrote one token, these four each
  }
}

TEST_CASE("blockwise_heads: a path ends at a stop token, and where a head is not sure", "[speculative]") {
  toy::target model(4, 3);
  blockwise_heads drafter;
  model.score(toy::tokens{0, 2});
  drafter.observe(model, std::vector<std::size_t>{0, 1});
  draft all;
  drafter.propose(toy::request_after(toy::tokens{0, 2, 1}), all);
  REQUIRE(all.size() == 3);
  const toy::tokens text{0, 2, 1};
  auto request = toy::request_after(text);
  const toy::tokens stop{all.token(1)};
  request.stop_tokens = stop;
  draft out;
  drafter.propose(request, out);
  CHECK(out.size() == (all.token(0) == stop[0] ? 1 : 2));
  request.min_confidence = 1;
  out.clear();
  drafter.propose(request, out);
  CHECK(out.empty());
}

}  // namespace blockwise_heads_tests
