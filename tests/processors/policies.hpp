// SPDX-License-Identifier: MIT
#pragma once

// What the tests of processors and samplers share: rows, values at the borders, and questions asked of a policy.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <decant/chain/any.hpp>
#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/core/errors.hpp>
#include <decant/samplers/multinomial.hpp>
#include <decant/testing/check.hpp>
#include <decant/testing/counting_allocator.hpp>
#include <decant/testing/enumerate.hpp>
#include <decant/testing/reference_law.hpp>

#include "support/catch.hpp"

namespace policies {

using decant::any_processor;
using decant::candidates;
using decant::context_after;
using decant::draw_stream;
using decant::gone;
using decant::no_token;
using decant::row_status;
using decant::step_context;
using decant::token_id;
namespace reference = decant::testing::reference;

using row = std::vector<float>;
using tokens = std::vector<token_id>;
using law = std::vector<double>;

inline constexpr float nan_float = std::bit_cast<float>(0x7FC00000U);
inline constexpr float infinite_float = std::bit_cast<float>(0x7F800000U);
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double denormal = std::numeric_limits<double>::denorm_min();
inline constexpr double largest = std::numeric_limits<double>::max();

/// The row.
inline const row golden{2, 1, 0.5F, 0, -1, -3};

/// The logits of these probabilities.
inline row logs(const law& probabilities) {
  row out;
  for (const double p : probabilities) out.push_back(p > 0 ? static_cast<float>(std::log(p)) : gone);
  return out;
}

/// A row such as a model gives: few large logits, a long tail.
inline row random_row(std::size_t size, std::uint64_t seed) {
  const draw_stream draws(seed);
  row out;
  for (std::size_t i = 0; i < size; ++i) {
    out.push_back(static_cast<float>(1.5 * draws.gumbel(decant::purpose::user, static_cast<token_id>(i)) - 1));
  }
  return out;
}

struct past {
  tokens text{};
  std::size_t prompt = 0;
};

/// Binds a row, applies the policy and asks something of what is left.
template <class F>
auto ask(any_processor policy, const row& logits, const past& before, F question) {
  candidates c;
  c.bind(std::span<const float>(logits));
  policy(c, context_after(before.text, before.prompt, draw_stream(1)));
  return question(c);
}

inline tokens survivors(any_processor policy, const row& logits, const past& before = {}) {
  return ask(std::move(policy), logits, before, [](candidates& c) {
    tokens ids;
    if (c.status() == row_status::ok) c.visit([&](token_id id, float) { ids.push_back(id); });
    return ids;
  });
}

inline row logits_after(any_processor policy, const row& logits, const past& before = {}) {
  return ask(std::move(policy), logits, before, [&](candidates& c) {
    row out;
    for (std::size_t i = 0; i < logits.size(); ++i) out.push_back(c.logit(static_cast<token_id>(i)));
    return out;
  });
}

/// Probabilities of all ids; all 0 on a bad row.
inline law law_after(any_processor policy, const row& logits, const past& before = {}) {
  return ask(std::move(policy), logits, before, [&](candidates& c) {
    law out(logits.size());
    const decant::law left = c.probabilities();
    for (std::size_t i = 0; i < left.size(); ++i)
      out[static_cast<std::size_t>(left.ids[i])] = left.weights[i] / left.total;
    return out;
  });
}

inline row_status status_after(any_processor policy, const row& logits, const past& before = {}) {
  return ask(std::move(policy), logits, before, [](candidates& c) { return c.status(); });
}

/// Tokens drawn plainly from what the policy leaves, over seeds.
inline tokens drawn_after(any_processor policy, const row& logits, std::size_t count = 50, const past& before = {}) {
  tokens out;
  candidates c;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    c.bind(std::span<const float>(logits));
    const step_context context = context_after(before.text, before.prompt, draw_stream(seed));
    policy(c, context);
    out.push_back(c.draw(context.draws));
  }
  return out;
}

/// The law by enumeration of every decision: what drawing really does.
inline law enumerated_law(any_processor policy, const row& logits, const past& before = {}) {
  const auto exact = decant::testing::enumerate_law([&](decant::decision_hook& hook) {
    candidates c;
    c.bind(std::span<const float>(logits));
    const step_context context = context_after(before.text, before.prompt, draw_stream(1).with_hook(&hook));
    policy(c, context);
    return decant::multinomial{}(c, context);
  });
  law out(logits.size());
  for (const auto& [token, p] : exact) {
    if (token >= 0) out[static_cast<std::size_t>(token)] = p;
  }
  return out;
}

inline double difference(const law& a, const law& b) {
  if (a.size() != b.size()) return infinity;
  double largest_difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest_difference = std::max(largest_difference, std::abs(a[i] - b[i]));
  return largest_difference;
}

/// What float weights allow for.
inline constexpr double of_float = 1e-6;

inline bool same_bits(const row& a, const row& b) {
  return std::ranges::equal(
      a, b, [](float x, float y) { return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y); });
}

/// A text that repeats itself, with ids below `vocabulary`.
inline past some_past(std::size_t vocabulary) {
  past before{{}, 3};
  for (const std::size_t x : {5U, 1U, 8U, 5U, 1U, 30U, 2U, 5U, 1U})
    before.text.push_back(static_cast<token_id>(x % vocabulary));
  return before;
}

/// The identity, bit for bit, also in what is drawn: over all sizes to 70, with and without gone tokens.
inline void check_identity(any_processor policy) {
  INFO(decant::describe(policy));
  const auto nothing = [](candidates&, const step_context&) {};
  for (std::size_t size = 1; size <= 70; ++size) {
    row logits = random_row(size, size);
    if (size > 2) logits[size / 2] = gone;
    logits[0] = -0.0F;
    const past before = some_past(size);
    CHECK(same_bits(logits_after(policy, logits, before), logits));
    CHECK(drawn_after(policy, logits, 20, before) == drawn_after(nothing, logits, 20, before));
  }
  const row large = random_row(9000, 3);
  CHECK(same_bits(logits_after(policy, large, some_past(9000)), large));
  CHECK(drawn_after(policy, large, 10, some_past(9000)) == drawn_after(nothing, large, 10, some_past(9000)));
}

/// Works on every size of vocabulary up to 70 and on those of real models: something is left, nothing outside, the law
/// sums to 1, a mutable row comes back.
inline void check_sizes(any_processor policy, bool may_empty = false) {
  INFO(decant::describe(policy));
  std::vector<std::size_t> sizes{32'001, 151'937};
  for (std::size_t size = 1; size <= 70; ++size) sizes.push_back(size);
  candidates c;
  for (const std::size_t size : sizes) {
    INFO("vocabulary of " << size);
    const row logits = random_row(size, 7 * size);
    row edited = logits;
    past before = some_past(size);
    before.text.push_back(static_cast<token_id>(size - 1));
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const step_context context = context_after(before.text, before.prompt, draw_stream(seed));
      c.bind(std::span<float>(edited));
      policy(c, context);
      const token_id token = c.draw(context.draws);
      if (c.status() == row_status::empty) {
        CHECK(may_empty);
        CHECK(token == no_token);
      } else {
        REQUIRE(token >= 0);
        REQUIRE(static_cast<std::size_t>(token) < size);
        CHECK(c.contains(token));
        const decant::law left = c.probabilities();
        double sum = 0;
        for (const double w : left.weights) sum += w / left.total;
        CHECK(sum == Approx(1).epsilon(1e-9));
        CHECK(left.probability(token) > 0);
      }
      c.release();
      CHECK(same_bits(edited, logits));
    }
  }
}

/// Bad rows stay bad and say why; a row with one token keeps it.
inline void check_bad_rows(any_processor policy, bool may_empty = false) {
  INFO(decant::describe(policy));
  for (const std::size_t size : {1U, 2U, 6U, 65U, 32'001U, 151'937U}) {
    INFO("vocabulary of " << size);
    const past before = some_past(size);
    CHECK(status_after(policy, row(size, gone), before) == row_status::empty);
    CHECK(drawn_after(policy, row(size, gone), 3, before) == tokens(3, no_token));
    // Every place of a small row; the ends and the middle of a large one.
    const std::size_t stride = size > 100 ? size / 2 : 1;
    for (std::size_t place = 0; place < size; place += stride) {
      row one(size, gone);
      one[place] = -7;
      const tokens left = survivors(policy, one, before);
      CHECK((left == tokens{static_cast<token_id>(place)} || (may_empty && left.empty())));
      for (const float bad : {nan_float, infinite_float}) {
        row logits(size, 1.0F);
        logits[place] = bad;
        const row_status status = status_after(policy, logits, before);
        // A ban may remove the very token that makes the row bad.
        CHECK((status == row_status::not_finite ||
               (may_empty && decant::is_gone(logits_after(policy, logits, before)[place]))));
        if (status != row_status::ok) CHECK(drawn_after(policy, logits, 3, before) == tokens(3, no_token));
      }
    }
  }
}

/// The message of the parameter_error that `make_policy` throws; empty if it throws none.
template <class F>
std::string complaint(F make_policy) {
  try {
    static_cast<void>(make_policy());
  } catch (const decant::parameter_error& error) {
    return error.what();
  }
  return {};
}

/// A bad parameter: the constructor throws, `make` gives the same as an error value, and the text is complete.
template <class P>
void check_rejects(double value, const std::string& policy, const std::string& parameter, const std::string& rule) {
  const std::string expected = policy + ": " + parameter + " = " + decant::detail::number_text(value) + " " + rule;
  CHECK(complaint([&] { return P(value); }) == expected);
  const auto made = P::make(value);
  REQUIRE(!made.has_value());
  CHECK(made.error().code == decant::error_code::bad_parameter);
  CHECK(made.error().where == policy + "." + parameter);
  CHECK(made.error().message == expected);
}

template <class P>
void check_accepts(double value) {
  INFO("value " << value);
  CHECK(complaint([&] { return P(value); }).empty());
  const auto made = P::make(value);
  REQUIRE(made.has_value());
  CHECK(decant::describe(*made) == decant::describe(P(value)));
}

inline void check_report_of(const any_processor& processor, const decant::testing::check_options& options = {}) {
  const auto report = decant::testing::check_processor(processor, options);
  INFO(decant::describe(processor));
  INFO(report.text());
  CHECK(report.ok);
}

}  // namespace policies
