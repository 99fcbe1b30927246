// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>

// Counts allocations, to prove that there are none in steady state. Define DECANT_TESTING_COUNT_ALLOCATIONS before
// including this header in exactly one unit of a program: that unit then replaces operator new and delete, all forms of
// them, so that sanitizers see matching pairs. Without such a unit the count stays 0.

namespace decant::testing {

namespace detail {

inline std::atomic<std::size_t> allocation_count{0};

}  // namespace detail

/// How many allocations the program has made through operator new so far, over all threads.
[[nodiscard]] inline std::size_t allocations() noexcept {
  return detail::allocation_count.load(std::memory_order_relaxed);
}

}  // namespace decant::testing

#if defined(DECANT_TESTING_COUNT_ALLOCATIONS)

#include <cstdlib>
#include <new>

#include <decant/core/errors.hpp>

namespace decant::testing::detail {

inline void* counted_allocation(std::size_t size, std::size_t alignment) noexcept {
  allocation_count.fetch_add(1, std::memory_order_relaxed);
  if (size == 0) size = 1;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(size);
  // aligned_alloc wants a whole number of alignments.
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

inline void* allocated_or_failure(void* memory) {
  if (memory != nullptr) return memory;
#if DECANT_EXCEPTIONS
  throw std::bad_alloc();
#else
  std::abort();
#endif
}

}  // namespace decant::testing::detail

// Not inlined: g++ would see free() meet operator new in user code, and warn.
[[gnu::noinline]] void* operator new(std::size_t size) {
  return decant::testing::detail::allocated_or_failure(decant::testing::detail::counted_allocation(size, 0));
}
[[gnu::noinline]] void* operator new[](std::size_t size) { return operator new(size); }
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  return decant::testing::detail::allocated_or_failure(
      decant::testing::detail::counted_allocation(size, static_cast<std::size_t>(alignment)));
}
[[gnu::noinline]] void* operator new[](std::size_t size, std::align_val_t alignment) {
  return operator new(size, alignment);
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return decant::testing::detail::counted_allocation(size, 0);
}
[[gnu::noinline]] void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return decant::testing::detail::counted_allocation(size, 0);
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return decant::testing::detail::counted_allocation(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return decant::testing::detail::counted_allocation(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}

#endif
