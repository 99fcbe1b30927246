// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <decant/core/describe.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/law.hpp>
#include <decant/math/scalar.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/verdict.hpp>

namespace decant {

/// NOT lossless. Accepts every drafted token that is typical enough of the target, whatever it was drawn from.
///
/// Effect: a node is accepted if its parent is and p(x) > min(epsilon, delta e^-H) with H the entropy of p in nats; the
/// longest accepted path wins, of equally long ones that of the largest product of p, then the first. The next token
/// comes from the target's law there. Takes no chances: the drafted tokens decide, so the output is more predictable
/// than the target and depends on the drafter. Under a chain that leaves one token it is greedy verification.
/// O(p's tokens) a node entered. No off value. Errors: parameter_error unless epsilon and delta lie in [0, 1].
/// Reference: Cai, Li, Geng, Peng, Lee, Chen, Dao, "Medusa: simple LLM inference acceleration framework with multiple
/// decoding heads", ICML 2024, arXiv 2401.10774. The defaults are the authors': delta is the root of epsilon.
class typical_acceptance : public made_or_error<typical_acceptance> {
 public:
  static constexpr std::string_view name = "typical_acceptance";
  static constexpr bool lossless = false;

  explicit typical_acceptance(double epsilon = 0.09, double delta = 0.3) : epsilon_(epsilon), delta_(delta) {
    detail::raise_if(validate(epsilon, delta));
  }

  static std::optional<parameter_fault> validate(double epsilon = 0.09, double delta = 0.3) {
    if (!(epsilon >= 0 && epsilon <= 1)) return parameter_fault{name, "epsilon", epsilon, "must lie in [0, 1]"};
    if (!(delta >= 0 && delta <= 1)) return parameter_fault{name, "delta", delta, "must lie in [0, 1]"};
    return {};
  }

  /// What a token's probability must exceed.
  [[nodiscard]] double threshold(const law& p) const {
    double entropy = 0;
    for (const double weight : p.weights) entropy -= weight / p.total * math::log(weight / p.total);
    return std::min(epsilon_, delta_ * math::exp(-entropy));
  }

  template <class Target, class Decide>
  void operator()(const draft& drafted, Target&& target, Decide&&, verdict& out) const {
    out.clear();
    out.numbers.assign(drafted.size() + 1, rejected);
    out.numbers[0] = 0;
    std::int32_t best = no_parent;
    std::size_t best_depth = 0;
    // Nodes come after their parents: a parent's score is there when its first child is met.
    for (std::int32_t node = no_parent; node < static_cast<std::int32_t>(drafted.size()); ++node) {
      const double score = out.numbers[static_cast<std::size_t>(node) + 1];
      if (score == rejected) continue;
      const std::size_t depth = drafted.depth(node);
      if (depth > best_depth || (depth == best_depth && score > out.numbers[static_cast<std::size_t>(best) + 1])) {
        best = node;
        best_depth = depth;
      }
      if (drafted.first_child(node) == no_node) continue;
      const law& p = target(node);
      if (p.empty()) continue;
      const double least = threshold(p);
      for (std::int32_t c = drafted.first_child(node); c != no_node; c = drafted.next_sibling(c)) {
        const double probability = p.probability(drafted.token(c));
        if (probability > least) out.numbers[static_cast<std::size_t>(c) + 1] = score + math::log(probability);
      }
    }
    drafted.path_to(best, out.path);
    out.next = &target(best);
  }

  [[nodiscard]] std::string describe() const { return detail::call_text(name, {epsilon_, delta_}); }

 private:
  static constexpr double rejected = 1;  // no sum of logarithms of probabilities

  double epsilon_, delta_;
};

}  // namespace decant
