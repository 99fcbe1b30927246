// SPDX-License-Identifier: MIT
#include <decant/testing/counting_allocator.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace counting_allocator_tests {

// Which unit of the test program replaces operator new is the build's business: without one the count stays 0.
bool counting() {
  const std::size_t before = decant::testing::allocations();
  ::operator delete(::operator new(24));
  return decant::testing::allocations() > before;
}

struct alignas(256) wide {
  char bytes[256];
};

template <class F>
std::size_t allocations_of(F f) {
  const std::size_t before = decant::testing::allocations();
  f();
  return decant::testing::allocations() - before;
}

TEST_CASE("every form of new counts once, and its delete does not", "[testing]") {
  if (!counting()) return;
  const std::align_val_t alignment{256};
  CHECK(allocations_of([] {}) == 0);
  CHECK(allocations_of([] { ::operator delete(::operator new(8)); }) == 1);
  CHECK(allocations_of([] { ::operator delete(::operator new(0)); }) == 1);
  CHECK(allocations_of([] { ::operator delete[](::operator new[](8)); }) == 1);
  CHECK(allocations_of([&] { ::operator delete(::operator new(8, alignment), alignment); }) == 1);
  CHECK(allocations_of([&] { ::operator delete[](::operator new[](8, alignment), alignment); }) == 1);
  CHECK(allocations_of([] { ::operator delete(::operator new(8, std::nothrow), std::nothrow); }) == 1);
  CHECK(allocations_of([] { ::operator delete[](::operator new[](8, std::nothrow), std::nothrow); }) == 1);
  CHECK(allocations_of(
            [&] { ::operator delete(::operator new(8, alignment, std::nothrow), alignment, std::nothrow); }) == 1);
  CHECK(allocations_of(
            [&] { ::operator delete[](::operator new[](8, alignment, std::nothrow), alignment, std::nothrow); }) == 1);
}

TEST_CASE("containers are counted, and aligned as they ask", "[testing]") {
  if (!counting()) return;
  std::uintptr_t address = 0;
  CHECK(allocations_of([&] {
          const std::vector<int> numbers(100, 1);
          address = reinterpret_cast<std::uintptr_t>(numbers.data());  // seen from outside, so not optimised away
        }) == 1);
  std::vector<int> kept;
  kept.reserve(8);
  CHECK(allocations_of([&] { kept.assign(8, 3); }) == 0);
  CHECK(allocations_of([&] {
          const auto owner = std::make_unique<wide>();
          address = reinterpret_cast<std::uintptr_t>(owner.get());
        }) == 1);
  CHECK(address % 256 == 0);
}

}  // namespace counting_allocator_tests
