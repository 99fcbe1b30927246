// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <type_traits>

#include <decant/core/errors.hpp>
#include <decant/core/law.hpp>
#include <decant/core/token.hpp>

namespace decant {

/// The numbers that a law is made of: double for law, anything exact in a proof.
template <class Law>
using number_of = std::remove_cvref_t<decltype(Law::total)>;

/// The probability of a token under a law of any numbers, 0 for one that is not in it. O(log size).
template <class Law>
[[nodiscard]] number_of<Law> probability_of(const Law& from, token_id token) {
  const auto found = std::lower_bound(from.ids.begin(), from.ids.end(), token);
  if (found == from.ids.end() || *found != token) return number_of<Law>(0);
  return from.weights[static_cast<std::size_t>(found - from.ids.begin())] / from.total;
}

namespace detail {

/// The place of the first id >= `wanted` at or after `from`: by steps that double, so that a short law beside a long
/// one costs the short one's length.
inline std::size_t gallop(std::span<const token_id> ids, std::size_t from, token_id wanted) {
  std::size_t step = 1, to = from;
  while (to < ids.size() && ids[to] < wanted) {
    from = to + 1;
    to += step;
    step *= 2;
  }
  const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(from);
  const auto end = ids.begin() + static_cast<std::ptrdiff_t>(std::min(to, ids.size()));
  return static_cast<std::size_t>(std::lower_bound(begin, end, wanted) - ids.begin());
}

/// Calls f(place in p, p's probability, q's probability) for every token of p, ascending, and returns f: what it counts
/// it holds itself, in registers.
template <class Law, class F>
F for_each_of(const Law& p, const Law& q, F f) {
  using number = number_of<Law>;
  if (p.ids.empty()) return f;
  const number per_p = number(1) / p.total;
  const number per_q = q.ids.empty() ? number(0) : number(1) / q.total;
  const token_id* const p_ids = p.ids.data();
  const token_id* const q_ids = q.ids.data();
  const number* const p_weights = p.weights.data();
  const number* const q_weights = q.weights.data();
  const std::size_t p_size = p.ids.size(), q_size = q.ids.size();
  std::size_t j = 0;
  for (std::size_t i = 0; i < p_size; ++i) {
    const token_id id = p_ids[i];
    if (j < q_size && q_ids[j] < id) j = gallop(q.ids, j + 1, id);
    const bool both = j < q_size && q_ids[j] == id;
    f(i, p_weights[i] * per_p, both ? q_weights[j] * per_q : number(0));
    j += both ? 1 : 0;
  }
  return f;
}

/// x or 0, whichever is larger: without a branch, for no one could foresee which it is.
template <class Number>
Number positive_part(const Number& x) {
  if constexpr (std::is_floating_point_v<Number>) {
    return (x + std::abs(x)) / 2;
  } else {
    return x > Number(0) ? x : Number(0);
  }
}

/// Sums the positive parts of `scale` p - q.
template <class Number>
struct excess_sum {
  Number scale, sum{0};

  void operator()(std::size_t, const Number& of_p, const Number& of_q) {
    sum += positive_part<Number>(scale * of_p - of_q);
  }
};

/// And writes those that there are to the front of `weights`, their ids, which stand in p's order, to that of `ids`.
template <class Number>
struct residual_writer {
  const token_id* from;
  token_id* ids;
  Number* weights;
  Number scale, sum{0};
  std::size_t kept = 0;

  void operator()(std::size_t i, const Number& of_p, const Number& of_q) {
    // Written in any case, and counted if it is to stay.
    const Number rest = scale * of_p - of_q;
    ids[kept] = from[i];
    weights[kept] = rest;
    sum += positive_part(rest);
    kept += rest > Number(0) ? 1U : 0U;
  }
};

/// The largest weight of a law, 0 for an empty one.
template <class Law>
number_of<Law> largest_weight(const Law& from) {
  number_of<Law> largest(0);
  for (const auto& weight : from.weights) {
    if (weight > largest) largest = weight;
  }
  return largest;
}

/// The place of the largest weight, the first among equals. The law is not empty.
template <class Law>
std::size_t most_probable(const Law& from) {
  return static_cast<std::size_t>(std::max_element(from.weights.begin(), from.weights.end()) - from.weights.begin());
}

}  // namespace detail

/// The mass of the positive part of `scale` * p - q, as probabilities. O(p's tokens), if q has not many more.
template <class Law>
[[nodiscard]] number_of<Law> excess(const Law& p, const number_of<Law>& scale, const Law& q) {
  return detail::for_each_of(p, q, detail::excess_sum<number_of<Law>>{scale}).sum;
}

/// Writes the law that is proportional to the positive part of `scale` * p - q, and returns the mass of that part,
/// which is its total. Tokens that p has not are never looked at: where the chain truncates, so does the residual.
/// `out` may be p. Nothing allocates once `out` has grown.
template <class Law>
number_of<Law> residual(const Law& p, const number_of<Law>& scale, const Law& q, Law& out) {
  using number = number_of<Law>;
  // Not cleared: what grows is filled with zeros, which takes as long as writing it.
  out.ids.resize(p.ids.size());
  out.weights.resize(p.ids.size());
  const auto written = detail::for_each_of(
      p, q, detail::residual_writer<number>{p.ids.data(), out.ids.data(), out.weights.data(), scale});
  out.ids.resize(written.kept);
  out.weights.resize(written.kept);
  out.total = written.sum;
  if constexpr (requires { out.block_bounds; }) out.block_bounds.clear();
  return written.sum;
}

/// Takes a token out of a law. O(size).
template <class Law>
void remove_token(Law& from, token_id token) {
  using number = number_of<Law>;
  const auto found = std::lower_bound(from.ids.begin(), from.ids.end(), token);
  if (found != from.ids.end() && *found == token) {
    from.weights.erase(from.weights.begin() + (found - from.ids.begin()));
    from.ids.erase(found);
  }
  // Summed anew: what is left of a total after taking away nearly all of it would be rounding.
  from.total = number(0);
  for (const number& weight : from.weights) from.total += weight;
  if constexpr (requires { from.block_bounds; }) from.block_bounds.clear();
}

/// Makes a law that is certain of one token.
template <class Law>
void make_certain(Law& out, token_id token) {
  out.clear();
  out.ids.push_back(token);
  out.weights.push_back(number_of<Law>(1));
  out.total = number_of<Law>(1);
}

}  // namespace decant
