// SPDX-License-Identifier: MIT
#pragma once

#include <exception>
#include <span>

#include <decant/chain/decoder.hpp>
#include <decant/core/context.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/row_registry.hpp>
#include <decant/generate/executor.hpp>

namespace decant {

/// One row of a batch: what it is decided by, and what came of it.
template <class D, class Row = std::span<float>>
struct batch_row {
  D* decoder = nullptr;  ///< the row's own: its chain, its state, its workspace
  Row logits{};          ///< anything that candidates::bind takes
  step_context context;  ///< its text, and the draws of its request

  step_outcome outcome{};           ///< the token, or no_token and the row's status
  std::exception_ptr failure = {};  ///< what its decoder threw, if it did; then there is no token
};

namespace detail {

/// Holds the decoders of a batch for its duration, to catch one that was given twice.
template <class Rows>
class decoders_in_use {
 public:
  explicit decoders_in_use(Rows rows) : rows_(rows) {
    for (; held_ < rows_.size(); ++held_) {
      const void* decoder = rows_[held_].decoder;
      const bool there = decoder != nullptr, free = there && row_registry::enter(decoder) != already_bound;
      if (!free) leave();
      DECANT_ASSERT(there, "a row of a batch needs a decoder");
      DECANT_ASSERT(free, "one decoder for two rows of a batch");
    }
  }
  decoders_in_use(const decoders_in_use&) = delete;
  decoders_in_use& operator=(const decoders_in_use&) = delete;
  ~decoders_in_use() { leave(); }

 private:
  static constexpr auto already_bound = row_registry::answer::already_bound;

  void leave() noexcept {
    for (std::size_t i = 0; i < held_; ++i) row_registry::leave(rows_[i].decoder);
  }

  Rows rows_;
  std::size_t held_ = 0;
};

}  // namespace detail

/// Decides one token for every row of a batch, each by its own decoder, as that decoder's `try_step` would.
///
/// Effect: fills in outcome and failure of every row. What a row gets depends on nothing but the row: not on its place,
/// its neighbours, the executor or the number of threads. A bad row, or a decoder that throws, concerns that row alone,
/// and accepts nothing there.
/// Rows are taken whole, one a task: a row costs a few passes over its logits, too little to split. Allocates nothing
/// in steady state. Misuse: a row without a decoder, a decoder or a mutable row given twice.
template <class D, class Row, class E = serial_executor>
  requires Executor<E>
void step_batch(std::span<batch_row<D, Row>> rows, E&& executor = {}) {
  const detail::decoders_in_use held(rows);
  const auto step = [&](std::size_t i) {
    batch_row<D, Row>& row = rows[i];
    row.outcome = {no_token, row_status::ok};
    row.failure = nullptr;
#if DECANT_EXCEPTIONS
    try {
      row.outcome = row.decoder->try_step(row.logits, row.context);
    } catch (...) {
      row.failure = std::current_exception();
    }
#else
    row.outcome = row.decoder->try_step(row.logits, row.context);
#endif
  };
  executor(rows.size(), indexed_task(step));
}

}  // namespace decant
