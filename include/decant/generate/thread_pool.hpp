// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include <decant/core/errors.hpp>
#include <decant/generate/executor.hpp>

namespace decant {

/// An executor of `threads` threads, the caller's among them. They take tasks one by one, so that a slow row delays
/// nobody but itself, and sleep between calls.
///
/// Calls allocate nothing. One call at a time, and none from inside a task: misuse. Programs link with their platform's
/// thread library (Threads::Threads in CMake) where the C library does not contain it.
class thread_pool {
 public:
  /// As many threads as the machine runs at once, at least one.
  thread_pool() : thread_pool(std::max(1U, std::thread::hardware_concurrency())) {}
  /// Misuse: no thread at all.
  explicit thread_pool(std::size_t threads) {
    DECANT_ASSERT(threads > 0, "a pool needs at least one thread");
    helpers_.reserve(threads - 1);
    for (std::size_t i = 1; i < threads; ++i) helpers_.emplace_back([this] { help(); });
  }
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;
  ~thread_pool() {
    task_.reset();
    begin_round();
    for (std::thread& helper : helpers_) helper.join();
  }

  [[nodiscard]] std::size_t threads() const noexcept { return helpers_.size() + 1; }

  void operator()(std::size_t count, indexed_task task) {
    DECANT_ASSERT(!task_, "a thread pool runs one call at a time");
    task_ = task;
    count_ = count;
    next_.store(0, std::memory_order_relaxed);
    busy_.store(helpers_.size(), std::memory_order_relaxed);
    begin_round();
    take_tasks();
    for (std::size_t busy = busy_.load(std::memory_order_acquire); busy > 0;
         busy = busy_.load(std::memory_order_acquire)) {
      busy_.wait(busy, std::memory_order_acquire);
    }
    task_.reset();
  }

 private:
  /// Lets every helper take part once; what was written before is theirs to read.
  void begin_round() {
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
  }

  void help() {
    for (std::uint32_t seen = 0;; ++seen) {
      round_.wait(seen, std::memory_order_acquire);
      if (!task_) return;
      take_tasks();
      if (busy_.fetch_sub(1, std::memory_order_release) == 1) busy_.notify_one();
    }
  }

  void take_tasks() {
    for (;;) {
      const std::size_t i = next_.fetch_add(1, std::memory_order_relaxed);
      if (i >= count_) return;
      (*task_)(i);
    }
  }

  std::vector<std::thread> helpers_;
  std::optional<indexed_task> task_;  // none: the end
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_{0};     // the first task that nobody has taken
  std::atomic<std::size_t> busy_{0};     // helpers that have not ended the round
  std::atomic<std::uint32_t> round_{0};  // counts calls, and the end
};

}  // namespace decant
