// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <decant/speculative/draft.hpp>
#include <decant/speculative/recursive_rejection.hpp>
#include <decant/speculative/residual.hpp>
#include <decant/speculative/verdict.hpp>

namespace decant {

namespace detail {

template <class Number>
Number power(const Number& base, std::size_t exponent) {
  Number product(1);
  for (; exponent > 0; --exponent) product = product * base;
  return product;
}

/// The probability that one draw of q is accepted at the level rho: the sum of min(q, p / rho).
template <class Law>
number_of<Law> accepted_at(const Law& p, const Law& q, const number_of<Law>& rho) {
  using number = number_of<Law>;
  number sum(0);
  for_each_of(p, q, [&](std::size_t, const number& of_p, const number& of_q) {
    const number share = of_p / rho;
    sum += of_q < share ? of_q : share;
  });
  return sum;
}

}  // namespace detail

/// The smallest level rho in [1, k] at which k draws of q can be accepted one by one and p still come out, to within
/// (k - 1) / 2^steps from above. O(steps * p's tokens).
template <class Law>
[[nodiscard]] number_of<Law> k_seq_level(const Law& p, const Law& q, std::size_t k, int steps = 60) {
  using number = number_of<Law>;
  const auto valid = [&](const number& rho) {
    const number beta = detail::accepted_at(p, q, rho);
    return !(number(1) - detail::power<number>(number(1) - beta, k) > rho * beta);
  };
  number low(1), high(static_cast<int>(k));
  if (valid(low)) return low;
  for (; steps > 0; --steps) {
    const number middle = (low + high) / number(2);
    (valid(middle) ? high : low) = middle;
  }
  return high;
}

/// SpecTr's k-SEQ: at each node every child is accepted with probability min(1, p / (rho q)), with one level rho for
/// all of them.
///
/// Effect: rho is the smallest level at which this is lossless. When none of the k children is accepted the next token
/// comes from p - min(q, p / rho) (1 - (1 - b)^k) / b, renormalised, where b is the chance of one. Made for independent
/// draws; children of another mode are verified by recursive rejection. With one child it is token verification.
/// Lossless. Accepts at least 1 - 1/e of what any rule could. O(steps) passes over p a node. `steps`: halvings of the
/// interval in which rho is sought; fewer lose acceptance, not exactness.
/// No off value; a drafted token that its law does not hold is misuse.
/// Reference: Sun, Suresh, Ro, Beirami, Jain, Yu, "SpecTr: fast speculative decoding via optimal transport",
/// NeurIPS 2023, arXiv 2310.15141.
struct k_seq_verification {
  int steps = 60;

  template <class Law, class Target, class Decide>
  void operator()(const basic_draft<Law>& drafted, Target&& target, Decide&& decide, basic_verdict<Law>& out) const {
    detail::walk_down(drafted, target, out, [&](std::int32_t node, const Law& p) {
      return drafted.mode() == proposal::with_replacement ? choose(drafted, node, p, decide, out)
                                                          : detail::reject_in_turn(drafted, node, p, decide, out);
    });
  }

 private:
  template <class Law, class Decide>
  std::int32_t choose(const basic_draft<Law>& drafted, std::int32_t node, const Law& p, Decide& decide,
                      basic_verdict<Law>& out) const {
    using number = number_of<Law>;
    const Law& q = drafted.children_law(node);
    const std::size_t k = drafted.child_count(node);
    const number rho = k_seq_level(p, q, k, steps);
    for (std::int32_t child = drafted.first_child(node); child != no_node; child = drafted.next_sibling(child)) {
      const number drawn_with = probability_of(q, drafted.token(child));
      DECANT_ASSERT(drawn_with > number(0), "a drafted token that its law does not hold");
      if (decide.chance(probability_of(p, drafted.token(child)), rho * drawn_with, child)) return child;
    }
    leave_rest(p, q, rho, k, out);
    return no_node;
  }

  /// The next law after k rejections: what acceptance has not given yet.
  template <class Law>
  static void leave_rest(const Law& p, const Law& q, const number_of<Law>& rho, std::size_t k,
                         basic_verdict<Law>& out) {
    using number = number_of<Law>;
    const number beta = detail::accepted_at(p, q, rho);
    if (!(beta > number(0))) {  // nothing in common: nothing was given
      out.next = &p;
      return;
    }
    const number times = (number(1) - detail::power<number>(number(1) - beta, k)) / beta;
    Law& rest = out.rest;
    rest.clear();
    detail::for_each_of(p, q, [&](std::size_t i, const number& of_p, const number& of_q) {
      const number share = of_p / rho;
      const number left = of_p - times * (of_q < share ? of_q : share);
      if (!(left > number(0))) return;
      rest.ids.push_back(p.ids[i]);
      rest.weights.push_back(left);
      rest.total += left;
    });
    out.next = rest.ids.empty() ? &p : &rest;
  }
};

}  // namespace decant
