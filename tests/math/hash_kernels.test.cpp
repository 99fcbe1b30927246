// SPDX-License-Identifier: MIT
#include <decant/math/hash_kernels.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <decant/math/kernels.hpp>

#include "math/bits.hpp"
#include "support/catch.hpp"

namespace hash_kernels_test {

using namespace decant::math;
using test_bits::forms;

TEST_CASE("a sequence of philox blocks is philox", "[math][hash_kernels]") {
  test_bits::splitmix next(1);
  for (int round = 0; round < 300; ++round) {
    const auto word0 = static_cast<std::uint32_t>(next()), word1 = static_cast<std::uint32_t>(next());
    const auto index = static_cast<std::uint32_t>(next());
    const std::uint64_t key = next();
    CHECK(philox_sequence(word0, word1, key)(index) == philox4x32({word0, word1, index, 0}, key));
  }
}

TEST_CASE("hashes of 64 indices are told by their upper halves on every instruction set", "[math][hash_kernels]") {
  test_bits::splitmix next(2);
  for (const isa which : forms()) {
    INFO(to_string(which));
    const kernel_table& kernels = kernels_for(which);
    for (int round = 0; round < 600; ++round) {
      const std::uint64_t seed = round < 3 ? static_cast<std::uint64_t>(round) - 1 : next();
      const auto first = static_cast<std::uint32_t>(next() >> (round % 32)) & ~63U;
      // A border anywhere, and at one of the numbers itself.
      std::uint32_t least = static_cast<std::uint32_t>(next()), at = 0;
      if (round % 50 == 1) least = 0;
      if (round % 50 == 2) least = 0xFFFFFFFF;
      if (round % 3 == 0) least = static_cast<std::uint32_t>(splitmix64(seed, first + next.below(64)) >> 32);
      std::uint64_t wanted = 0;
      for (at = 0; at < 64; ++at) {
        wanted |= std::uint64_t{splitmix64(seed, std::uint64_t{first} + at) >> 32 >= least} << at;
      }
      CHECK(kernels.splitmix_at_least(seed, first, least) == wanted);
    }
  }
}

TEST_CASE("64 philox blocks at a time are philox on every instruction set", "[math][hash_kernels]") {
  test_bits::splitmix next(3);
  for (const isa which : forms()) {
    INFO(to_string(which));
    for (int round = 0; round < 600; ++round) {
      const std::uint64_t seed = round < 3 ? static_cast<std::uint64_t>(round) - 1 : next();
      const auto first = static_cast<std::uint32_t>(next() >> (round % 32)) & ~63U;
      const auto why = static_cast<std::uint32_t>(next.below(10)), position = static_cast<std::uint32_t>(next());
      std::vector<std::uint32_t> wanted, found(64);
      for (std::uint32_t i = 0; i < 64; ++i) wanted.push_back(philox4x32({position, why, first + i, 0}, seed)[1]);
      kernels_for(which).philox_word1(philox_sequence(position, why, seed), first, found.data());
      CHECK(found == wanted);
      // A border anywhere, and at one of the words itself.
      const std::uint32_t any = static_cast<std::uint32_t>(next()), at = found[next.below(64)];
      for (const std::uint32_t least : {any, at, at + 1, std::uint32_t{0}, std::uint32_t{0xFFFFFFFF}}) {
        std::uint64_t reach = 0;
        for (std::size_t i = 0; i < 64; ++i) reach |= std::uint64_t{wanted[i] >= least} << i;
        CHECK(kernels_for(which).philox_at_least(philox_sequence(position, why, seed), first, least) == reach);
      }
    }
  }
}

}  // namespace hash_kernels_test
