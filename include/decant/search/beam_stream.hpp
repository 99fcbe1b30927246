// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/generate/limits.hpp>
#include <decant/generate/output.hpp>
#include <decant/search/beam.hpp>
#include <decant/search/beam_options.hpp>

namespace decant {

/// A prompt and how to search from it.
struct beam_request {
  std::span<const token_id> prompt;
  beam_options options{};
};

/// Beam searches over one model, step by step: every step is one pass over the live hypotheses of all of them.
///
///     for (beam_stream search(model, prompt, options); search.next();) ...
///
/// A request never affects another: its result is what it would be alone, as far as the model's rows are. The model's
/// sequences follow by fork and drop, each hypothesis that has one continuation keeping its own; at the end, or when
/// this is destroyed, all are dropped. No copies. Errors and misuse: as beam.
template <BatchModel M>
class beam_stream {
 public:
  beam_stream(M& model, std::span<const token_id> prompt, beam_options options) : model_(&model) {
    add({prompt, std::move(options)});
  }
  beam_stream(M& model, std::span<const beam_request> requests) : model_(&model) {
    for (const beam_request& request : requests) add(request);
  }
  beam_stream(const beam_stream&) = delete;
  beam_stream& operator=(const beam_stream&) = delete;
  ~beam_stream() {
    for (request_state& request : requests_) {
      for (const std::size_t lane : request.search.lanes()) drop(request, lane);
    }
  }

  /// Makes a step of every search that has not ended. False if there is none.
  bool next() {
    evaluate();
    if (items_.empty()) return false;
    for (request_state& request : requests_) {
      if (request.search.ended()) continue;
      request.search.advance([&](std::size_t lane) { return row(request.lanes[lane].item); },
                             [&](std::size_t lane) { return request.lanes[lane]; });
      follow(request);
    }
    return true;
  }

  /// Ends the search of a request, or all.
  void cancel(std::size_t i) {
    request_state& request = at(i);
    if (request.search.ended()) return;
    // A search that has had no pass has no sequence either.
    request.search.cancel();
    follow(request);
  }
  void cancel() {
    for (std::size_t i = 0; i < requests_.size(); ++i) cancel(i);
  }

  /// The number of requests.
  [[nodiscard]] std::size_t size() const { return requests_.size(); }
  [[nodiscard]] const beam& search(std::size_t i = 0) const {
    DECANT_ASSERT(i < requests_.size(), "no such request");
    return requests_[i].search;
  }
  /// What a request has come to so far.
  [[nodiscard]] beam_result result(std::size_t i = 0) const { return search(i).result(); }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  struct request_state {
    explicit request_state(beam_request request) : search(request.prompt, std::move(request.options)) {}

    beam search;
    std::vector<batch_place> lanes{};
  };

  [[nodiscard]] request_state& at(std::size_t i) {
    DECANT_ASSERT(i < requests_.size(), "no such request");
    return requests_[i];
  }

  void add(beam_request request) {
    detail::adopt_context_of(request.options, *model_);
    requests_.emplace_back(std::move(request));
  }

  batch_place& state_of(request_state& request, std::size_t lane) {
    if (request.lanes.size() <= lane) request.lanes.resize(lane + 1, {none, none});
    return request.lanes[lane];
  }

  void drop(request_state& request, std::size_t lane) {
    const std::size_t sequence = std::exchange(state_of(request, lane).sequence, none);
    if (sequence != none) model_->drop(sequence);
  }

  void evaluate() {
    items_.clear();
    for (request_state& request : requests_) {
      for (const std::size_t lane : request.search.lanes()) {
        batch_place& state = state_of(request, lane);
        if (state.sequence == none) state.sequence = model_->start();
        state.item = items_.size();
        items_.push_back({state.sequence, request.search.input(lane)});
      }
    }
    if (!items_.empty()) model_->evaluate(std::span<const batch_item>(items_));
  }

  auto row(std::size_t item) { return detail::without_padding(*model_, model_->row(item)); }

  void follow(request_state& request) {
    for (const std::size_t lane : request.search.drops()) drop(request, lane);
    for (const auto& [from, to] : request.search.forks()) {
      state_of(request, to).sequence = model_->fork(state_of(request, from).sequence);
    }
  }

  M* model_;
  std::deque<request_state> requests_;  // a beam stays where it is
  std::vector<batch_item> items_;
};

}  // namespace decant
