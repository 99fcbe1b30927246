// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include <decant/core/describe.hpp>
#include <decant/core/errors.hpp>

namespace decant {

struct exit_threshold_options {
  double start = 0.5;        ///< threshold of the first round: the authors use 0.5 for sampling, 0.8 for greedy
  double target_rate = 0.9;  ///< acceptance rate aimed at
  double step = 0.01;        ///< how far a round moves the threshold, before smoothing; 0 keeps it
  double rate_memory = 0.5;  ///< share of the old acceptance rate in the new one
  double memory = 0.9;       ///< share of the old threshold in the new one
};

/// The adaptive exit of Draft & Verify: how sure a drafter must be to go on. Accepting less than was aimed at raises
/// it, so that drafts get shorter; accepting more lowers it.
///
/// Effect: after a round with acceptance rate r: rate <- rate_memory * rate + (1 - rate_memory) * r, then
/// threshold <- memory * threshold + (1 - memory) * (threshold - step if rate > target_rate, else + step), kept within
/// [0, 1]. The rate begins at target_rate; a round without a draft changes nothing.
/// Off: step = 0. Errors: parameter_error for an option outside [0, 1].
/// Reference: Zhang et al. 2024, arXiv 2309.08168, section 3.4.
class exit_threshold : public made_or_error<exit_threshold> {
 public:
  static constexpr std::string_view name = "exit_threshold";

  explicit exit_threshold(const exit_threshold_options& options = {})
      : options_(options), value_(options.start), rate_(options.target_rate) {
    detail::raise_if(validate(options));
  }

  static std::optional<parameter_fault> validate(const exit_threshold_options& options = {}) {
    const std::pair<const char*, double> shares[] = {{"start", options.start},
                                                     {"target_rate", options.target_rate},
                                                     {"step", options.step},
                                                     {"rate_memory", options.rate_memory},
                                                     {"memory", options.memory}};
    for (const auto& [parameter, value] : shares) {
      if (!(value >= 0 && value <= 1)) return parameter_fault{name, parameter, value, "must lie in [0, 1]"};
    }
    return {};
  }

  void update(std::size_t accepted, std::size_t proposed) {
    if (proposed == 0) return;
    const double share = static_cast<double>(accepted) / static_cast<double>(proposed);
    rate_ = options_.rate_memory * rate_ + (1 - options_.rate_memory) * share;
    const double wanted = rate_ > options_.target_rate ? value_ - options_.step : value_ + options_.step;
    value_ = options_.memory * value_ + (1 - options_.memory) * wanted;
    value_ = std::clamp(value_, 0.0, 1.0);
  }

  [[nodiscard]] double value() const noexcept { return value_; }
  [[nodiscard]] double rate() const noexcept { return rate_; }

 private:
  exit_threshold_options options_;
  double value_, rate_;
};

}  // namespace decant
