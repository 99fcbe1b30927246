// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include <decant/math/half.hpp>
#include <decant/math/philox.hpp>

#include "logits.hpp"

namespace bench {

/// Where a row is found when a step begins. The names are those of the pools: what they mean on a machine depends on
/// its caches, which Google Benchmark prints.
enum class residency : std::uint8_t {
  L2,    ///< one row and an eighth
  L3,    ///< 8 MB of floats, or as many numbers of 16 bits, which are measured in turns with floats
  DRAM,  ///< 100 MB, or what --dram_megabytes says
};

inline const char* name_of(residency where) {
  return where == residency::L2 ? "L2" : where == residency::L3 ? "L3" : "DRAM";
}

inline std::size_t& dram_megabytes() {
  static std::size_t megabytes = 100;
  return megabytes;
}

/// Rounds to the nearest, ties to even; for finite values and -inf.
template <class Element>
Element narrowed(float x) {
  if constexpr (std::is_same_v<Element, float>) {
    return x;
  } else if constexpr (std::is_same_v<Element, decant::bfloat16>) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return {static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1)) >> 16)};
  } else {
    // Between the halves of x's binade: all rows lie well inside their range. Below the normal ones it is 0.
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    if (magnitude >= 0x7F800000U) return {static_cast<std::uint16_t>(sign | 0x7C00U)};
    if (magnitude < 0x38800000U) return {sign};
    const std::uint32_t rounded = magnitude - 0x38000000U + 0xFFFU + ((magnitude >> 13) & 1);
    return {static_cast<std::uint16_t>(sign | (rounded >> 13))};
  }
}

/// Rows of one kind, side by side in one piece of memory, of which a call gets a random window that begins at a
/// multiple of 64 bytes: neither the cache nor the branch predictor learns a buffer. Each row is followed by itself
/// again, so that a window is a row rotated; kinds that have an order are windowed row by row.
template <class Element>
class row_pool {
 public:
  row_pool(row_kind kind, residency where, std::size_t size) : size_(size) {
    constexpr std::size_t line = 64 / sizeof(Element), megabyte = std::size_t{1} << 20;
    const std::size_t padded = (size + line - 1) / line * line;
    // A window needs whole lines to begin at: vocabularies that are not made of them are windowed row by row too.
    const bool rotates = may_rotate(kind) && padded == size;
    const std::size_t extra = !rotates ? 0 : where == residency::L2 ? size / 8 / line * line : size;
    starts_ = extra / line + 1;
    stride_ = padded + extra;
    const std::size_t wanted =
        where == residency::L3 ? 8 * megabyte / sizeof(float) : dram_megabytes() * megabyte / sizeof(Element);
    rows_ = where != residency::L2 ? std::max<std::size_t>(wanted / stride_, 1) : size <= 4096 ? 64 : 1;
    elements_.reset(new (alignment) Element[rows_ * stride_]());
    for (std::size_t i = 0; i < rows_; ++i) {
      Element* const to = elements_.get() + i * stride_;
      if (i >= distinct_rows) {
        std::memcpy(to, elements_.get() + i % distinct_rows * stride_, stride_ * sizeof(Element));
        continue;
      }
      const std::vector<float> row = make_row(kind, size, i);
      for (std::size_t j = 0; j < size + extra; ++j) to[j] = narrowed<Element>(row[j % size]);
    }
  }

  /// The window of this number: a function of it.
  [[nodiscard]] std::span<Element> window(std::uint64_t number) const {
    const auto words = decant::math::philox4x32(
        {static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32), 0, 0}, 0x77696e646f77);
    constexpr std::size_t line = 64 / sizeof(Element);
    return {elements_.get() + words[0] % rows_ * stride_ + words[1] % starts_ * line, size_};
  }

  [[nodiscard]] std::size_t bytes() const { return rows_ * stride_ * sizeof(Element); }

 private:
  static constexpr std::align_val_t alignment{64};
  static constexpr std::size_t distinct_rows = 8;
  struct deleter {
    void operator()(Element* elements) const { ::operator delete[](elements, alignment); }
  };

  std::size_t size_, rows_ = 0, stride_ = 0, starts_ = 0;
  std::unique_ptr<Element[], deleter> elements_;
};

/// The pool of these rows; kept, as long as all that are kept are not too large.
template <class Element>
const row_pool<Element>& pool_of(row_kind kind, residency where, std::size_t size) {
  static std::map<std::tuple<row_kind, residency, std::size_t>, row_pool<Element>> pools;
  const std::tuple key{kind, where, size};
  if (const auto found = pools.find(key); found != pools.end()) return found->second;
  std::size_t kept = 0;
  for (const auto& [_, pool] : pools) kept += pool.bytes();
  if (kept > std::size_t{160} << 20) pools.clear();
  return pools.try_emplace(key, kind, where, size).first->second;
}

}  // namespace bench
