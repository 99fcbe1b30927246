// SPDX-License-Identifier: MIT
#include <decant/speculative/lossless_verification.hpp>

#include <decant/speculative/coupled_verification.hpp>
#include <decant/speculative/lenient_verification.hpp>
#include <decant/speculative/speculative_cascade.hpp>
#include <decant/speculative/typical_acceptance.hpp>

#include "speculative/exact.hpp"

namespace lossless_verification_tests {

using namespace exact;
using decant::is_lossless;

TEST_CASE("chains are verified as blocks, trees by traversal", "[speculative]") {
  const decant::lossless_verification rule;
  const model p = random_model(3, 4), q = random_model(3, 9);
  CHECK(round_of(rule, p, q, {{1, 1}}).accepted == round_of(decant::block_verification{}, p, q, {{1, 1}}).accepted);
  const shape tree{{2, 1}, proposal::without_replacement};
  CHECK(round_of(rule, p, q, tree).accepted == round_of(decant::traversal_verification{}, p, q, tree).accepted);
}

TEST_CASE("rules say whether they are lossless", "[speculative]") {
  static_assert(is_lossless<decant::lossless_verification>);
  static_assert(is_lossless<decant::block_verification>);
  static_assert(is_lossless<decant::coupled_verification>);
  static_assert(!is_lossless<decant::lenient_verification>);
  static_assert(!is_lossless<decant::typical_acceptance>);
  static_assert(!is_lossless<decant::speculative_cascade<>>);
  SUCCEED();
}

}  // namespace lossless_verification_tests
