// SPDX-License-Identifier: MIT
#include <decant/processors/green_list.hpp>

#include "processors/policies.hpp"

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>

namespace green_list_tests {

using namespace policies;
using decant::green_evidence;
using decant::green_list_edit;
using decant::green_size;
using decant::on_green_list;

/// A processor that treats these as the green list.
struct with_list {
  tokens list;
  double bias = 2;
  bool hard = false;

  void operator()(candidates& row, const step_context&) const {
    green_list_edit edit;
    const auto green = [&](token_id id) { return std::ranges::find(list, id) != list.end(); };
    if (row.status() != row_status::ok) return;
    if (hard) return edit.keep(row, green);
    edit.raise(row, bias, green);
  }
};

TEST_CASE("the size of a green list is rounded down", "[processors]") {
  CHECK(green_size(0.25, 16) == 4);
  CHECK(green_size(0.1, 64) == 6);
  CHECK(green_size(0.1, 8) == 0);
  CHECK(green_size(0.1, 10) == 1);
  CHECK(green_size(0.5, 151'937) == 75'968);
  CHECK(green_size(0.999, 1) == 0);
}

TEST_CASE("a green list holds exactly so many ids, whatever the seed", "[processors]") {
  for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{64}, std::size_t{1000}}) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      for (const double fraction : {0.01, 0.25, 0.5, 0.9}) {
        const std::size_t green = green_size(fraction, size);
        std::size_t found = 0;
        for (std::size_t id = 0; id < size; ++id) found += on_green_list(static_cast<token_id>(id), size, green, seed);
        CHECK(found == green);
      }
    }
  }
}

TEST_CASE("raised green tokens have the golden law of methods.md N", "[processors]") {
  const law expected{0.766454576, 0.038159526, 0.171019132, 0.014038105, 0.005164330, 0.005164330};
  CHECK(difference(law_after(with_list{{0, 2, 5}}, golden), expected) < of_float);
  CHECK(difference(enumerated_law(with_list{{0, 2, 5}}, golden), expected) < of_float);
}

TEST_CASE("raising multiplies by e^bias on the list, on what a chain has left", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    row logits = random_row(90, seed);
    logits[7] = gone;
    tokens list;
    for (token_id id = 0; id < 90; id += 4) list.push_back(id);
    for (const double bias : {0.5, 2.0, 30.0}) {
      law expected =
          reference::exact_law(reference::top_k(reference::temperature(reference::widened(logits), 0.6), 30));
      double sum = 0;
      for (std::size_t i = 0; i < expected.size(); i += 4) expected[i] *= std::exp(bias);
      for (const double p : expected) sum += p;
      for (double& p : expected) p /= sum;
      const auto policy = decant::temperature(0.6) | decant::top_k(30) | decant::chain(with_list{list, bias});
      CHECK(difference(law_after(policy, logits), expected) < of_float);
    }
  }
}

TEST_CASE("a bias keeps the largest logits finite", "[processors]") {
  const float huge = std::numeric_limits<float>::max();
  CHECK(logits_after(with_list{{0}, 1e30}, {huge, 0, gone}) == row{huge, 0, gone});
}

TEST_CASE("keeping leaves the green tokens, and all where none is left", "[processors]") {
  CHECK(survivors(with_list{{1, 4}, 0, true}, golden) == tokens{1, 4});
  CHECK(survivors(with_list{{1, 3}, 0, true}, {1, gone, 2, 3}) == tokens{3});
  CHECK(survivors(with_list{{1}, 0, true}, {1, gone, 2}) == tokens{0, 2});
  CHECK(survivors(with_list{{}, 0, true}, golden).size() == golden.size());
  CHECK(same_bits(logits_after(with_list{{1, 4}, 0, true}, {1, 2, 3, 4, 5}), {gone, 2, gone, gone, 5}));
}

TEST_CASE("a list that has been made holds the tokens that are on it one by one", "[processors]") {
  decant::green_list list;
  for (const std::size_t size : {1UL, 50UL, 64UL, 1000UL, 32'000UL, 1000UL}) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      for (const double fraction : {0.25, 0.5, 0.9}) {
        const std::size_t green = decant::green_size(fraction, size);
        list.make(size, green, seed);
        bool alike = true;
        for (token_id id = 0; static_cast<std::size_t>(id) < size; ++id) {
          alike = alike && list(id) == decant::on_green_list(id, size, green, seed);
        }
        CHECK(alike);
      }
    }
  }
}

TEST_CASE("green_evidence is the z-score of the paper", "[processors]") {
  const auto found = green_evidence(100, 60, 0.25);
  CHECK(found.z == Approx((60 - 25) / std::sqrt(100 * 0.25 * 0.75)).epsilon(1e-12));
  CHECK(found.score == 60);
  CHECK(found.p_value < 1e-14);
  CHECK(green_evidence(10, 0, 0).p_value == 1);
  CHECK(green_evidence(0, 0, 0.5).p_value == 1);
}

}  // namespace green_list_tests
