// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <span>
#include <utility>

#include <decant/speculative/draft.hpp>

namespace toy {

/// A drafter of any type for targets of type M: the driver is compiled once for all of them.
template <class M>
class any_drafter {
 public:
  template <class D>
  explicit any_drafter(D drafter) : drafter_(std::make_unique<holder<D>>(std::move(drafter))) {}

  void propose(const decant::draft_request& request, decant::draft& out) { drafter_->propose(request, out); }
  void observe(M& model, std::span<const std::size_t> rows) { drafter_->observe(model, rows); }
  void feedback(const decant::round_outcome& outcome) { drafter_->feedback(outcome); }
  void reset() { drafter_->reset(); }

 private:
  struct base {
    virtual ~base() = default;
    virtual void propose(const decant::draft_request&, decant::draft&) = 0;
    virtual void observe(M&, std::span<const std::size_t>) = 0;
    virtual void feedback(const decant::round_outcome&) = 0;
    virtual void reset() = 0;
  };

  template <class D>
  struct holder final : base {
    explicit holder(D of) : drafter(std::move(of)) {}
    void propose(const decant::draft_request& request, decant::draft& out) override { drafter.propose(request, out); }
    void observe(M& model, std::span<const std::size_t> rows) override {
      decant::detail::show_to(drafter, model, rows);
    }
    void feedback(const decant::round_outcome& outcome) override { decant::detail::feedback_to(drafter, outcome); }
    void reset() override { decant::detail::reset_drafter(drafter); }
    D drafter;
  };

  std::unique_ptr<base> drafter_;
};

}  // namespace toy
