// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/math/strict.hpp>

namespace decant {

DECANT_STRICT_BEGIN

/// Reads a sequence off a code point: n samples whose codes are spread evenly over [0, 1) are as diverse as can be, and
/// each follows the model's law.
///
/// Effect: [0, 1) is divided among the tokens that are not gone, in ascending id, by their probabilities; the token
/// whose part holds the code is taken, and accept stretches that part to [0, 1) again. Sample i of n starts at the code
/// (i / n + shift) mod 1. Draw the shift once, uniformly, and share it: draw_stream(seed).uniform(purpose::code). Then
/// each sample alone is ancestral sampling, and of the n samples floor(n p) or ceil(n p) are any given sequence of
/// probability p. Codes in ascending order give sequences in lexicographic order.
///
/// Precision: a token of probability p uses up -log2 p bits of the code, which has 52. As soon as fewer than 40 are
/// left, the missing ones are drawn anew (purpose::code, at this position). A border between tokens is misplaced by at
/// most 2^-40 thereby, and the law kept to that. Give each sample a sequence of its own in the stream; from the first
/// such draw on the spread of samples that agree so far is left to chance.
///
/// A Sampler with state, and deliberately no LawSampler: given the shift a step is not random, and speculation, which
/// draws by itself, would lose the spread for which one uses this. A token that the last call did not pick leaves the
/// code as it is (the later ones keep the law if it was chosen independently of the code). Copying forks the state.
/// One exponential a token; accept remembers five numbers a token, for rollback.
/// No off value; n = 1 with a random shift is plain sampling. Errors: parameter_error for a shift outside [0, 1) and a
/// sample that is not below count; rolling back more than was accepted is misuse; no_token on a bad row.
/// Reference: Vilnis, Zemlyanskiy, Murray, Passos, Sanghai, "Arithmetic sampling: parallel diverse decoding for large
/// language models", ICML 2023, arXiv 2210.15458.
class arithmetic_sampling : public made_or_error<arithmetic_sampling> {
 public:
  static constexpr std::string_view name = "arithmetic_sampling";
  static constexpr bool only_narrows = true;

  explicit arithmetic_sampling(double shift, std::size_t sample = 0, std::size_t count = 1)
      : shift_(shift), sample_(sample), count_(count) {
    detail::raise_if(validate(shift, sample, count));
    const double place = static_cast<double>(sample) / static_cast<double>(count) + shift;
    now_.code = on_grid(place < 1 ? place : place - 1);
  }

  static std::optional<parameter_fault> validate(double shift, std::size_t sample = 0, std::size_t count = 1) {
    if (!math::is_finite(shift) || shift < 0 || shift >= 1) {
      return parameter_fault{name, "shift", shift, "must lie in [0, 1)"};
    }
    if (sample >= count) return parameter_fault{name, "sample", static_cast<double>(sample), "must be below count"};
    return {};
  }

  token_id operator()(candidates& row, const step_context& context) {
    now_.picked = no_token;
    // Where the running sum stands at the beginning of every 64 tokens: from there it is found again.
    double total = 0;
    marks_.clear();
    row.visit_weights([&](std::span<const token_id> ids, std::span<const double> weights) {
      marks_.push_back({ids[0], total});
      double sum = total;
      for (const double weight : weights) sum = math::rounded(sum + weight);
      total = sum;
      return true;
    });
    if (!(total > 0)) return no_token;
    const double target = math::product(now_.code, total);
    // The target is below the total, so one of the tokens from the last mark at or below it on goes beyond it.
    const auto begin = std::ranges::upper_bound(marks_, target, {}, &mark::before) - 1;
    double cumulative = begin->before, start = 0, length = 0;
    row.visit_weights(
        [&](std::span<const token_id> ids, std::span<const double> weights) {
          for (std::size_t i = 0; i < weights.size() && !(target < cumulative); ++i) {
            if (!(weights[i] > 0)) continue;
            now_.picked = ids[i];
            start = cumulative;
            length = weights[i];
            cumulative = math::rounded(cumulative + length);
          }
          return !(target < cumulative);
        },
        begin->first);
    double code = std::clamp((target - start) / length, 0.0, 1 - finest);
    double resolution = math::product(now_.resolution, total) / length;
    if (resolution > coarsest) {
      const double cell = std::min(resolution, 1 - code);
      code = on_grid(code + math::product(cell, context.draws.uniform(purpose::code)));
      resolution = finest;
    }
    now_.next_code = code;
    now_.next_resolution = resolution;
    return now_.picked;
  }

  /// Where the code stands, in [0, 1).
  [[nodiscard]] double code() const { return now_.code; }

  void accept(token_id token, const step_record&) {
    trail_.push_back(now_);
    if (token == now_.picked && token != no_token) {
      now_.code = now_.next_code;
      now_.resolution = now_.next_resolution;
    }
    now_.picked = no_token;
  }

  void rollback(std::size_t count) {
    DECANT_ASSERT(count <= trail_.size(), "rollback of more tokens than were accepted");
    if (count == 0) return;
    now_ = trail_[trail_.size() - count];
    trail_.resize(trail_.size() - count);
  }

  void reset() { rollback(trail_.size()); }

  [[nodiscard]] std::string describe() const {
    return detail::call_text(name, {shift_, static_cast<double>(sample_), static_cast<double>(count_)});
  }

 private:
  static constexpr double finest = 0x1p-52, coarsest = 0x1p-40;

  /// A number of [0, 1] down to a multiple of 2^-52, below 1. (The 53rd bit of a uniform number is not random.)
  static double on_grid(double x) {
    return std::min(static_cast<double>(static_cast<std::uint64_t>(x * 0x1p52)) * finest, 1 - finest);
  }

  /// The true code lies in [code, code + resolution), uniformly.
  struct position {
    double code = 0, resolution = finest;
    token_id picked = no_token;  ///< by the last call; and where the code goes if that is accepted:
    double next_code = 0, next_resolution = finest;
  };

  struct mark {
    token_id first;
    double before;  ///< the sum of the weights before it
  };

  double shift_;
  std::size_t sample_, count_;
  position now_;
  std::vector<position> trail_;
  std::vector<mark> marks_;
};

DECANT_STRICT_END

}  // namespace decant
