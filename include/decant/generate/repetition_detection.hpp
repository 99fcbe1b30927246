// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/generate/stopping.hpp>
#include <decant/processors/common_suffixes.hpp>

namespace decant {

/// What counts as being stuck: so many repeats of a block of so many tokens.
struct repetition_options {
  std::size_t repeats = 4;      ///< how often the block stands in a row, the first time included
  std::size_t min_length = 1;   ///< of the block, in tokens
  std::size_t max_length = 64;  ///< of the block, in tokens
};

/// Stops when the output ends in repeats of one block: a model that is stuck in a loop stays there.
///
/// Looks at the output alone, and at its last repeats * max_length tokens at most: linear in them for every token.
/// Keeps no state, so it may be asked about any text. Allocates only while the output grows. Errors: parameter_error
/// unless repeats >= 2 and 1 <= min_length <= max_length.
class repetition_detection : public made_or_error<repetition_detection> {
 public:
  static constexpr std::string_view name = "repetition_detection";
  static constexpr finish_reason reason = finish_reason::criterion;

  explicit repetition_detection(const repetition_options& options = {}) : options_(options) {
    detail::raise_if(validate(options));
  }

  static std::optional<parameter_fault> validate(const repetition_options& options = {}) {
    const auto fault = [](std::string_view parameter, std::size_t value, std::string_view rule) {
      return parameter_fault{name, parameter, static_cast<double>(value), rule};
    };
    if (options.repeats < 2) return fault("repeats", options.repeats, "must be >= 2");
    if (options.min_length < 1) return fault("min_length", options.min_length, "must be >= 1");
    if (options.max_length < options.min_length) {
      return fault("max_length", options.max_length, "must be >= min_length");
    }
    return {};
  }

  bool operator()(const step_context& context) {
    const auto output = context.output();
    const std::size_t longest = std::min(options_.max_length, output.size() / options_.repeats);
    if (longest < options_.min_length) return false;
    // A text ends in r repeats of its last n tokens where it has (r - 1) n tokens in common with itself n before.
    const std::size_t seen = longest * options_.repeats;
    common_suffixes(output.last(seen), common_);
    for (std::size_t length = options_.min_length; length <= longest; ++length) {
      if (common_[seen - length] >= length * (options_.repeats - 1)) return true;
    }
    return false;
  }

  [[nodiscard]] std::string describe() const {
    return detail::call_text(name, {static_cast<double>(options_.repeats), static_cast<double>(options_.min_length),
                                    static_cast<double>(options_.max_length)});
  }

 private:
  repetition_options options_;
  std::vector<std::uint32_t> common_;
};

}  // namespace decant
