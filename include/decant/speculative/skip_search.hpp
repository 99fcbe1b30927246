// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <decant/chain/decoder.hpp>
#include <decant/core/candidates.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/describe.hpp>
#include <decant/core/draws.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/generate/output.hpp>

namespace decant {

struct skip_search_options {
  double ratio = 0.45;            ///< share of the sub-layers between first and last layer that is left out
  std::size_t max_trials = 1000;  ///< sets tried in all
  std::size_t patience = 300;     ///< sets tried in a row without a better one
  double enough = 0.95;           ///< a score above ends the search
  std::size_t mutate_every = 25;  ///< every so many trials a neighbour of the best set instead of a random one; 0 never
  std::uint64_t seed = 0;         ///< of the search, which takes no number from the generation's stream
};

/// SWIFT's search for sub-layers that a draft can do without, while the text is written.
///
/// Effect: `propose()` gives a set to try, `report(score)` says how well it did; `best()` is the best so far, before
/// the first report an evenly spread one. Sets have floor(2 (layers - 2) ratio) sub-layers, of any layer but the first
/// and the last. Random search; where the paper takes a step of Bayesian optimisation, this takes the best set with one
/// sub-layer exchanged, which needs no model of the scores. Once `done()`, propose() gives the best.
/// A pure function of its options and the scores. Errors: parameter_error for a ratio outside [0, 1].
/// Reference: Xia, Li, Zhang, Du, Li, "SWIFT: on-the-fly self-speculative decoding for LLM inference acceleration",
/// ICLR 2025, arXiv 2410.06916.
class skip_search : public made_or_error<skip_search> {
 public:
  static constexpr std::string_view name = "skip_search";

  explicit skip_search(std::size_t sub_layers, const skip_search_options& options = {})
      : options_(options), best_(sub_layers) {
    detail::raise_if(validate(sub_layers, options));
    const std::size_t choice = choices();
    count_ = static_cast<std::size_t>(static_cast<double>(choice) * options.ratio);
    for (std::size_t i = 0; i < count_; ++i) best_[2 + i * choice / count_] = true;
    trial_ = best_;
  }

  static std::optional<parameter_fault> validate(std::size_t, const skip_search_options& options = {}) {
    if (options.ratio >= 0 && options.ratio <= 1) return {};
    return parameter_fault{name, "ratio", options.ratio, "must lie in [0, 1]"};
  }

  /// The set to try next; the same until report().
  const std::vector<bool>& propose() {
    if (done()) return best_;
    if (!fresh_) {
      fresh_ = true;
      const bool mutate = options_.mutate_every > 0 && trials_ % options_.mutate_every == options_.mutate_every - 1;
      if (trials_ > 0) mutate ? mutate_best() : draw_set();  // the first trial is of the set that stands as best
    }
    return trial_;
  }

  void report(double score) {
    if (done()) return;
    fresh_ = false;
    ++trials_;
    ++unimproved_;
    if (trials_ > 1 && !(score > score_)) return;
    score_ = score;
    best_ = trial_;
    unimproved_ = 0;
  }

  [[nodiscard]] bool done() const noexcept {
    return count_ == 0 || count_ == choices() || trials_ >= options_.max_trials || unimproved_ > options_.patience ||
           (trials_ > 0 && score_ > options_.enough);
  }

  [[nodiscard]] const std::vector<bool>& best() const noexcept { return best_; }
  /// The score of the best set; 0 before the first report.
  [[nodiscard]] double score() const noexcept { return score_; }
  [[nodiscard]] std::size_t trials() const noexcept { return trials_; }

 private:
  /// Sub-layers that may be left out: those of all layers but two.
  [[nodiscard]] std::size_t choices() const noexcept { return best_.size() > 4 ? best_.size() - 4 : 0; }

  /// The sub-layers with the smallest random numbers.
  void draw_set() {
    const draw_stream draws = draw_stream(options_.seed).at(trials_);
    order_.clear();
    for (std::size_t i = 0; i < choices(); ++i) {
      order_.emplace_back(draws.uniform(purpose::user, static_cast<std::uint32_t>(i)), i + 2);
    }
    std::ranges::sort(order_);
    trial_.assign(best_.size(), false);
    for (std::size_t i = 0; i < count_; ++i) trial_[order_[i].second] = true;
  }

  /// Lets one skipped sub-layer in and leaves out another.
  void mutate_best() {
    const draw_stream draws = draw_stream(options_.seed).at(trials_);
    trial_ = best_;
    const auto pick = [&](bool skipped, std::size_t among, std::uint32_t index) {
      auto number = static_cast<std::size_t>(draws.uniform(purpose::user, index) * static_cast<double>(among));
      std::size_t place = 2;
      while (best_[place] != skipped || number-- > 0) ++place;
      return place;
    };
    trial_[pick(true, count_, 0)] = false;
    trial_[pick(false, choices() - count_, 1)] = true;
  }

  skip_search_options options_;
  std::size_t count_ = 0;  // sub-layers in a set
  std::vector<bool> best_, trial_;
  bool fresh_ = false;
  double score_ = 0;
  std::size_t trials_ = 0, unimproved_ = 0;
  std::vector<std::pair<double, std::size_t>> order_;
};

/// How much of a text a model without some sub-layers would have written: the share of its last `window` tokens that
/// are the argmax (ties by lower id) of the skipping model's row before them, in one pass. A greedy text and nothing
/// skipped give 1. The model holds at least all but the last token of the text, and is not changed: the pass runs on a
/// copy. Misuse: fewer than window + 1 tokens, a window of 0.
template <SkippableModel M>
  requires std::copy_constructible<M>
[[nodiscard]] double matchness(const M& model, std::span<const token_id> tokens, std::size_t window,
                               const std::vector<bool>& skip) {
  DECANT_ASSERT(window > 0 && window < tokens.size(), "every token of the window needs one before it");
  DECANT_ASSERT(model.size() + 1 >= tokens.size(), "the model does not hold the text");
  M copy = model;
  const std::size_t begin = tokens.size() - window - 1;
  copy.truncate(begin);
  copy.score_skipping(tokens.subspan(begin, window), skip);
  candidates row;
  std::size_t same = 0;
  for (std::size_t i = 0; i < window; ++i) {
    const detail::bound_row bound(row, detail::without_padding(copy, copy.row(i)));
    if (row.argmax() == tokens[begin + 1 + i]) ++same;
  }
  return static_cast<double>(same) / static_cast<double>(window);
}

}  // namespace decant
