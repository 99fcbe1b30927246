// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <decant/core/describe.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/residual.hpp>
#include <decant/speculative/verdict.hpp>

namespace decant {

/// Lets a drafted token pass that is among the k most probable of the target, ties by lower id. k = 1: only the argmax.
/// O(p's tokens). Errors: parameter_error unless k >= 1. Reference: see relaxed_verification, section 5.1.
class among_top : public made_or_error<among_top> {
 public:
  static constexpr std::string_view name = "among_top";

  explicit among_top(int k) : k_(k) { detail::raise_if(validate(k)); }
  static std::optional<parameter_fault> validate(int k) {
    if (k >= 1) return {};
    return parameter_fault{name, "k", static_cast<double>(k), "must be at least 1"};
  }

  /// `place` is that of the token in p.
  template <class Law>
  [[nodiscard]] bool operator()(const Law& p, std::size_t place) const {
    int before = 0;
    for (std::size_t i = 0; i < p.ids.size() && before < k_; ++i) {
      if (p.weights[i] > p.weights[place] || (i < place && p.weights[i] == p.weights[place])) ++before;
    }
    return before < k_;
  }

  [[nodiscard]] std::string describe() const { return detail::call_text(name, {static_cast<double>(k_)}); }

 private:
  int k_;
};

/// Lets a drafted token pass whose id is at most `distance` away from the argmax: for vocabularies in which ids are
/// quantities, such as the intensities of an image. distance = 0: only the argmax.
/// O(p's tokens). Errors: parameter_error unless distance >= 0. Reference: see relaxed_verification, section 5.2.
class within_distance : public made_or_error<within_distance> {
 public:
  static constexpr std::string_view name = "within_distance";

  explicit within_distance(int distance) : distance_(distance) { detail::raise_if(validate(distance)); }
  static std::optional<parameter_fault> validate(int distance) {
    if (distance >= 0) return {};
    return parameter_fault{name, "distance", static_cast<double>(distance), "must be at least 0"};
  }

  /// `place` is that of the token in p.
  template <class Law>
  [[nodiscard]] bool operator()(const Law& p, std::size_t place) const {
    const std::int64_t apart = std::int64_t{p.ids[place]} - p.ids[detail::most_probable(p)];
    return apart <= distance_ && -apart <= distance_;
  }

  [[nodiscard]] std::string describe() const { return detail::call_text(name, {static_cast<double>(distance_)}); }

 private:
  int distance_;
};

/// NOT lossless. Blockwise parallel decoding's relaxed acceptance: drafted tokens pass that the target would not have
/// written, if they are near enough to its argmax.
///
/// Effect: goes down the draft to the first child that `near(p, place of the token in p)` accepts (among_top,
/// within_distance, or any function); the next token is the target's argmax. Takes no chances: the output is greedy but
/// for what it lets pass, and depends on the drafter. The first `min_block` - 1 drafted tokens of a round pass unseen
/// (section 5.3), so that a round gives at least `min_block` tokens where as many are drafted: `min_block` = heads
/// commits to blocks blindly. A token that the chain has removed never passes.
/// The criterion sees the law that the decoder leaves: end it with a sampler that leaves more than one token, such as
/// multinomial (which does not draw here). After greedy, and with among_top(1) or within_distance(0), this is the exact
/// criterion: the target's greedy output. Off: those, with min_block = 1.
/// O(p's tokens) a drafted token. Errors: parameter_error unless min_block >= 1.
/// Reference: Stern, Shazeer, Uszkoreit, "Blockwise parallel decoding for deep autoregressive models", NeurIPS 2018,
/// arXiv 1811.03115, section 5.
template <class Near>
class relaxed_verification : public made_or_error<relaxed_verification<Near>> {
 public:
  static constexpr std::string_view name = "relaxed_verification";
  static constexpr bool lossless = false;

  explicit relaxed_verification(Near near, int min_block = 1) : near_(std::move(near)), min_block_(min_block) {
    detail::raise_if(validate(near_, min_block));
  }
  static std::optional<parameter_fault> validate(const Near&, int min_block = 1) {
    if (min_block >= 1) return {};
    return parameter_fault{name, "min_block", static_cast<double>(min_block), "must be at least 1"};
  }

  template <class Law, class Target, class Decide>
  void operator()(const basic_draft<Law>& drafted, Target&& target, Decide&&, basic_verdict<Law>& out) const {
    const auto choose = [&](std::int32_t node, const Law& p) {
      const bool unseen = out.path.size() + 1 < static_cast<std::size_t>(min_block_);
      for (std::int32_t child = drafted.first_child(node); child != no_node; child = drafted.next_sibling(child)) {
        const auto found = std::lower_bound(p.ids.begin(), p.ids.end(), drafted.token(child));
        if (found == p.ids.end() || *found != drafted.token(child)) continue;
        if (unseen || near_(p, static_cast<std::size_t>(found - p.ids.begin()))) return child;
      }
      out.next = &p;
      return no_node;
    };
    detail::walk_down(drafted, target, out, choose);
    if (out.next->ids.empty()) return;
    make_certain(out.rest, out.next->ids[detail::most_probable(*out.next)]);
    out.next = &out.rest;
  }

  [[nodiscard]] std::string describe() const {
    return std::string(name) + "(" + decant::describe(near_) + ", " + std::to_string(min_block_) + ")";
  }

 private:
  Near near_;
  int min_block_;
};

}  // namespace decant
