// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <decant/core/errors.hpp>
#include <decant/math/mt19937.hpp>

// What torch's random functions give on a CPU: for watermarks whose choices must be those of Hugging Face transformers.

namespace decant {

/// The start of torch.randperm(size) under a seed: `count` of its numbers, in `out`, whose storage is reused.
///
/// torch reads the low half of a seed. O(size), of which `count` steps draw a number. Sizes from 2^32 / 20 on, for
/// which torch does something else, are misuse, as is count > size.
inline void torch_randperm(std::uint64_t seed, std::size_t size, std::size_t count, std::vector<std::uint32_t>& out) {
  DECANT_ASSERT(size < 0xFFFFFFFFU / 20 && count <= size, "torch_randperm needs count <= size < 2^32 / 20");
  out.resize(size);
  std::iota(out.begin(), out.end(), 0U);
  math::mt19937 generator(static_cast<std::uint32_t>(seed));
  for (std::size_t i = 0; i < count; ++i) std::swap(out[i], out[i + generator() % (size - i)]);
  out.resize(count);
}

/// torch.randint(0, 2, (size,)) under a seed, as bits.
[[nodiscard]] inline std::vector<bool> torch_random_bits(std::uint64_t seed, std::size_t size) {
  math::mt19937 generator(static_cast<std::uint32_t>(seed));
  std::vector<bool> bits(size);
  for (std::size_t i = 0; i < size; ++i) bits[i] = generator() % 2 == 1;
  return bits;
}

}  // namespace decant
