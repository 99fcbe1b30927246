// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <decant/chain/any.hpp>
#include <decant/chain/decoder.hpp>
#include <decant/chain/steps.hpp>
#include <decant/core/candidates.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/core/law.hpp>
#include <decant/testing/chi_square.hpp>
#include <decant/testing/enumerate.hpp>

namespace decant::testing {

/// A row of logits with a name to report it by.
struct check_row {
  std::string name;
  std::vector<float> logits;
};

/// What a check found. Made for any test framework: `CHECK(report.ok)` with `report.text()` as the message.
struct check_report {
  bool ok = true;
  std::vector<std::string> failures;  ///< "property: row 'name' (n tokens), seed s: what was seen"

  /// Adds a failure. One property is reported once a row.
  void fail(const std::string& property, const std::string& place, const std::string& seen) {
    ok = false;
    if (reported_.insert(property + '\n' + place.substr(0, place.find(','))).second) {
      failures.push_back(property + ": " + (place.empty() ? "" : place + ": ") + seen);
    }
  }

  /// The failures, one a line; "ok" if there are none.
  [[nodiscard]] std::string text() const {
    std::string lines;
    for (const std::string& failure : failures) lines += (lines.empty() ? "" : "\n") + failure;
    return lines.empty() ? "ok" : lines;
  }

 private:
  std::set<std::string> reported_;
};

/// How to check a policy, and what it claims about itself.
struct check_options {
  double alpha = 1e-6;       ///< a chi-square test fails below this p-value
  std::size_t draws = 4000;  ///< seeds a row for each of them; long rows take an eighth
  std::uint64_t first_seed = 1;

  bool permutation = true;       ///< renaming the tokens renames the law; false for policies that know ids
  bool shift_invariant = false;  ///< adding a constant to every logit changes nothing
  bool may_empty = false;        ///< processors: may ban every token of a good row
  bool may_revive = false;       ///< processors: may bring back a token that was gone, or make a bad row good
  bool discrete = false;  ///< samplers: draws only by candidates::draw, choose and chance, so the law can be enumerated

  /// The law of a sampler without `narrow`: probabilities of all ids, in order, for a good row.
  std::function<std::vector<double>(std::span<const float>)> expected_law{};
  std::size_t min_vocabulary = 1;  ///< no smaller rows, for policies that name ids
  /// Counts allocations, such as testing::allocations; null: not checked.
  std::size_t (*allocations)() noexcept = nullptr;
  /// Rows to check beside the standard ones. Best exact in bfloat16: in that form they are rounded.
  std::vector<check_row> rows{};
};

namespace detail {

/// Rounded towards zero to what bfloat16 holds.
inline float to_bfloat16_grid(float x) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xFFFF0000U); }

inline std::vector<bfloat16> as_bfloat16(std::span<const float> row) {
  std::vector<bfloat16> out;
  for (const float x : row) out.push_back({static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16)});
  return out;
}

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(
      a, b, {}, [](float x) { return std::bit_cast<std::uint32_t>(x); },
      [](float x) { return std::bit_cast<std::uint32_t>(x); });
}

template <class F>
check_row make_row(std::string name, std::size_t size, F logit) {
  check_row row{std::move(name), {}};
  for (std::size_t i = 0; i < size; ++i) row.logits.push_back(to_bfloat16_grid(static_cast<float>(logit(i))));
  return row;
}

inline constexpr auto real_looking = [](std::uint64_t seed) {
  // Log-frequencies of words fall off like this: few large, a long tail.
  return [draws = draw_stream(seed)](std::size_t i) {
    return 1.5 * draws.gumbel(purpose::user, static_cast<token_id>(i)) - 2;
  };
};

/// Good rows of every kind that has hurt somebody. All hold bfloat16 values.
inline std::vector<check_row> good_rows() {
  const auto tail = [](std::size_t i) { return static_cast<double>(i * 7 % 11) / 8; };
  return {
      make_row("real-looking", 200, real_looking(11)),
      make_row("flat", 40, [](std::size_t) { return 0.25; }),
      make_row("peaked", 50, [=](std::size_t i) { return i == 17 ? 9.0 : tail(i) - 2; }),
      make_row("tied", 48, [](std::size_t i) { return static_cast<double>(i * 5 % 3); }),
      make_row("some gone", 66, [=](std::size_t i) { return i % 3 == 0 ? static_cast<double>(gone) : tail(i); }),
      make_row("distinct", 64, [](std::size_t i) { return static_cast<double>(i * 37 % 64) / 8 - 4; }),
      make_row("all below -300", 30, [](std::size_t i) { return -300.0 - static_cast<double>(2 * (i * 7 % 5)); }),
      make_row("all above 300", 30, [](std::size_t i) { return 300.0 + static_cast<double>(2 * (i * 7 % 5)); }),
      make_row("two tokens", 2, [](std::size_t i) { return i == 0 ? 1.0 : 0.0; }),
      make_row("one token", 1, [](std::size_t) { return 0.5; }),
      make_row("all gone but one", 70, [](std::size_t i) { return i == 66 ? -3.0 : static_cast<double>(gone); }),
      make_row("long", 5000, real_looking(12)),
  };
}

/// Rows from which nothing may be drawn.
inline std::vector<check_row> bad_rows(std::size_t min_vocabulary) {
  const std::size_t size = std::max<std::size_t>(20, min_vocabulary);
  constexpr float nan = std::bit_cast<float>(0x7FC00000U), infinite = std::bit_cast<float>(0x7F800000U);
  const auto with = [](float value, std::size_t place) {
    return [=](std::size_t i) { return i == place ? value : static_cast<float>(i % 4); };
  };
  std::vector<check_row> rows = {
      make_row("all gone", size, [](std::size_t) { return gone; }),
      make_row("NaN at the start", size, with(nan, 0)),
      make_row("NaN in the middle", size, with(nan, 9)),
      make_row("NaN at the end", size, with(nan, size - 1)),
      make_row("+inf in the middle", size, with(infinite, 7)),
      make_row("NaN among gone tokens", size, [=](std::size_t i) { return i == 5 ? nan : gone; }),
  };
  if (min_vocabulary <= 1) rows.push_back(make_row("one token, gone", 1, [](std::size_t) { return gone; }));
  return rows;
}

/// Runs a policy on rows, in the ways in which the checks need it. P is any_processor or any_sampler: the checks are
/// compiled once, not once a policy.
template <class P>
class policy_runner {
 public:
  static constexpr bool samples = std::same_as<P, any_sampler>;

  /// Some text before the token: it repeats itself, so that penalties and n-grams find something.
  static std::vector<token_id> history_for(std::size_t vocabulary) {
    std::vector<token_id> tokens;
    for (const int x : {2, 9, 4, 2, 9, 33, 7, 2, 1, 2, 9}) {
      tokens.push_back(static_cast<token_id>(static_cast<std::size_t>(x) % vocabulary));
    }
    return tokens;
  }

  static step_context context(std::span<const token_id> history, const draw_stream& draws) {
    return context_after(history, std::min<std::size_t>(history.size(), 4), draws);
  }

  /// Whether the policy says which law it draws from; processors always do.
  static bool has_law([[maybe_unused]] const P& policy) {
    if constexpr (!samples) {
      return true;
    } else {
      return policy.has_law();
    }
  }

  /// Leaves the policy's law in a bound row. Only where has_law.
  static void shape(P& policy, candidates& row, const step_context& where) {
    if constexpr (!samples) {
      policy(row, where);
    } else {
      policy.narrow(row, where);
    }
  }

  template <class Row>
  static decant::law law_of(P& policy, candidates& row, Row&& logits, std::span<const token_id> history,
                            std::uint64_t seed) {
    const decant::detail::bound_row bound(row, logits);
    shape(policy, row, context(history, draw_stream(seed)));
    return row.probabilities();
  }

  /// A token: the sampler's, or a plain draw from what the processor left.
  template <class Row>
  static token_id draw(P& policy, candidates& row, Row&& logits, std::span<const token_id> history,
                       const draw_stream& draws) {
    const decant::detail::bound_row bound(row, logits);
    const step_context where = context(history, draws);
    if constexpr (samples) {
      return policy(row, where);
    } else {
      policy(row, where);
      return row.draw(where.draws);
    }
  }

  /// Everything that the policy does on a few probes: two policies in the same state do the same.
  static std::vector<double> behaviour(const P& policy, std::size_t min_vocabulary) {
    std::vector<double> seen;
    candidates row;
    for (std::size_t size : {std::size_t{12}, std::size_t{90}}) {
      size = std::max(size, min_vocabulary);
      const check_row probe = make_row("probe", size, real_looking(size));
      const std::span<const float> logits = probe.logits;
      const auto history = history_for(size);
      P probed = policy;
      for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        seen.push_back(draw(probed, row, logits, history, draw_stream(seed)));
        if (!has_law(policy) || seed > 2) continue;
        const decant::law law = law_of(probed, row, logits, history, seed);
        seen.insert(seen.end(), law.ids.begin(), law.ids.end());
        seen.insert(seen.end(), law.weights.begin(), law.weights.end());
      }
    }
    return seen;
  }
};

/// Whether two policies whose type is forgotten compare equal as what they are.
template <class Erased>
using same_policy = bool(const Erased&, const Erased&);

/// That function for policies of type P; null if they cannot be compared.
template <class P, class Erased>
constexpr same_policy<Erased>* same_policy_of() {
  if constexpr (std::equality_comparable<P>) {
    return [](const Erased& a, const Erased& b) { return *a.template as<P>() == *b.template as<P>(); };
  } else {
    return nullptr;
  }
}

/// The checks that samplers and processors share, and then those of each.
template <class P>
class policy_check {
  using run = policy_runner<P>;

 public:
  policy_check(P policy, const check_options& options, same_policy<P>* same)
      : policy_(std::move(policy)), options_(options), same_(same) {}

  check_report operator()() {
    std::vector<check_row> rows = good_rows();
    std::erase_if(rows, [&](const check_row& row) { return row.logits.size() < options_.min_vocabulary; });
    rows.insert(rows.end(), options_.rows.begin(), options_.rows.end());
    std::vector<double> before;
    guarded("", [&] { before = behaviour(policy_); });
    for (const check_row& row : rows) {
      guarded(place(row), [&] {
        const auto past = run::history_for(row.logits.size());
        check_replay(row, past);
        check_forms(row, past);
        check_tokens(row, past);
        if constexpr (run::samples) {
          check_sampling(row, past);
        } else {
          check_processing(row, past);
        }
        if (options_.shift_invariant) check_shift(row, past);
      });
    }
    for (const check_row& row : bad_rows(options_.min_vocabulary)) guarded(place(row), [&] { check_bad_row(row); });
    guarded("", [&] {
      if (options_.permutation && options_.min_vocabulary <= 64) check_permutation();
      if (options_.allocations != nullptr) check_allocations(rows);
      if (behaviour(policy_) != before) report_.fail("state", "", "calling it changes it; only accept may");
      check_state();
    });
    return std::move(report_);
  }

 private:
  using text_so_far = std::span<const token_id>;

  static std::string place(const check_row& row) {
    return "row '" + row.name + "' (" + std::to_string(row.logits.size()) + " tokens)";
  }
  static std::string place(const check_row& row, std::uint64_t seed) {
    return place(row) + ", seed " + std::to_string(seed);
  }
  [[nodiscard]] std::uint64_t seed(std::uint64_t i) const { return options_.first_seed + i; }
  [[nodiscard]] std::size_t draws_on(const check_row& row) const {
    return row.logits.size() > 1000 ? options_.draws / 8 : options_.draws;
  }

  /// The same key gives the same token: called again, after other rows, by a copy, from a row at another address.
  void check_replay(const check_row& row, text_so_far past) {
    const check_row other = make_row("other", std::max<std::size_t>(33, options_.min_vocabulary), real_looking(13));
    const auto other_past = run::history_for(33);
    const std::vector<float> moved = row.logits;
    for (std::uint64_t i = 0; i < 6; ++i) {
      const draw_stream draws(seed(i));
      candidates fresh;
      const token_id token = run::draw(policy_, row_, std::span<const float>(row.logits), past, draws);
      const token_id again = run::draw(policy_, row_, std::span<const float>(row.logits), past, draws);
      if (again != token) {
        report_.fail("replay", place(row, seed(i)), tokens("the same key gave", token, again));
      }
      static_cast<void>(
          run::draw(policy_, row_, std::span<const float>(other.logits), other_past, draw_stream(seed(99))));
      const token_id after = run::draw(policy_, row_, std::span<const float>(row.logits), past, draws);
      if (after != token) {
        report_.fail("replay", place(row, seed(i)),
                     tokens("with another row in between the same key gave", token, after));
      }
      P copy = policy_;
      const token_id copied = run::draw(copy, fresh, std::span<const float>(row.logits), past, draws);
      if (copied != token)
        report_.fail("copy", place(row, seed(i)), tokens("a policy and its copy gave", token, copied));
      const token_id elsewhere = run::draw(policy_, row_, std::span<const float>(moved), past, draws);
      if (elsewhere != token) {
        report_.fail("replay", place(row, seed(i)), tokens("the same row at another address gave", token, elsewhere));
      }
    }
  }

  /// A const row, a mutable one and a 16-bit one of the same values give the same; a mutable one comes back bit for
  /// bit, also when something throws while it is bound; what was asked of the row before does not matter.
  void check_forms(const check_row& row, text_so_far past) {
    std::vector<float> edited = row.logits;
    const bool exact_in_16 =
        std::ranges::all_of(row.logits, [](float x) { return same_bits({&x, 1}, std::vector{to_bfloat16_grid(x)}); });
    const std::vector<bfloat16> narrow = as_bfloat16(row.logits);
    for (std::uint64_t i = 0; i < 4; ++i) {
      const draw_stream draws(seed(i));
      const token_id token = run::draw(policy_, row_, std::span<const float>(row.logits), past, draws);
      const token_id from_mutable = run::draw(policy_, row_, std::span<float>(edited), past, draws);
      if (from_mutable != token) {
        report_.fail("forms", place(row, seed(i)), tokens("a const and a mutable row gave", token, from_mutable));
      }
      if (!same_bits(edited, row.logits)) {
        report_.fail("restore", place(row, seed(i)), "a mutable row was not restored");
        edited = row.logits;
      }
      if (exact_in_16) {
        const token_id from_16 = run::draw(policy_, row_, std::span<const bfloat16>(narrow), past, draws);
        if (from_16 != token) {
          report_.fail("forms", place(row, seed(i)), tokens("a float and a bfloat16 row gave", token, from_16));
        }
      }
    }
    if (run::has_law(policy_)) {
      const law expected = run::law_of(policy_, row_, std::span<const float>(row.logits), past, seed(0));
      if (run::law_of(policy_, row_, std::span<float>(edited), past, seed(0)) != expected) {
        report_.fail("forms", place(row, seed(0)), "a const and a mutable row have different laws");
      }
      if (exact_in_16 && run::law_of(policy_, row_, std::span<const bfloat16>(narrow), past, seed(0)) != expected) {
        report_.fail("forms", place(row, seed(0)), "a float and a bfloat16 row have different laws");
      }
      const decant::detail::bound_row bound(row_, std::span<const float>(row.logits));
      static_cast<void>(row_.entropy());
      static_cast<void>(row_.descending(3));
      run::shape(policy_, row_, run::context(past, draw_stream(seed(0))));
      if (row_.probabilities() != expected) {
        report_.fail("forms", place(row, seed(0)), "what was asked of the row before changed the law");
      }
    }
#if DECANT_EXCEPTIONS
    struct interruption {};
    bool interrupted = false;
    try {
      const decant::detail::bound_row bound(row_, std::span<float>(edited));
      static_cast<void>(apply(row_, past, draw_stream(seed(0))));
      throw interruption{};
    } catch (const interruption&) {
      interrupted = true;
    }
    if (!interrupted || !same_bits(edited, row.logits)) {
      report_.fail("restore", place(row), "a mutable row was not restored after an exception");
    }
#endif
  }

  /// Applies the policy to a bound row.
  token_id apply(candidates& row, text_so_far past, const draw_stream& draws) {
    if constexpr (run::samples) {
      return policy_(row, run::context(past, draws));
    } else {
      return policy_(row, run::context(past, draws)), no_token;
    }
  }

  /// Whatever is returned is a token of the row that was not gone.
  void check_tokens(const check_row& row, text_so_far past) {
    for (std::uint64_t i = 0; i < 100; ++i) {
      const token_id token = run::draw(policy_, row_, std::span<const float>(row.logits), past, draw_stream(seed(i)));
      judge_token(row, seed(i), token);
    }
  }

  bool judge_token(const check_row& row, std::uint64_t at_seed, token_id token) {
    const auto n = static_cast<token_id>(row.logits.size());
    if (token == no_token) {
      if (!options_.may_empty) report_.fail("no token", place(row, at_seed), "nothing was drawn from a good row");
    } else if (token < 0 || token >= n) {
      report_.fail("outside", place(row, at_seed), "token " + std::to_string(token) + " is outside the vocabulary");
    } else if (is_gone(row.logits[static_cast<std::size_t>(token)]) && !options_.may_revive) {
      report_.fail("gone", place(row, at_seed), "token " + std::to_string(token) + " was drawn, but it is gone");
    } else {
      return true;
    }
    return false;
  }

  void check_sampling(const check_row& row, text_so_far past) {
    std::vector<double> expected(row.logits.size());
    const std::span<const float> logits(row.logits);
    law own;
    if (options_.expected_law) {
      expected = options_.expected_law(logits);
    } else if (run::has_law(policy_)) {
      own = run::law_of(policy_, row_, logits, past, seed(0));
      for (std::size_t i = 0; i < own.size(); ++i) {
        if (is_gone(row.logits[static_cast<std::size_t>(own.ids[i])])) {
          report_.fail("gone", place(row), "narrow revived token " + std::to_string(own.ids[i]));
        }
        expected[static_cast<std::size_t>(own.ids[i])] = own.weights[i] / own.total;
      }
      check_left_narrowed(row, past, own);
      if (options_.discrete) check_exact(row, past, own);
    } else {
      return;
    }
    std::vector<std::size_t> counts(row.logits.size());
    for (std::uint64_t i = 0; i < draws_on(row); ++i) {
      const token_id token = run::draw(policy_, row_, logits, past, draw_stream(seed(i)));
      if (judge_token(row, seed(i), token)) ++counts[static_cast<std::size_t>(token)];
    }
    judge_counts(row, chi_square(counts, expected), "the law that it should draw from");
  }

  void judge_counts(const check_row& row, const chi_square_result& test, const std::string& against) {
    if (test.p_value >= options_.alpha) return;
    report_.fail(
        "law", place(row) + ", seeds " + std::to_string(seed(0)) + ".." + std::to_string(seed(draws_on(row) - 1)),
        "draws differ from " + against + ": chi-square " + decant::detail::number_text(test.statistic) + " at " +
            std::to_string(test.degrees) + " degrees of freedom, p = " + decant::detail::number_text(test.p_value));
  }

  /// Calling a sampler with a law leaves the row narrowed to that law, whatever it drew.
  void check_left_narrowed(const check_row& row, text_so_far past, const law& own) {
    const decant::detail::bound_row bound(row_, std::span<const float>(row.logits));
    static_cast<void>(apply(row_, past, draw_stream(seed(0))));
    if (row_.probabilities() != own) {
      report_.fail("narrow", place(row, seed(0)), "after a draw the row does not hold the law that narrow leaves");
    }
  }

  /// The law by enumeration, and no decision where one token is left.
  void check_exact(const check_row& row, text_so_far past, const law& own) {
    if (row.logits.size() > 1000) return;
    const auto exact = enumerate_law([&](decision_hook& hook) {
      return run::draw(policy_, row_, std::span<const float>(row.logits), past, draw_stream(seed(0)).with_hook(&hook));
    });
    if (const double off = distance(exact, as_result_law(own)); !(off < 1e-12)) {
      report_.fail("exact law", place(row), "the enumerated law is off by " + decant::detail::number_text(off));
    }
    struct counter final : decision_hook {
      std::size_t calls = 0;
      std::size_t choose(const draw_key&, std::span<const double> weights, double) override {
        ++calls;
        return static_cast<std::size_t>(std::ranges::find_if(weights, [](double w) { return w > 0; }) -
                                        weights.begin());
      }
    } asked;
    if (std::ranges::count_if(row.logits, [](float x) { return !is_gone(x); }) != 1) return;
    static_cast<void>(
        run::draw(policy_, row_, std::span<const float>(row.logits), past, draw_stream(seed(0)).with_hook(&asked)));
    if (asked.calls > 0) report_.fail("one token", place(row), "a random number was asked for with one token left");
  }

  void check_processing(const check_row& row, text_so_far past) {
    const std::span<const float> logits(row.logits);
    const decant::detail::bound_row bound(row_, logits);
    const step_context where = run::context(past, draw_stream(seed(0)));
    policy_(row_, where);
    const row_status status = row_.status();
    if (status == row_status::not_finite) report_.fail("finite", place(row), "a good row has become not finite");
    if (status == row_status::empty && !options_.may_empty)
      report_.fail("empty", place(row), "a good row has become empty");
    for (std::size_t i = 0; i < logits.size() && !options_.may_revive; ++i) {
      if (is_gone(logits[i]) && row_.contains(static_cast<token_id>(i))) {
        report_.fail("gone", place(row), "token " + std::to_string(i) + " was gone and has come back");
      }
    }
    if (is_off(policy_)) check_off(row, past);
  }

  /// At its off value a processor is the identity bit for bit, and the drawn token stays.
  void check_off(const check_row& row, text_so_far past) {
    const std::span<const float> logits(row.logits);
    candidates plain, processed;
    for (std::uint64_t i = 0; i < 8; ++i) {
      const step_context where = run::context(past, draw_stream(seed(i)));
      const decant::detail::bound_row bind_plain(plain, logits), bind_processed(processed, logits);
      policy_(processed, where);
      for (token_id id = 0; static_cast<std::size_t>(id) < logits.size(); ++id) {
        const float before = plain.logit(id), after = processed.logit(id);
        if (!same_bits({&before, 1}, {&after, 1})) {
          report_.fail("off", place(row),
                       "at its off value it changes the logit of token " + std::to_string(id) + " from " +
                           decant::detail::number_text(before) + " to " + decant::detail::number_text(after));
          break;
        }
      }
      if (plain.probabilities() != processed.probabilities())
        report_.fail("off", place(row), "at its off value it changes the law");
      const token_id expected = plain.draw(where.draws), token = processed.draw(where.draws);
      if (token != expected) {
        report_.fail("off", place(row, seed(i)),
                     tokens("at its off value it changes the drawn token:", expected, token));
      }
    }
  }

  void check_shift(const check_row& row, text_so_far past) {
    // Powers of two, and rows on a coarse grid: the sums are exact where the logits are moderate.
    check_row shifted = row;
    for (float& x : shifted.logits) x += 8;
    for (std::size_t i = 0; i < row.logits.size(); ++i) {
      if (!is_gone(row.logits[i]) && shifted.logits[i] - 8 != row.logits[i]) return;
    }
    if (run::has_law(policy_)) {
      const law a = run::law_of(policy_, row_, std::span<const float>(row.logits), past, seed(0));
      const law b = run::law_of(policy_, row_, std::span<const float>(shifted.logits), past, seed(0));
      const double off = a.ids == b.ids ? distance(as_result_law(a), as_result_law(b)) : 1;
      if (off > 1e-6)
        report_.fail("shift", place(row),
                     "adding 8 to every logit changes the law by " + decant::detail::number_text(off));
      return;
    }
    for (std::uint64_t i = 0; i < 50; ++i) {
      const token_id a = run::draw(policy_, row_, std::span<const float>(row.logits), past, draw_stream(seed(i)));
      const token_id b = run::draw(policy_, row_, std::span<const float>(shifted.logits), past, draw_stream(seed(i)));
      if (a != b)
        report_.fail("shift", place(row, seed(i)), tokens("before and after adding 8 to every logit it gave", a, b));
    }
  }

  /// Renaming the tokens of a row without ties renames the law.
  void check_permutation() {
    const check_row row =
        make_row("distinct", 64, [](std::size_t i) { return static_cast<double>(i * 37 % 64) / 8 - 4; });
    const auto renamed_id = [](std::size_t i) { return (i * 29 + 5) % 64; };
    check_row renamed = row;
    for (std::size_t i = 0; i < 64; ++i) renamed.logits[renamed_id(i)] = row.logits[i];
    const auto past = run::history_for(64);
    auto renamed_past = past;
    for (token_id& token : renamed_past) token = static_cast<token_id>(renamed_id(static_cast<std::size_t>(token)));
    if (run::has_law(policy_)) {
      result_law<token_id> law, renamed_law;
      for (const auto& [id, p] :
           as_result_law(run::law_of(policy_, row_, std::span<const float>(row.logits), past, seed(0)))) {
        law[static_cast<token_id>(renamed_id(static_cast<std::size_t>(id)))] = p;
      }
      renamed_law =
          as_result_law(run::law_of(policy_, row_, std::span<const float>(renamed.logits), renamed_past, seed(0)));
      if (const double off = distance(law, renamed_law); off > 1e-9) {
        report_.fail("permutation", place(row),
                     "renaming the tokens changes the law by " + decant::detail::number_text(off));
      }
      return;
    }
    std::vector<std::size_t> counts(64), renamed_counts(64);
    for (std::uint64_t i = 0; i < options_.draws; ++i) {
      const token_id a = run::draw(policy_, row_, std::span<const float>(row.logits), past, draw_stream(seed(i)));
      const token_id b = run::draw(policy_, row_, std::span<const float>(renamed.logits), renamed_past,
                                   draw_stream(seed(options_.draws + i)));
      if (judge_token(row, seed(i), a)) ++counts[renamed_id(static_cast<std::size_t>(a))];
      if (judge_token(renamed, seed(options_.draws + i), b)) ++renamed_counts[static_cast<std::size_t>(b)];
    }
    const chi_square_result test = chi_square_of_two(counts, renamed_counts);
    if (test.p_value < options_.alpha) {
      report_.fail("permutation", place(row),
                   "renaming the tokens changes the draws: p = " + decant::detail::number_text(test.p_value));
    }
  }

  void check_bad_row(const check_row& row) {
    const auto past = run::history_for(row.logits.size());
    std::vector<float> edited = row.logits;
    for (std::uint64_t i = 0; i < 4; ++i) {
      const std::span<const float> logits(row.logits);
      if constexpr (run::samples) {
        const token_id token = run::draw(policy_, row_, logits, past, draw_stream(seed(i)));
        if (token != no_token) {
          report_.fail("bad row", place(row, seed(i)),
                       "token " + std::to_string(token) + " came out; it must be no_token");
        }
      } else if (!options_.may_revive) {
        // Edits do not read: banning the one NaN would rightly make the row good. Once read, it stays bad.
        const decant::detail::bound_row bound(row_, logits);
        static_cast<void>(row_.status());
        policy_(row_, run::context(past, draw_stream(seed(i))));
        if (row_.status() == row_status::ok) report_.fail("bad row", place(row, seed(i)), "it has become good");
      }
      static_cast<void>(run::draw(policy_, row_, std::span<float>(edited), past, draw_stream(seed(i))));
      if (!same_bits(edited, row.logits)) {
        report_.fail("restore", place(row, seed(i)), "a mutable row was not restored");
        edited = row.logits;
      }
    }
    if (run::samples && run::has_law(policy_) &&
        !run::law_of(policy_, row_, std::span<const float>(row.logits), past, seed(0)).empty()) {
      report_.fail("bad row", place(row), "narrow left a law");
    }
  }

  void check_allocations(const std::vector<check_row>& rows) {
    std::size_t allocated = 0;
    // The first rounds let every workspace grow.
    for (int round = 0; round < 3; ++round) {
      for (const check_row& row : rows) {
        const auto past = run::history_for(row.logits.size());
        std::vector<float> edited = row.logits;
        for (std::uint64_t i = 0; i < 20; ++i) {
          const std::size_t before = options_.allocations();
          static_cast<void>(run::draw(policy_, row_, std::span<const float>(row.logits), past, draw_stream(seed(i))));
          static_cast<void>(run::draw(policy_, row_, std::span<float>(edited), past, draw_stream(seed(i))));
          allocated = options_.allocations() - before;
          if (round == 2 && allocated > 0) {
            report_.fail("allocation", place(row, seed(i)), std::to_string(allocated) + " allocations in steady state");
          }
        }
      }
    }
  }

  /// accept, then rollback, is an exact identity, whatever was accepted; a copy is a fork.
  void check_state() {
    if (!keeps_state(policy_)) return;
    const auto record = [](std::size_t i) {
      const double x = static_cast<double>(i);
      return step_record{-0.3 - 1.7 * x, -0.1 - 1.1 * x};
    };
    constexpr token_id accepted[] = {3, 0, 11, 3, 3, 7};
    const auto accept_all = [&](P& policy, std::size_t from, std::size_t to) {
      for (std::size_t i = from; i < to; ++i) policy.accept(accepted[i], record(i));
    };
    for (std::size_t before = 0; before <= 3; ++before) {
      P base = policy_;
      accept_all(base, 0, before);
      const auto expected = behaviour(base);
      for (std::size_t count = 1; before + count <= 6; ++count) {
        P tried = base;
        accept_all(tried, before, before + count);
        tried.rollback(count);
        if (!alike(tried, base, expected)) {
          report_.fail("rollback", "",
                       "after " + std::to_string(before) + " accepted tokens, " + std::to_string(count) +
                           " more and rollback(" + std::to_string(count) + ") is not the identity");
        }
      }
      P fork = base;
      accept_all(fork, before, 6);
      if (behaviour(base) != expected) report_.fail("copy", "", "accepting in a copy changes the original");
      P fresh = policy_;
      fresh.reset();
      base.reset();
      if (!alike(base, fresh, behaviour(fresh))) {
        report_.fail("reset", "",
                     "after " + std::to_string(before) + " accepted tokens, reset does not undo all of them");
      }
    }
  }

  /// What a policy that throws has to say is a failure like any other.
  template <class F>
  void guarded(const std::string& where, F f) {
#if DECANT_EXCEPTIONS
    try {
      f();
    } catch (const std::exception& thrown) {
      report_.fail("exception", where, thrown.what());
    }
#else
    f();
#endif
  }

  [[nodiscard]] std::vector<double> behaviour(const P& policy) const {
    return run::behaviour(policy, options_.min_vocabulary);
  }

  bool alike(const P& a, const P& b, const std::vector<double>& behaviour_of_b) const {
    return (same_ == nullptr || same_(a, b)) && behaviour(a) == behaviour_of_b;
  }

  static std::string tokens(const std::string& what, token_id a, token_id b) {
    return what + " " + std::to_string(a) + " and " + std::to_string(b);
  }

  P policy_;
  const check_options& options_;
  same_policy<P>* same_;
  check_report report_;
  candidates row_;
};

}  // namespace detail

/// Tests a sampler the way decant tests its own. Deterministic: fixed rows, fixed seeds.
///
/// Checks, each named in the report: *law* (draws follow the law that `narrow` leaves, or options.expected_law, by
/// chi-square over seeds; without either only the other checks), *exact law* (options.discrete: by enumeration),
/// *narrow* (a call leaves the row narrowed), *replay* (the same key gives the same token, whatever other rows were
/// drawn from in between and wherever the row lies), *copy*, *permutation*, *shift* (options.shift_invariant), *forms*
/// (const, mutable and 16-bit rows give the same), *restore* (a mutable row comes back bit for bit, also after an
/// exception), *bad row* (all gone, NaN, +inf: no_token), *gone* and *outside* (never such a token), *no token*, *one
/// token*, *allocation* (options.allocations), *state*, *rollback* and *reset* (Stateful). About a second in an
/// optimised build. The sampler is copied; it must be callable on every standard row.
template <Sampler S>
  requires std::copy_constructible<S>
[[nodiscard]] check_report check_sampler(const S& sampler, const check_options& options = {}) {
  return detail::policy_check<any_sampler>(sampler, options, detail::same_policy_of<S, any_sampler>())();
}

/// Tests a processor, a lambda included. As check_sampler, where tokens are drawn plainly from what it leaves; and
/// *off* (if it says off(), it is the identity bit for bit and leaves the drawn token), *finite* and *empty* (a good
/// row stays good; options.may_empty), *gone* (nothing comes back; options.may_revive).
template <LogitsProcessor P>
  requires std::copy_constructible<P>
[[nodiscard]] check_report check_processor(const P& processor, const check_options& options = {}) {
  return detail::policy_check<any_processor>(processor, options, detail::same_policy_of<P, any_processor>())();
}

}  // namespace decant::testing
