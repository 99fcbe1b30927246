// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include <decant/core/context.hpp>
#include <decant/core/errors.hpp>
#include <decant/math/scalar.hpp>

namespace decant {

/// Where a model holds a sequence.
struct batch_place {
  std::size_t sequence = 0;  ///< the model's number of it
  std::size_t item = 0;      ///< its place in the pass that has just run
};

/// One step of one hypothesis, whose attention over the source is asked for.
struct alignment_step {
  std::size_t sequence = 0;  ///< the model's number of it
  std::size_t item = 0;      ///< its place in the pass that has just run
  step_context context{};    ///< its tokens
};

/// How much of a source each output has paid attention to, as a part of its score.
///
/// Adds beta * sum over source positions of ln min(sum over steps of attention, 1): 0 where everything was attended to
/// once. It is part of the score of finished hypotheses; it does not rank those that live. A position without any
/// attention counts as 2^-1022. Off: beta = 0, or no alignment. Errors: a beta that is negative or not finite.
/// Reference: Wu et al., "Google's neural machine translation system", 2016, arXiv 1609.08144.
struct coverage_options {
  double beta = 0;
  /// The weights of the source positions in the step that predicts the next token; read before the next call.
  std::function<std::span<const float>(const alignment_step&)> alignment{};

  [[nodiscard]] bool off() const { return beta == 0 || !alignment; }

  [[nodiscard]] std::optional<parameter_fault> validate() const {
    if (beta >= 0 && math::is_finite(beta)) return {};
    return parameter_fault{"coverage", "beta", beta, "must be a finite number >= 0"};
  }

  /// The part of the score, of the attention summed over the steps.
  [[nodiscard]] double score(std::span<const double> attention) const {
    double sum = 0;
    for (const double a : attention) sum += math::log(std::clamp(a, std::numeric_limits<double>::min(), 1.0));
    return beta * sum;
  }
};

}  // namespace decant
