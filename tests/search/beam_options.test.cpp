// SPDX-License-Identifier: MIT
#include <decant/search/beam_options.hpp>

#include "support/catch.hpp"

#include <cmath>
#include <limits>
#include <string>

namespace beam_options_test {

using decant::beam_options;

std::string broken(const beam_options& options) {
  const auto fault = options.validate();
  return fault ? fault->text() : "none";
}

TEST_CASE("every rule names what breaks it", "[search][beam_options]") {
  CHECK(broken({}) == "none");
  CHECK(broken({.width = 0}) == "beam_search: width = 0 must be >= 1");
  CHECK(broken({.width = 2, .n_best = 3}) == "beam_search: n_best = 3 must lie in [1, width]");
  CHECK(broken({.n_best = 0}) == "beam_search: n_best = 0 must lie in [1, width]");
  CHECK(broken({.max_new_tokens = 0}) == "beam_search: max_new_tokens = 0 must be >= 1");
  CHECK(broken({.max_new_tokens = 2, .min_new_tokens = 3}) ==
        "beam_search: min_new_tokens = 3 must be <= max_new_tokens");
  CHECK(broken({.patience = 0}) == "beam_search: patience = 0 must be > 0");
  CHECK(broken({.patience = std::nan("")}) == "beam_search: patience = nan must be > 0");
  CHECK(broken({.patience = std::numeric_limits<double>::infinity()}) == "none");
  CHECK(broken({.sampling = decant::beam_sampling{.draws = 0}}) == "beam_search: draws = 0 must be >= 1");
  CHECK(broken({.coverage = {.beta = -1}}) == "coverage: beta = -1 must be a finite number >= 0");
  CHECK(broken({.diversity = {.groups = 3}}) == "diverse_beam_search: groups = 3 must divide the width");
}

TEST_CASE("fates and ends have words", "[search][beam_options]") {
  using decant::candidate_fate;
  using decant::search_end;
  CHECK(std::string(to_string(candidate_fate::live)) == "live");
  CHECK(std::string(to_string(candidate_fate::finished)) == "finished");
  CHECK(std::string(to_string(candidate_fate::outranked)) == "outranked");
  CHECK(std::string(to_string(candidate_fate::ended_low)) == "ended too low");
  CHECK(std::string(to_string(candidate_fate::not_kept)) == "not kept");
  CHECK(std::string(to_string(candidate_fate::unfulfilled)) == "constraint not fulfilled");
  CHECK(std::string(to_string(search_end::none)) == "not ended");
  CHECK(std::string(to_string(search_end::enough)) == "enough finished");
  CHECK(std::string(to_string(search_end::settled)) == "settled");
  CHECK(std::string(to_string(search_end::length)) == "length");
  CHECK(std::string(to_string(search_end::exhausted)) == "exhausted");
  CHECK(std::string(to_string(search_end::cancelled)) == "cancelled");
}

}  // namespace beam_options_test
