// SPDX-License-Identifier: MIT
#include <decant/processors/torch_random.hpp>

#include "processors/policies.hpp"

#include <decant/testing/counting_allocator.hpp>

namespace torch_random_tests {

using namespace policies;
using decant::torch_random_bits;
using decant::torch_randperm;

std::vector<std::uint32_t> first_of(std::uint64_t seed, std::size_t size, std::size_t count) {
  std::vector<std::uint32_t> out;
  torch_randperm(seed, size, count, out);
  return out;
}

TEST_CASE("the first numbers of torch.randperm are those of the whole", "[processors]") {
  const auto whole = first_of(3, 200, 200);
  for (std::size_t count = 0; count <= 200; count += 20) {
    CHECK(std::ranges::equal(first_of(3, 200, count), std::span(whole).first(count)));
  }
  auto sorted = whole;
  std::ranges::sort(sorted);
  for (std::uint32_t i = 0; i < 200; ++i) CHECK(sorted[i] == i);
  CHECK(first_of(1, 1, 1) == std::vector<std::uint32_t>{0});
  CHECK(first_of(1, 0, 0).empty());
}

TEST_CASE("torch reads the low half of a seed", "[processors]") {
  CHECK(first_of(77, 50, 50) == first_of(77 + (std::uint64_t{5} << 32), 50, 50));
  CHECK(first_of(77, 50, 50) != first_of(78, 50, 50));
}

TEST_CASE("torch.randperm and torch.randint as recorded", "[processors]") {
  // The green lists of watermark_kgw.json and the tables of watermark_synthid.json, whose seeds are key * token and 0.
  auto list = first_of(15'485'863U * 5U, 16, 4);
  std::ranges::sort(list);
  CHECK(list == std::vector<std::uint32_t>{1, 3, 8, 10});
  const std::vector<bool> bits = torch_random_bits(0, 12);
  CHECK(bits == std::vector<bool>{false, true, true, false, true, true, true, true, true, true, true, false});
  CHECK(torch_random_bits(7, 8) == std::vector<bool>{true, false, true, false, true, true, true, true});
}

TEST_CASE("torch_randperm reuses its storage, and refuses what it cannot do", "[processors]") {
  std::vector<std::uint32_t> out;
  torch_randperm(1, 1000, 10, out);
  const std::size_t before = decant::testing::allocations();
  for (std::uint64_t seed = 0; seed < 20; ++seed) torch_randperm(seed, 1000, 10, out);
  CHECK(decant::testing::allocations() == before);
  CHECK_THROWS_AS(torch_randperm(1, 10, 11, out), assertion_error);
  CHECK_THROWS_AS(torch_randperm(1, std::size_t{1} << 28, 0, out), assertion_error);
}

}  // namespace torch_random_tests
