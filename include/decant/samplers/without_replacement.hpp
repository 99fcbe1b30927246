// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/exponential_race.hpp>
#include <decant/core/token.hpp>

namespace decant {

/// A token with its log-probability and that plus its Gumbel noise.
struct perturbed_token {
  token_id id = no_token;
  double log_probability = 0;
  double perturbed = 0;

  friend bool operator==(const perturbed_token&, const perturbed_token&) = default;
};

/// Draws k different tokens from one row: the k largest of log-probability + Gumbel noise, largest first.
///
/// Effect: `out` holds them in the order in which drawing one after another without replacement would have given them
/// (the Plackett-Luce law); all of them if fewer than k are left; none on a bad row or for k = 0. Equal values go to
/// the lower id. The row is only read. The first token is the one that the gumbel sampler draws, and a larger k adds
/// tokens after the same ones: with k + 1 asked, the last value is the threshold of the importance weights of the k.
/// Log-probabilities are within 4e-6 on long rows (candidates::quick_log_mass). One random number for every 64 tokens,
/// more for those that may be among the k; allocates only while `out` grows.
/// Reference: Kool, van Hoof, Welling, "Stochastic beams and where to find them", ICML 2019, arXiv 1903.06059.
inline void sample_without_replacement(candidates& row, const step_context& context, std::size_t k,
                                       std::vector<perturbed_token>& out) {
  out.clear();
  if (k == 0) return;
  const double log_mass = row.quick_log_mass();
  if (row.status() != row_status::ok) return;
  out.reserve(std::min(k, row.size()));
  const auto before = [](const perturbed_token& a, const perturbed_token& b) {
    return a.perturbed > b.perturbed || (a.perturbed == b.perturbed && a.id < b.id);
  };
  exponential_race race(context.draws.numbers(purpose::noise));
  // Whatever else arrives, the k largest logits reach something.
  double reached = std::numeric_limits<double>::lowest();
  if (const std::span<const entry> largest = row.descending(k); largest.size() == k) {
    reached = std::numeric_limits<double>::max();
    for (const entry& top : largest) reached = std::min(reached, row.below_max(top.id) + race.noise(top.id));
  }
  race.run(row, reached, [&](token_id id, double below, double perturbed) {
    const perturbed_token token{id, below, perturbed};
    if (out.size() == k) {
      if (!before(token, out.front())) return reached;
      std::pop_heap(out.begin(), out.end(), before);
      out.pop_back();
    }
    out.push_back(token);
    std::push_heap(out.begin(), out.end(), before);
    if (out.size() == k) reached = std::max(reached, out.front().perturbed);
    return reached;
  });
  std::sort_heap(out.begin(), out.end(), before);
  for (perturbed_token& token : out) {
    token.log_probability -= log_mass;
    token.perturbed -= log_mass;
  }
}

}  // namespace decant
