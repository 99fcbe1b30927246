// SPDX-License-Identifier: MIT
#include <decant/speculative/coupled_verification.hpp>

#include <decant/speculative/recursive_rejection.hpp>

#include "speculative/exact.hpp"

namespace coupled_verification_tests {

using namespace exact;

/// Coupled verification in the form of a rule: the oracle draws each token from the target's law.
struct coupled {
  template <class Target>
  void operator()(const draft& drafted, Target&& target, oracle& decide, verdict& out) const {
    out.clear();
    const token_id token =
        decant::verify_coupled(drafted, [&](std::int32_t node) { return decide.draw(target(node)); }, out.path);
    decant::make_certain(out.rest, token);
    out.next = &out.rest;
  }
};

TEST_CASE("coupled verification is lossless for drafts of every mode: equality of fractions", "[speculative]") {
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    const model p = random_model(3, seed), q = random_model(3, seed + 100);
    for (const auto& children : std::vector<std::vector<std::size_t>>{{1}, {2}, {1, 1}, {2, 2}, {1, 1, 1}}) {
      for (const auto mode : {proposal::with_replacement, proposal::without_replacement, proposal::deterministic}) {
        CHECK(lossless(coupled{}, p, q, {children, mode}));
      }
    }
  }
}

TEST_CASE("for deterministic drafts it accepts what recursive rejection accepts, with one draw", "[speculative]") {
  for (std::uint32_t seed = 1; seed <= 6; ++seed) {
    const model p = random_model(3, seed), q = random_model(3, seed + 100);
    const shape tree{{2, 1}, proposal::deterministic};
    const round_law drawn = round_of(coupled{}, p, q, tree),
                    in_turn = round_of(decant::recursive_rejection{}, p, q, tree);
    CHECK(drawn.outputs == in_turn.outputs);
    CHECK(drawn.accepted == in_turn.accepted);
  }
}

TEST_CASE("the path is that of the tokens decided, and the last of them is returned", "[speculative]") {
  draft drafted;
  drafted.add(4);
  const auto second = drafted.add(7);
  const auto third = drafted.add(2, second);
  std::vector<std::size_t> path{9, 9};
  const tokens decided{7, 2, 5};
  std::size_t i = 0;
  std::vector<std::int32_t> asked;
  const auto decide = [&](std::int32_t node) { return asked.push_back(node), decided[i++]; };
  CHECK(decant::verify_coupled(drafted, decide, path) == 5);
  CHECK(path == std::vector<std::size_t>{static_cast<std::size_t>(second), static_cast<std::size_t>(third)});
  CHECK(asked == std::vector<std::int32_t>{no_parent, second, third});
  // Nothing can be drawn: nothing is accepted.
  CHECK(decant::verify_coupled(drafted, [](std::int32_t) { return decant::no_token; }, path) == decant::no_token);
  CHECK(path.empty());
}

}  // namespace coupled_verification_tests
