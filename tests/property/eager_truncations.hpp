// SPDX-License-Identifier: MIT
#pragma once

// Truncations and temperatures, written from their definitions on plain vectors of doubles.

#include "eager_support.hpp"

#include <bit>

#include <decant/processors/confidence_increment.hpp>
#include <decant/processors/dynamic_temperature.hpp>
#include <decant/processors/edt.hpp>
#include <decant/processors/epsilon_cutoff.hpp>
#include <decant/processors/eta_cutoff.hpp>
#include <decant/processors/min_p.hpp>
#include <decant/processors/p_less.hpp>
#include <decant/processors/p_less_norm.hpp>
#include <decant/processors/quadratic.hpp>
#include <decant/processors/renormalise.hpp>
#include <decant/processors/tail_free.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_a.hpp>
#include <decant/processors/top_h.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/processors/top_n_sigma.hpp>
#include <decant/processors/top_p.hpp>
#include <decant/processors/typical.hpp>
#include <decant/processors/xtc.hpp>

namespace eager {

/// How much a logarithm near the threshold may be wrong.
inline double log_error(double threshold) { return 1e-12 * (1 + std::abs(threshold)); }

/// The values of the tokens left, in descending order.
inline doubles sorted(judged_row& row, const doubles& value) {
  doubles out;
  for (const token_id id : row.descending()) out.push_back(value[index_of(id)]);
  return out;
}

// ---- truncations

inline step make_top_k(const situation& s) {
  const auto k = static_cast<std::int64_t>(s.roll.below(42)) - 1;
  const std::size_t min_keep = s.min_keep();
  const ties at_border = random_ties(s.roll);
  return {top_k(k, min_keep, at_border), [=](judged_row& row) {
            if (k <= 0 || !row.good()) return;
            const std::size_t count = std::max(static_cast<std::size_t>(k), min_keep);
            row.keep_at_least(row.below_max(), 1, 0, count, at_border);
          }};
}

inline step make_top_p(const situation& s) {
  const double p = s.roll.one_in(2) ? static_cast<double>(s.roll.below(60)) * 0.0173 : s.roll.number(1, {0, 1, 1.5});
  const std::size_t min_keep = s.min_keep();
  return {top_p(p, min_keep), [=](judged_row& row) {
            if (p < 1) row.keep_mass(p, min_keep);
          }};
}

inline step make_min_p(const situation& s) {
  const double p = static_cast<double>(s.roll.below(21)) / 20;
  const std::size_t min_keep = s.min_keep();
  return {min_p(p, min_keep), [=](judged_row& row) {
            if (p > 0) row.keep_above(row.max() + math::log(p), min_keep);
          }};
}

inline step make_typical(const situation& s) {
  const double p = s.roll.number(1, {0, 0.5, 1, 2});
  const std::size_t min_keep = s.min_keep();
  const ties at_border = random_ties(s.roll);
  return {typical(p, min_keep, at_border), [=](judged_row& row) {
            if (p >= 1 || !row.good()) return;
            const doubles log_p = row.log_probabilities(), below = row.below_max();
            const double entropy = row.entropy();
            doubles distance(log_p.size());
            double total = 0, farthest = 0;
            tokens order = row.ids();
            for (const token_id id : order) {
              distance[index_of(id)] = std::abs(-log_p[index_of(id)] - entropy);
              farthest = std::max(farthest, distance[index_of(id)]);
              total = math::rounded(total + math::exp(below[index_of(id)]));
            }
            std::sort(order.begin(), order.end(), [&](token_id x, token_id y) {
              const double dx = distance[index_of(x)], dy = distance[index_of(y)];
              return dx < dy || (dx == dy && x < y);
            });
            double mass = 0;
            std::size_t kept = 0;
            while (kept < order.size() && (kept == 0 || mass < math::product(p, total)))
              mass = math::rounded(mass + math::exp(below[index_of(order[kept++])]));
            const double border = distance[index_of(order[kept - 1])];
            while (at_border == ties::keep && kept < order.size() && distance[index_of(order[kept])] == border) ++kept;
            kept = std::max(kept, min_keep);
            // Two tokens on either side of the entropy may be equally far from it but for rounding.
            const double error = 1e-12 * (1 + std::abs(row.max()) + border);
            for (std::size_t i = 0; i < order.size(); ++i) {
              for (std::size_t j = i + 1; j < order.size(); ++j) {
                const double gap = distance[index_of(order[j])] - distance[index_of(order[i])];
                if (gap > error) break;
                row.doubt(below[index_of(order[i])] != below[index_of(order[j])]);
              }
            }
            row.keep_first(order, kept);
          }};
}

inline step make_epsilon_cutoff(const situation& s) {
  const double epsilon = s.roll.number(0.3, {0, 1e-9, 0.9, 1});
  const std::size_t min_keep = s.min_keep();
  const ties at_border = random_ties(s.roll);
  return {epsilon_cutoff(epsilon, min_keep, at_border), [=](judged_row& row) {
            if (epsilon == 0) return;
            const double threshold = math::log(epsilon);
            row.keep_at_least(row.log_probabilities(), threshold, log_error(threshold), min_keep, at_border);
          }};
}

inline step make_eta_cutoff(const situation& s) {
  const double epsilon = s.roll.number(0.3, {0, 1e-9, 0.9, 1});
  const std::size_t min_keep = s.min_keep();
  const ties at_border = random_ties(s.roll);
  return {eta_cutoff(epsilon, min_keep, at_border), [=](judged_row& row) {
            if (epsilon == 0 || !row.good()) return;
            const double lowered = std::sqrt(epsilon) * math::exp(-row.entropy());
            const double threshold = math::log(std::min(epsilon, lowered));
            row.keep_at_least(row.log_probabilities(), threshold, log_error(threshold), min_keep, at_border);
          }};
}

inline step make_top_a(const situation& s) {
  const double a = s.roll.number(1, {0, 1e-6, 1});
  const std::size_t min_keep = s.min_keep();
  return {top_a(a, min_keep), [=](judged_row& row) {
            if (a == 0 || !row.good()) return;
            const doubles log_p = row.log_probabilities();
            const double threshold = math::log(a) + 2 * *std::max_element(log_p.begin(), log_p.end());
            row.keep_at_least(log_p, threshold, log_error(threshold), min_keep);
          }};
}

inline step make_tail_free(const situation& s) {
  const double z = s.roll.number(1, {0, 0.95, 0.999, 1});
  const std::size_t min_keep = s.min_keep();
  return {tail_free(z, min_keep), [=](judged_row& row) {
            if (z >= 1 || !row.good() || row.size() < 3) return;
            doubles p = sorted(row, row.below_max());
            for (double& each : p) each = math::exp(each);
            doubles bend;
            double total = 0;
            for (std::size_t i = 0; i + 2 < p.size(); ++i) {
              const double slope = p[i] - p[i + 1], next_slope = p[i + 1] - p[i + 2];
              bend.push_back(std::abs(slope - next_slope));
              total += bend.back();
            }
            row.doubt_near(total, 1e-12, 1e-14);
            if (total <= 1e-12) return;
            const tokens order = row.descending();
            double cumulative = 0;
            std::size_t kept = 1;
            for (; kept <= bend.size(); ++kept) {
              cumulative += bend[kept - 1] / total;
              if (z > 0 || cumulative > 0) row.doubt_near(cumulative, z, 1e-12 * z);
              if (cumulative > z) break;
            }
            row.keep_first(order, std::max(kept, min_keep));
          }};
}

inline step make_top_n_sigma(const situation& s) {
  const double n = s.roll.number(2.5, {0, static_cast<double>(std::bit_cast<float>(0x7F800000U))});
  const std::size_t min_keep = s.min_keep();
  const deviation which = s.roll.one_in(2) ? deviation::unbiased : deviation::population;
  return {top_n_sigma(n, min_keep, which), [=](judged_row& row) {
            if (!math::is_finite(n) || !row.good() || row.size() < 2) return;
            const doubles below = row.below_max();
            double mean = 0, squares = 0;
            for (const token_id id : row.ids()) mean += below[index_of(id)];
            mean /= static_cast<double>(row.size());
            for (const token_id id : row.ids()) squares += (below[index_of(id)] - mean) * (below[index_of(id)] - mean);
            const std::size_t degrees = row.size() - (which == deviation::unbiased ? 1 : 0);
            const double threshold = -n * std::sqrt(squares / static_cast<double>(degrees));
            row.keep_at_least(below, threshold, -1e-12 * threshold, min_keep);
          }};
}

inline step make_xtc(const situation& s) {
  const double probability = s.roll.number(1, {0, 1});
  const double threshold = s.roll.number(0.4, {0, 0.5, 0.51});
  const tokens spared = s.roll.one_in(2) ? tokens{} : s.ids(1 + s.roll.below(3));
  const std::size_t min_keep = s.min_keep();
  const draw_stream draws = s.context.draws;
  return {xtc(probability, threshold, spared, min_keep), [=](judged_row& row) {
            if (probability == 0 || threshold > 0.5) return;
            if (draws.uniform(purpose::coin) >= probability || !row.good()) return;  // the coin alone does not read
            const doubles log_p = row.log_probabilities();
            const double least = math::log(threshold);
            tokens above;
            for (const token_id id : row.descending()) {
              const double own = log_p[index_of(id)];
              if (threshold > 0) row.doubt_near(own, least, log_error(least));
              if (threshold == 0 || own >= least) above.push_back(id);
            }
            if (above.size() < 2) return;
            above.pop_back();
            std::erase_if(above, [&](token_id id) { return contains(spared, id); });
            if (row.size() >= min_keep + above.size()) ban_all(row, above);
          }};
}

inline step make_p_less(const situation& s) {
  const std::size_t min_keep = s.min_keep();
  return {p_less(min_keep), [=](judged_row& row) {
            if (!row.good()) return;
            double collision = 0;
            for (const double p : row.probabilities()) collision += p * p;
            row.keep_at_least(row.log_probabilities(), math::log(collision) - 1e-9, 1e-11, min_keep);
          }};
}

inline step make_p_less_norm(const situation& s) {
  const std::size_t min_keep = s.min_keep();
  return {p_less_norm(min_keep), [=](judged_row& row) {
            if (!row.good() || row.size() < 2) return;
            const double n = static_cast<double>(row.size());
            double collision = 0;
            for (const double p : row.probabilities()) collision += p * p;
            const double threshold = (n * collision - 1) / (n - 1);
            if (threshold <= 0) return;
            // The difference loses digits where the row is nearly uniform.
            const double error = 1e-11 + math::log(1 + 1e-14 * collision / threshold);
            row.keep_at_least(row.log_probabilities(), math::log(threshold) - 1e-9, error, min_keep);
          }};
}

/// The entropy of a set of weights, for all its prefixes: ln sum w - (sum w ln w) / sum w.
inline doubles entropies(const doubles& log_weights) {
  doubles out;
  double sum = 0, weighted = 0;
  for (const double log_w : log_weights) {
    const double w = math::exp(log_w);
    sum = math::rounded(sum + w);
    weighted = math::rounded(weighted + math::product(w, log_w));
    out.push_back(math::log(sum) - weighted / sum);
  }
  return out;
}

inline step make_top_h(const situation& s) {
  const double alpha = s.roll.number(1, {0, 1, 3});
  const std::size_t min_keep = s.min_keep();
  const top_h_rule rule = s.roll.one_in(2) ? top_h_rule::hf : top_h_rule::paper;
  return {top_h(alpha, min_keep, rule), [=](judged_row& row) {
            if (alpha >= 1 || !row.good()) return;
            doubles log_p = sorted(row, row.below_max());
            const std::size_t left = log_p.size();
            if (rule == top_h_rule::hf && left > 100) log_p.resize(100);
            doubles used = entropies(log_p);
            double allowed = math::product(alpha, rule == top_h_rule::hf ? used.back() : row.entropy());
            if (rule == top_h_rule::hf) {
              double mass = 0, sum = 0;
              for (const double each : log_p) mass = math::rounded(mass + math::exp(each));
              for (std::size_t i = 0; i < log_p.size(); ++i) {
                const double own = log_p[i] - math::log(mass);
                used[i] = sum = math::rounded(sum - math::product(math::exp(own), own));
              }
            }
            std::size_t kept = 1;
            while (kept < log_p.size() && used[kept] <= allowed && math::exp(log_p[kept]) > 0) ++kept;
            row.keep_largest(std::max(kept, min_keep));
          }};
}

inline step make_confidence_increment(const situation& s) {
  const double epsilon = s.roll.one_in(2) ? s.roll.unit() * 0.01 : s.roll.number(0.3, {0, 1});
  const std::size_t min_keep = s.min_keep();
  const increment_rule rule = s.roll.one_in(2) ? increment_rule::each : increment_rule::prefix;
  return {confidence_increment(epsilon, min_keep, rule), [=](judged_row& row) {
            if (!row.good() || row.size() < 2) return;
            const tokens order = row.descending();
            const doubles log_p = row.log_probabilities();
            const double n = static_cast<double>(order.size()), least = std::max(epsilon, 1e-12);
            // (1 - C) ln((1 - C) / others): what is left, spread evenly over the tokens not in the set.
            const auto spread = [&](double mass, double others) {
              const double rest = 1 - mass;
              return rest > 0 && others > 0 ? rest * math::log(rest / others) : 0;
            };
            double mass = 0;
            bool going_on = true;
            tokens kept;
            for (std::size_t k = 0; k < order.size(); ++k) {
              const double own = log_p[index_of(order[k])], p = math::exp(own);
              const double others = n - static_cast<double>(k);
              const double increment = (p * own + spread(mass + p, others - 1) - spread(mass, others)) / math::log(n);
              mass += p;
              if (going_on) row.doubt_near(increment, least, 2e-14 + 1e-12 * least);
              const bool enough = increment > least;
              if (rule == increment_rule::prefix) going_on = going_on && enough;
              if (k < std::max<std::size_t>(min_keep, 1) || (going_on && enough)) kept.push_back(order[k]);
            }
            row.keep_if([&](token_id id) { return contains(kept, id); });
          }};
}

// ---- temperatures and maps

inline void divide_by(judged_row& row, double t) {
  if (t == 1) return;
  if (t == 0 || !math::is_finite(1 / t))
    row.keep_largest(1);
  else
    row.affine(std::max(1 / t, 0x1p-1000));
}

inline step make_temperature(const situation& s) {
  const double t = s.roll.one_of<double>({0, 1e-3, 0.25, 0.5, 1, 2, 4});
  return {temperature(t), [=](judged_row& row) { divide_by(row, t); }};
}

inline step make_dynamic_temperature(const situation& s) {
  const double low = s.roll.number(1, {0, 1}), high = s.roll.one_in(6) ? low : low + s.roll.unit() * 2;
  const double exponent = s.roll.one_in(2) ? 1 : 0.1 + s.roll.unit() * 3;
  return {dynamic_temperature(low, high, exponent), [=](judged_row& row) {
            if ((low == 1 && high == 1) || !row.good() || row.size() < 2) return;
            const double share = std::min(1.0, row.entropy() / math::log(static_cast<double>(row.size())));
            const double bent = exponent == 1 ? share : math::exp(math::product(exponent, math::log(share)));
            divide_by(row, low + math::product(high - low, bent));
          }};
}

inline step make_edt(const situation& s) {
  const double t0 = s.roll.number(2, {0, 1}), theta = s.roll.number(2, {0});
  const double base = s.roll.one_in(3) ? 0.8 : s.roll.one_in(6) ? 1 : s.roll.unit();
  return {edt(t0, theta, base), [=](judged_row& row) {
            const bool fixed = theta == 0 || base == 1;
            if ((fixed && t0 == 1) || !row.good()) return;
            if (fixed) return divide_by(row, t0);
            if (row.entropy() == 0) return divide_by(row, 0);
            divide_by(row, math::product(t0, math::exp(math::product(theta / row.entropy(), math::log(base)))));
          }};
}

inline step make_quadratic(const situation& s) {
  const double factor = s.roll.number(1, {0}), curve = s.roll.number(2, {0, 2}) + 1;
  return {quadratic(factor, curve), [=](judged_row& row) {
            if (factor == 0 || !row.good()) return;
            const double top = row.max(), k = (3 - curve) / 2, t = (curve - 1) / 2;
            const doubles below = row.below_max();
            // -k f d^2 + t f d^3 = (t f d - k f) d^2; kept finite where d has no meaning any more.
            row.transform([&](token_id id, float) {
              const double d = std::max(below[index_of(id)], -0x1p200);
              return math::saturated(math::product(math::product(t * factor, d) - k * factor, math::product(d, d)));
            });
            row.affine(1, top);
          }};
}

inline step make_renormalise(const situation&) {
  return {renormalise(), [](judged_row& row) {
            if (row.good()) row.affine(1, -row.log_sum());
          }};
}

}  // namespace eager
