// SPDX-License-Identifier: MIT
// The golden numbers for the logits 2, 1, 0.5, 0, -1, -3: computed independently, in double. Held against them are the
// definitions in double that other tests use as their reference (to 1e-9) and the library (to what float allows for).
#include "processors/policies.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <decant/chain.hpp>
#include <decant/processors.hpp>
#include <decant/processors/green_list.hpp>
#include <decant/processors/tournament.hpp>
#include <decant/samplers/adaptive_p.hpp>
#include <decant/samplers/mirostat.hpp>
#include <decant/samplers/mirostat_v1.hpp>
#include <decant/testing/eager_row.hpp>

namespace methods_numbers_tests {

using namespace policies;
using decant::testing::eager_row;

constexpr double exact = 1e-9;
constexpr double entropy = 1.226783295532;

const law p{0.560893422, 0.206341159, 0.125152239, 0.075908670, 0.027925239, 0.003779270};
const row draft{1, 1.5F, 0, 0.5F, -0.5F, -2};
const law q{0.256670309, 0.423177799, 0.094423730, 0.155678412, 0.057270887, 0.012778862};

const auto nothing = [](candidates&, const step_context&) {};

eager_row eager(const row& logits = golden) { return eager_row(logits); }

tokens ids_of(const reference::logits& z) {
  tokens ids;
  for (std::size_t i = 0; i < z.size(); ++i) {
    if (z[i] != reference::minus_infinity) ids.push_back(static_cast<token_id>(i));
  }
  return ids;
}

const reference::logits wide = reference::widened(golden);

TEST_CASE("the laws of the target's row and the draft's") {
  CHECK(difference(reference::exact_law(golden), p) < exact);
  CHECK(difference(reference::exact_law(draft), q) < exact);
  CHECK(difference(eager().probabilities(), p) < exact);
  CHECK(difference(eager(draft).probabilities(), q) < exact);
  CHECK(difference(law_after(nothing, golden), p) < of_float);
  CHECK(difference(law_after(nothing, draft), q) < of_float);
  CHECK(difference(enumerated_law(nothing, golden), p) < of_float);
}

TEST_CASE("the entropy") {
  CHECK(reference::entropy(reference::exact_law(golden)) == Approx(entropy).margin(exact));
  CHECK(eager().entropy() == Approx(entropy).margin(exact));
  CHECK(ask(nothing, golden, {}, [](candidates& c) { return c.entropy(); }) == Approx(entropy).margin(exact));
  CHECK(entropy / std::log(2.0) == Approx(1.769874176710).margin(exact));
}

TEST_CASE("the law at temperatures") {
  const struct {
    double t;
    law expected;
  } cases[] = {{0.5, {0.829213426, 0.112221834, 0.041284106, 0.015187574, 0.002055415, 0.000037646}},
               {2, {0.363373174, 0.220396971, 0.171645334, 0.133677520, 0.081079515, 0.029827486}}};
  for (const auto& c : cases) {
    eager_row scaled = eager();
    scaled.affine(1 / c.t);
    CHECK(difference(scaled.probabilities(), c.expected) < exact);
    CHECK(difference(reference::exact_law(reference::temperature(wide, c.t)), c.expected) < exact);
    CHECK(difference(law_after(decant::temperature(c.t), golden), c.expected) < of_float);
  }
}

TEST_CASE("the sets of top_p and min_p") {
  const struct {
    double p;
    tokens kept;
  } nuclei[] = {{0.8, {0, 1, 2}}, {0.9, {0, 1, 2, 3}}, {0.95, {0, 1, 2, 3}}};
  for (const auto& c : nuclei) {
    eager_row cut = eager();
    cut.keep_mass(c.p);
    CHECK(cut.ids() == c.kept);
    CHECK(ids_of(reference::top_p(wide, c.p)) == c.kept);
    CHECK(survivors(decant::top_p(c.p), golden) == c.kept);
  }
  const struct {
    double p;
    tokens kept;
  } shares[] = {{0.1, {0, 1, 2, 3}}, {0.2, {0, 1, 2}}};
  for (const auto& c : shares) {
    eager_row cut = eager();
    cut.keep_above(cut.max() + std::log(c.p));
    CHECK(cut.ids() == c.kept);
    CHECK(ids_of(reference::min_p(wide, c.p)) == c.kept);
    CHECK(survivors(decant::min_p(c.p), golden) == c.kept);
  }
}

TEST_CASE("the distances and sets of typical sampling, which may leave out the argmax") {
  const law distances{0.648558926, 0.351441074, 0.851441074, 1.351441074, 2.351441074, 4.351441074};
  const auto all = eager().probabilities();
  for (std::size_t i = 0; i < distances.size(); ++i) {
    CHECK(std::abs(-std::log(all[i]) - eager().entropy()) == Approx(distances[i]).margin(exact));
  }
  const struct {
    double p;
    tokens kept;
  } cases[] = {{0.2, {1}}, {0.5, {0, 1}}, {0.9, {0, 1, 2, 3}}};
  for (const auto& c : cases) {
    eager_row cut = eager();
    cut.keep_mass_around(c.p, cut.log_sum() - cut.entropy());
    CHECK(cut.ids() == c.kept);
    CHECK(survivors(decant::typical(c.p), golden) == c.kept);
    CHECK(survivors(decant::typical(c.p, 1, decant::ties::keep), golden) == c.kept);
  }
}

TEST_CASE("the sets of the cutoffs") {
  const struct {
    double epsilon;
    tokens kept;
  } cases[] = {{0.05, {0, 1, 2, 3}}, {0.02, {0, 1, 2, 3, 4}}};
  for (const auto& c : cases) {
    for (const bool by_entropy : {false, true}) {
      eager_row cut = eager();
      const double lowered = by_entropy ? std::sqrt(c.epsilon) * std::exp(-cut.entropy()) : c.epsilon;
      cut.keep_above(cut.log_sum() + std::log(std::min(c.epsilon, lowered)));
      CHECK(cut.ids() == c.kept);
    }
    CHECK(survivors(decant::epsilon_cutoff(c.epsilon), golden) == c.kept);
    CHECK(survivors(decant::eta_cutoff(c.epsilon), golden) == c.kept);
  }
  CHECK(std::sqrt(0.02) * std::exp(-entropy) > 0.02);
}

TEST_CASE("the threshold and the set of top_a") {
  const auto all = eager().probabilities();
  CHECK(0.5 * all[0] * all[0] == Approx(0.157300716).margin(exact));
  CHECK(survivors(decant::top_a(0.5), golden) == tokens{0, 1});
  // Token 1, of probability 0.206341159, goes where the threshold passes it.
  const double border = 0.206341159 / (all[0] * all[0]);
  CHECK(survivors(decant::top_a(border - 1e-6), golden) == tokens{0, 1});
  CHECK(survivors(decant::top_a(border + 1e-6), golden) == tokens{0});
}

TEST_CASE("the curvatures and sets of tail-free sampling") {
  const law cumulated{0.827355134, 0.924040188, 0.927854092, 1};
  const auto all = eager().probabilities();  // descending, as the row is
  law curvature;
  double total = 0, sum = 0;
  for (std::size_t i = 0; i + 2 < all.size(); ++i) {
    curvature.push_back(std::abs(all[i] - 2 * all[i + 1] + all[i + 2]));
    total += curvature.back();
  }
  REQUIRE(curvature.size() == cumulated.size());
  for (std::size_t i = 0; i < cumulated.size(); ++i) {
    sum += curvature[i];
    CHECK(sum / total == Approx(cumulated[i]).margin(exact));
  }
  CHECK(survivors(decant::tail_free(0.9), golden) == tokens{0, 1});
  CHECK(survivors(decant::tail_free(0.95), golden) == tokens{0, 1, 2, 3});
}

TEST_CASE("the deviations, and the set of top_n_sigma") {
  CHECK(eager().sigma() == Approx(1.592081097879).margin(exact));
  CHECK(ask(nothing, golden, {}, [](candidates& c) { return c.sigma(); }) == Approx(1.592081097879).margin(exact));
  CHECK(eager().sigma() * std::sqrt(6.0 / 5) == Approx(1.744037461371).margin(exact));
  eager_row cut = eager();
  cut.keep_above(cut.max() - cut.sigma());
  CHECK(cut.ids() == tokens{0, 1, 2});
  CHECK(survivors(decant::top_n_sigma(1), golden) == tokens{0, 1, 2});
}

TEST_CASE("the thresholds and sets of p-less sampling") {
  double collision = 0;
  for (const double x : eager().probabilities()) collision += x * x;
  CHECK(collision == Approx(0.379397416250).margin(exact));
  CHECK((6 * collision - 1) / 5 == Approx(0.255276899500).margin(exact));
  CHECK(survivors(decant::p_less(), golden) == tokens{0});
  CHECK(survivors(decant::p_less_norm(), golden) == tokens{0});
}

TEST_CASE("the logits of the quadratic transformation") {
  const row expected{2, 1.7F, 1.15625F, 0.2F, -3.4F, -20.5F};
  const row logits = logits_after(decant::quadratic(0.3, 2), golden);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(static_cast<double>(logits[i]) == Approx(static_cast<double>(expected[i])).epsilon(1e-6));
  }
}

TEST_CASE("the temperatures that follow the entropy") {
  CHECK(0.5 + eager().entropy() / std::log(6.0) == Approx(1.184680793712).margin(exact));
  CHECK(std::pow(0.8, 1 / eager().entropy()) == Approx(0.833690365650).margin(exact));
  ask(nothing, golden, {}, [](candidates& c) {
    CHECK(decant::dynamic_temperature(0.5, 1.5).temperature_for(c) == Approx(1.184680793712).margin(exact));
    CHECK(decant::edt(1, 1).temperature_for(c) == Approx(0.833690365650).margin(exact));
    return 0;
  });
}

/// What a sampler draws from, as a processor.
template <class S>
auto narrowed(S sampler) {
  return [sampler](candidates& c, const step_context& context) { sampler.narrow(c, context); };
}

TEST_CASE("mirostat's numbers") {
  ask(nothing, golden, {}, [](candidates& c) {
    const double exponent = decant::detail::zipf_exponent(c.descending(6));
    CHECK(exponent == Approx(2.007657016368).margin(exact));
    CHECK(decant::detail::mirostat_count(exponent, 2, 6) == Approx(2.189691177396).margin(exact));
    return 0;
  });
  CHECK(survivors(narrowed(decant::mirostat(1)), golden) == tokens{0});  // mu = 2 tau
}

TEST_CASE("the law of adaptive_p at its first step") {
  const law expected{0.026052698, 0.707972422, 0.174008720, 0.061024433, 0.019924496, 0.011017232};
  reference::logits z;
  for (const double x : eager().probabilities()) {
    const double d = std::abs(x - 0.3) / 0.3;
    z.push_back(5 - 10 * d * d / (1 + d));
  }
  CHECK(difference(reference::exact_law(z), expected) < exact);
  CHECK(difference(law_after(narrowed(decant::adaptive_p(0.3)), golden), expected) < of_float);
}

TEST_CASE("the increments of confidence") {
  const law increments{0.222871419, 0.044907507, 0.024432381, 0.017307366, 0.005800533};
  const auto all = eager().probabilities();
  // Confidence of the first k: 1 - H / ln n of the law in which what remains is shared equally.
  const auto confidence = [&](std::size_t k) {
    double h = 0, rest = 1;
    for (std::size_t i = 0; i < k; ++i) h -= all[i] * std::log(all[i]), rest -= all[i];
    if (k < all.size()) h -= rest * std::log(rest / static_cast<double>(all.size() - k));
    return 1 - h / std::log(6.0);
  };
  double sum = 0;
  for (std::size_t k = 0; k < increments.size(); ++k) {
    const double growth = confidence(k + 1) - confidence(k);
    sum += growth;
    CHECK(growth == Approx(increments[k]).margin(exact));
    CHECK(survivors(decant::confidence_increment(increments[k] - 1e-8), golden).size() == k + 1);
  }
  CHECK(sum == Approx(0.315319206288).margin(exact));
  CHECK(sum == Approx(1 - entropy / std::log(6.0)).margin(exact));
}

TEST_CASE("the logits under a repetition penalty") {
  const tokens text{0, 4, 5};
  const law expected{5.0 / 3, 1, 0.5, 0, -1.2, -3.6};
  CHECK(difference(reference::repetition_penalty(wide, text, 1.2), expected) < exact);
  const row logits = logits_after(decant::repetition_penalty(1.2), golden, {text});
  CHECK(difference(law(logits.begin(), logits.end()), expected) < of_float);
}

TEST_CASE("the law under a green list") {
  const law expected{0.766454576, 0.038159526, 0.171019132, 0.014038105, 0.005164330, 0.005164330};
  const auto green = [](token_id id) { return id == 0 || id == 2 || id == 5; };
  reference::logits z = wide;
  for (const std::size_t id : {0U, 2U, 5U}) z[id] += 2;
  CHECK(difference(reference::exact_law(z), expected) < exact);
  const auto raise = [&](candidates& c, const step_context&) { decant::green_list_edit().raise(c, 2, green); };
  CHECK(difference(law_after(raise, golden), expected) < of_float);
}

TEST_CASE("the law of a tournament of one layer") {
  const law expected{0.734868578, 0.064001883, 0.163971344, 0.023544977, 0.008661713, 0.004951506};
  const std::vector<std::uint64_t> bits{1, 0, 1, 0, 0, 1};
  const auto all = eager().probabilities();
  double ones = 0;
  for (std::size_t i = 0; i < all.size(); ++i) ones += bits[i] == 1 ? all[i] : 0;
  law by_formula, by_library = all;
  for (std::size_t i = 0; i < all.size(); ++i) {
    by_formula.push_back(all[i] * (1 + static_cast<double>(bits[i]) - ones));
  }
  CHECK(difference(by_formula, expected) < exact);
  decant::tournament_layer(by_library, bits, 0);
  CHECK(difference(by_library, expected) < exact);
}

}  // namespace methods_numbers_tests
