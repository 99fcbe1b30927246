// SPDX-License-Identifier: MIT
#include <decant/samplers.hpp>

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <decant/chain.hpp>
#include <decant/processors.hpp>

#include "support/catch.hpp"

// Whatever ends a chain, on vocabularies of every size: a bad row gives its status and no token, the one token that is
// left is taken, and what lies in the padding does not exist.

namespace bad_rows_test {

using namespace decant;

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float infinite = std::numeric_limits<float>::infinity();

std::vector<any_sampler> samplers() {
  return {greedy{},
          multinomial{},
          gumbel{},
          mirostat(5, 0.1),
          mirostat_v1(5, 0.1),
          adaptive_p(0.5),
          arithmetic_sampling(0.3, 1, 4)};
}

std::vector<std::size_t> sizes() {
  std::vector<std::size_t> all{32'001, 151'937};
  for (std::size_t size = 1; size <= 70; ++size) all.push_back(size);
  return all;
}

/// Every place of a small row; the ends and the middle of a large one.
std::vector<std::size_t> places(std::size_t size) {
  if (size > 70) return {0, size / 2, size - 1};
  std::vector<std::size_t> all;
  for (std::size_t place = 0; place < size; ++place) all.push_back(place);
  return all;
}

std::vector<float> ordinary_row(std::size_t size) {
  std::vector<float> row(size);
  for (std::size_t i = 0; i < size; ++i) row[i] = static_cast<float>(i * 7 % 13) / 4;
  return row;
}

const std::vector<token_id> none;
const step_context context = context_after(none, 0, draw_stream(3));

template <class D>
void check_decoder(const D& decoder) {
  INFO(decoder.describe());
  for (const std::size_t size : sizes()) {
    INFO("vocabulary of " << size);
    D fresh = decoder;
    const auto outcome = [&](std::vector<float>& row) {
      const step_outcome got = fresh.try_step(row, context);
      fresh.reset();
      return got;
    };
    const auto check_bad = [&](std::vector<float> row, row_status why) {
      const step_outcome got = outcome(row);
      CHECK(got.token == no_token);
      CHECK(got.status == why);
    };
    check_bad(std::vector<float>(size, gone), row_status::empty);
    for (const std::size_t place : places(size)) {
      for (const float bad : {nan_value, infinite}) {
        std::vector<float> row = ordinary_row(size);
        row[place] = bad;
        check_bad(std::move(row), row_status::not_finite);
        std::vector<float> alone(size, gone);
        alone[place] = bad;
        check_bad(std::move(alone), row_status::not_finite);
      }
      std::vector<float> one(size, gone);
      one[place] = -7;
      CHECK(outcome(one).token == static_cast<token_id>(place));
    }
    std::vector<float> padded = ordinary_row(size);
    const step_outcome whole = outcome(padded);
    CHECK(whole.status == row_status::ok);
    padded.insert(padded.end(), {nan_value, infinite, 1e30F});
    fresh.reset();
    CHECK(fresh.try_step(std::span(padded).first(size), context).token == whole.token);
  }
  std::vector<float> empty;
  D fresh = decoder;
  CHECK_THROWS_AS(fresh.try_step(empty, context), assertion_error);
}

TEST_CASE("every sampler alone answers a bad row with its status, at every size of vocabulary", "[chain]") {
  for (const any_sampler& sampler : samplers()) check_decoder(chain() | sampler);
}

TEST_CASE("every sampler behind a chain answers a bad row with its status, at every size of vocabulary", "[chain]") {
  for (const any_sampler& sampler : samplers()) {
    check_decoder(repetition_penalty(1.2) | top_k(40) | top_p(0.95) | min_p(0.05) | temperature(0.8) | sampler);
  }
}

}  // namespace bad_rows_test
