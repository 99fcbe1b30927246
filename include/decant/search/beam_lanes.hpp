// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/search/any_constraint.hpp>

namespace decant {

/// What a live hypothesis carries along beside its link, and what its model sequence stands for. A lane is handed from
/// a hypothesis to one continuation of it; the others get copies.
struct beam_lane {
  std::vector<token_id> tokens{};  ///< prompt and output, if anybody wants to see them
  any_constraint constraint{};
  std::vector<double> attention{};  ///< over the source, summed over the steps
  token_id last = no_token;         ///< the token that the model has not seen yet
  bool taken = false;               ///< while lanes are handed on: whether a continuation has it
};

/// The lanes of a search, by number, and the events of the last hand-over for those who keep something else a lane: a
/// model's sequences. A number that is dropped may be given again by a fork of the same hand-over, so drops come first.
/// In steady state nothing allocates.
class beam_lanes {
 public:
  struct fork_event {
    std::size_t from, to;
  };

  [[nodiscard]] beam_lane& operator[](std::size_t lane) {
    DECANT_ASSERT(lane < lanes_.size(), "no such lane");
    return lanes_[lane];
  }

  /// The lane of the hypothesis that all begin with. Others are made by forks.
  std::size_t start() {
    const std::size_t lane = take();
    in_use_.push_back(lane);
    return lane;
  }

  /// The lanes that live hypotheses have, none twice.
  [[nodiscard]] std::span<const std::size_t> in_use() const { return in_use_; }

  /// Hands lanes on to continuations. `parents` holds, for every continuation, the lane of its hypothesis, and gets
  /// that of its own.
  void hand_on(std::span<std::size_t> parents) {
    drops_.clear();
    forks_.clear();
    for (const std::size_t lane : in_use_) lanes_[lane].taken = false;
    for (const std::size_t lane : parents) lanes_[lane].taken = true;
    for (const std::size_t lane : in_use_) {
      if (!lanes_[lane].taken) drop(lane);
    }
    for (const std::size_t lane : parents) lanes_[lane].taken = false;
    in_use_.clear();
    for (std::size_t& lane : parents) {
      if (std::exchange(lanes_[lane].taken, true)) lane = fork(lane);
      in_use_.push_back(lane);
    }
  }

  [[nodiscard]] std::span<const std::size_t> drops() const { return drops_; }
  [[nodiscard]] std::span<const fork_event> forks() const { return forks_; }

 private:
  std::size_t take() {
    if (free_.empty()) {
      lanes_.emplace_back();
      return lanes_.size() - 1;
    }
    const std::size_t lane = free_.back();
    free_.pop_back();
    return lane;
  }

  void drop(std::size_t lane) {
    free_.push_back(lane);
    drops_.push_back(lane);
  }

  std::size_t fork(std::size_t from) {
    const std::size_t to = take();
    lanes_[to] = lanes_[from];
    forks_.push_back({from, to});
    return to;
  }

  std::vector<beam_lane> lanes_;
  std::vector<std::size_t> in_use_, free_, drops_;
  std::vector<fork_event> forks_;
};

}  // namespace decant
