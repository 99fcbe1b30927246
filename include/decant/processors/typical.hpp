// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/math/scalar.hpp>
#include <decant/processors/ties.hpp>

namespace decant {

/// Locally typical sampling: keeps the tokens whose surprise is closest to the entropy, up to mass p.
///
/// Effect: orders tokens by | -ln prob - H |, ties by lower id, and keeps the smallest prefix whose mass reaches p; the
/// argmax may be removed. Entropy and mass are those of the tokens left. With ties::keep, tokens exactly as far from
/// the entropy as the one that reaches p stay too, but not those level with the last of `min_keep`, as in Hugging Face
/// transformers. One pass, two in float and a list of the largest tokens; where those do not decide, a pass in double
/// and a sort.
/// Off: p >= 1. Errors: parameter_error for NaN or negative p.
/// Reference: Meister, Pimentel, Wiher, Cotterell, "Locally typical sampling", TACL 2023, arXiv 2202.00666.
class typical : public made_or_error<typical> {
 public:
  static constexpr std::string_view name = "typical";

  /// Keeps at least `min_keep` tokens (at least one), the first of that order.
  explicit typical(double p, std::size_t min_keep = 1, ties at_border = ties::lower_id)
      : p_(p), min_keep_(min_keep), at_border_(at_border) {
    detail::raise_if(validate(p));
  }

  static std::optional<parameter_fault> validate(double p, std::size_t = 1, ties = ties::lower_id) {
    if (p >= 0) return {};
    return parameter_fault{name, "p", p, "must be a number >= 0"};
  }

  void operator()(candidates& row, const step_context&) {
    if (off() || row.status() != row_status::ok) return;
    if (at_border_ == ties::lower_id) return row.keep_typical_mass(p_, min_keep_);
    const double around = row.log_sum() - row.entropy();
    row.keep_mass_around(0, std::max(min_keep_, count_with_ties(row)), around);
  }

  [[nodiscard]] bool off() const { return p_ >= 1; }
  [[nodiscard]] std::string describe() const { return detail::call_text(name, {p_}); }

 private:
  struct place {
    double distance, weight;
  };

  std::size_t count_with_ties(candidates& row) {
    const double log_mass = -row.log_probability(row.argmax()), around = log_mass - row.entropy();
    places_.clear();
    row.visit_below_max(
        [&](token_id, double below) { places_.push_back({std::abs(below - around), math::exp(below)}); });
    std::sort(places_.begin(), places_.end(), [](const place& x, const place& y) { return x.distance < y.distance; });
    const double wanted = math::product(p_, math::exp(log_mass));
    double mass = 0;
    std::size_t last = 0;
    for (; last + 1 < places_.size(); ++last) {
      mass = math::rounded(mass + places_[last].weight);
      if (mass >= wanted) break;
    }
    std::size_t count = last + 1;
    while (count < places_.size() && places_[count].distance == places_[last].distance) ++count;
    return count;
  }

  double p_;
  std::size_t min_keep_;
  ties at_border_;
  std::vector<place> places_;
};

}  // namespace decant
