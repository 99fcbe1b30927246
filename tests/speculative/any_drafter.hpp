// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <decant/core/context.hpp>
#include <decant/core/draws.hpp>
#include <decant/speculative/draft.hpp>

namespace drafter_tests {

using decant::token_id;
using ids = std::vector<token_id>;

/// Any drafter for targets of one type, its own type forgotten: so that a test compiles one driver for all of them.
template <class M>
class any_drafter {
 public:
  template <class D>
  any_drafter(std::string called, D drafter) : name(std::move(called)) {
    const auto held = std::make_shared<D>(std::move(drafter));
    propose_ = [held](const decant::draft_request& request, decant::draft& out) { held->propose(request, out); };
    observe_ = [held](M& model, std::span<const std::size_t> rows) { decant::detail::show_to(*held, model, rows); };
    feedback_ = [held](const decant::round_outcome& outcome) { decant::detail::feedback_to(*held, outcome); };
    reset_ = [held] { decant::detail::reset_drafter(*held); };
  }

  void propose(const decant::draft_request& request, decant::draft& out) { propose_(request, out); }
  void observe(M& model, std::span<const std::size_t> rows) { observe_(model, rows); }
  void feedback(const decant::round_outcome& outcome) { feedback_(outcome); }
  void reset() { reset_(); }

  std::string name;

 private:
  std::function<void(const decant::draft_request&, decant::draft&)> propose_;
  std::function<void(M&, std::span<const std::size_t>)> observe_;
  std::function<void(const decant::round_outcome&)> feedback_;
  std::function<void()> reset_;
};

/// A request about a text, all of it prompt. The text must outlive it.
inline decant::draft_request request_after(const ids& text, std::size_t max_depth, std::size_t max_nodes = 64) {
  decant::draft_request request;
  request.context = decant::context_after(text, text.size(), decant::draw_stream(1).child(2));
  request.draws = decant::draw_stream(1).child(3).at(text.size());
  request.max_depth = max_depth;
  request.max_nodes = max_nodes;
  return request;
}

template <class D>
decant::draft proposed(D& drafter, const decant::draft_request& request) {
  decant::draft out;
  drafter.propose(request, out);
  return out;
}

inline ids tokens_of(const decant::draft& drafted) { return {drafted.tokens().begin(), drafted.tokens().end()}; }

/// What a drafter proposes as a chain.
template <class D>
ids chain_after(D& drafter, const ids& text, std::size_t max_depth = 32) {
  return tokens_of(proposed(drafter, request_after(text, max_depth)));
}

}  // namespace drafter_tests
