// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace decant::detail {

/// Remembers which mutable rows are bound, over all threads, to catch two candidates that edit one row.
///
/// One atomic slot a hash value: a row whose slot is taken by another goes unwatched, so it never blocks or allocates,
/// never reports a row falsely, and catches the mistake in all but crowded programs.
class row_registry {
 public:
  enum class answer : std::uint8_t { watched, unwatched, already_bound };

  static answer enter(const void* row) noexcept {
    const void* found = nullptr;
    if (slot(row).compare_exchange_strong(found, row, std::memory_order_relaxed)) return answer::watched;
    return found == row ? answer::already_bound : answer::unwatched;
  }

  /// Of a row that is not watched: does nothing.
  static void leave(const void* row) noexcept {
    slot(row).compare_exchange_strong(row, nullptr, std::memory_order_relaxed);
  }

 private:
  static std::atomic<const void*>& slot(const void* row) noexcept {
    static constinit std::array<std::atomic<const void*>, 1024> slots{};
    const auto bits = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(row));
    return slots[(bits * 0x9E3779B97F4A7C15U) >> 54];
  }
};

}  // namespace decant::detail
