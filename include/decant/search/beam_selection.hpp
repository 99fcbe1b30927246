// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/generate/stopping.hpp>
#include <decant/search/beam_options.hpp>
#include <decant/search/hypothesis_links.hpp>

namespace decant {

/// A continuation of a live hypothesis, before and after it is decided what becomes of it.
struct extension {
  double rank = 0;         ///< what it competes by
  double log_prob = 0;     ///< of its token
  double diversity = 0;    ///< of its token
  std::size_t parent = 0;  ///< the rank of the hypothesis that it continues
  token_id token = no_token;
  std::size_t stage = 0;  ///< how far a constraint has got with it
  bool ends = false;      ///< with an end token

  finish_reason finish = finish_reason::none;
  candidate_fate fate = candidate_fate::outranked;
  hypothesis_link node = no_link;
};

/// The order of continuations: ties go to the better parent, then to the lower id.
inline bool ranks_before(const extension& a, const extension& b) {
  if (a.rank != b.rank) return a.rank > b.rank;
  return a.parent != b.parent ? a.parent < b.parent : a.token < b.token;
}

/// Leaves the best `count`, in any order. Linear.
inline void keep_best(std::vector<extension>& found, std::size_t count) {
  if (found.size() <= count) return;
  std::nth_element(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count), found.end(), ranks_before);
  found.resize(count);
}

/// The places of a beam, shared out among the stages of a constraint: every stage that has candidates gets an equal
/// part, what is left over goes to the stages that have got furthest, and what a stage cannot fill is free for anybody.
/// With one stage it has all places.
/// Reference: Post, Vilar, "Fast lexically constrained decoding with dynamic beam allocation", NAACL 2018,
/// arXiv 1804.06609.
class stage_quotas {
 public:
  void begin(std::size_t stages, std::size_t places) {
    stages_.assign(stages, {});
    spare_ = places;
  }

  /// The place of the next candidate of a stage among all of its stage, from 0. Asked in the order of rank.
  std::size_t place(std::size_t stage) { return at(stage).seen++; }

  /// Counts a candidate that wants to live on. It has a place as well.
  void count(std::size_t stage) {
    ++at(stage).seen;
    ++at(stage).wanting;
  }

  /// Shares the places out among the stages in which somebody wants one.
  void share_out() {
    const auto occupied = static_cast<std::size_t>(
        std::count_if(stages_.begin(), stages_.end(), [](const stage_data& s) { return s.wanting > 0; }));
    if (occupied == 0) return;
    const std::size_t part = spare_ / occupied;
    std::size_t rest = spare_ % occupied;
    for (std::size_t stage = stages_.size(); stage-- > 0;) {
      stage_data& s = stages_[stage];
      if (s.wanting == 0) continue;
      std::size_t places = part;
      if (rest > 0) {
        --rest;
        ++places;
      }
      s.places = std::min(places, s.wanting);
    }
    for (const stage_data& s : stages_) spare_ -= s.places;
  }

  /// Takes one of a stage's places; false if there is none.
  [[nodiscard]] bool take(std::size_t stage) { return take_from(at(stage).places); }
  /// Takes one of those that no stage could fill.
  [[nodiscard]] bool take_spare() { return take_from(spare_); }

 private:
  struct stage_data {
    std::size_t seen = 0, wanting = 0, places = 0;
  };

  [[nodiscard]] stage_data& at(std::size_t stage) {
    DECANT_ASSERT(stage < stages_.size(), "a constraint has got further than its goal");
    return stages_[stage];
  }

  static bool take_from(std::size_t& places) {
    if (places == 0) return false;
    --places;
    return true;
  }

  std::vector<stage_data> stages_;
  std::size_t spare_ = 0;
};

}  // namespace decant
