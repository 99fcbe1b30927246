// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <decant/core/token.hpp>
#include <decant/math/kernels.hpp>
#include <decant/math/scalar.hpp>
#include <decant/math/strict.hpp>

namespace decant {

DECANT_STRICT_BEGIN

/// A token and its logit as it stands.
struct entry {
  token_id id;
  float logit;

  friend bool operator==(const entry&, const entry&) = default;
};

namespace detail {

/// The token of an item: itself, or its id.
constexpr token_id id_of(token_id id) noexcept { return id; }
template <class Item>
constexpr token_id id_of(const Item& item) noexcept {
  return item.id;
}

/// Larger logit first, then lower id.
inline bool before(const entry& x, const entry& y) noexcept {
  return x.logit > y.logit || (x.logit == y.logit && x.id < y.id);
}

// Floats in their order, denormals left out, are integers in theirs: 0 is 0, the smallest normal number 1.
inline std::int64_t order_of(float z) noexcept {
  constexpr std::int64_t denormals = 0x007FFFFF;
  const auto bits = std::bit_cast<std::uint32_t>(z);
  const std::int64_t magnitude = std::max(std::int64_t{bits & 0x7FFFFFFFU} - denormals, std::int64_t{0});
  return (bits >> 31) != 0 ? -magnitude : magnitude;
}
inline float at_order(std::int64_t place) noexcept {
  if (place == 0) return 0;
  const auto magnitude = static_cast<std::uint32_t>((place < 0 ? -place : place) + 0x007FFFFF);
  return std::bit_cast<float>(magnitude | (place < 0 ? 0x80000000U : 0));
}

/// Halves what lies between two values: by value, which logits are spread over, then in the order of floats. From
/// `lowest` on, which no value says anything about, it first steps down from the top in doubling steps. `next` is false
/// once no float lies between.
class bisection {
 public:
  static constexpr float lowest = -std::numeric_limits<float>::max();

  bisection(float low, float high) noexcept : low_(low), high_(high), top_(high) {}

  [[nodiscard]] float low() const noexcept { return low_; }
  [[nodiscard]] float high() const noexcept { return high_; }
  [[nodiscard]] float middle() const noexcept { return middle_; }
  /// Takes another value for the middle, if it lies between.
  void aim(float value) noexcept {
    if (value > low_ && value < high_) middle_ = value;
  }
  void raise() noexcept { low_ = middle_; }
  void lower() noexcept { high_ = middle_; }

  bool next() noexcept {
    if (low_ == lowest && step_ < 0x1p20F) {
      middle_ = top_ - step_;
      step_ *= 2;
      if (between()) return true;
    }
    if (by_value_-- > 0) {
      middle_ = low_ / 2 + high_ / 2;
      if (between()) return true;
    }
    middle_ = at_order(order_of(low_) + (order_of(high_) - order_of(low_)) / 2);
    return between();
  }

 private:
  [[nodiscard]] bool between() const noexcept { return middle_ > low_ && middle_ < high_; }

  float low_, high_, top_, middle_ = 0, step_ = 1;
  int by_value_ = 16;
};

/// Some tokens of a row in ascending id, ids and logits side by side, as kernels want them: what narrowings collect,
/// and what a row is once few are left. A token that is banned stays, as -inf, until the next narrowing.
class listed_row {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::span<const token_id> ids() const noexcept { return {ids_.data(), size_}; }
  [[nodiscard]] std::span<const float> values() const noexcept { return {values_.data(), size_}; }
  [[nodiscard]] std::span<float> values() noexcept { return {values_.data(), size_}; }
  [[nodiscard]] entry operator[](std::size_t place) const noexcept { return {ids_[place], values_[place]}; }

  void clear() noexcept { size_ = 0; }

  /// Appends a token; ids must ascend.
  void add(token_id id, float z) {
    const auto to = room(1);
    *to.ids = id;
    *to.values = z;
    ++size_;
  }

  /// Where a kernel may write so many tokens (and sixteen more); `extend` then says how many it wrote.
  math::portable::listed_values room(std::size_t more) {
    const std::size_t wanted = size_ + more + lanes;
    if (ids_.size() < wanted) {
      ids_.resize(std::max(wanted, 2 * ids_.size()));
      values_.resize(ids_.size());
    }
    return {ids_.data() + size_, values_.data() + size_};
  }
  void extend(std::size_t count) noexcept { size_ += count; }

  /// The place of a token, size() if it is not listed. O(log size).
  [[nodiscard]] std::size_t find(token_id id) const noexcept {
    const std::size_t place = first_from(id);
    return place < size_ && ids_[place] == id ? place : size_;
  }
  /// The place of the first token from an id on. O(log size).
  [[nodiscard]] std::size_t first_from(token_id id) const noexcept {
    const auto all = ids();
    return static_cast<std::size_t>(std::ranges::lower_bound(all, id) - all.begin());
  }

  /// The values followed by -inf up to a multiple of sixteen, or of what is asked for: for kernels.
  [[nodiscard]] std::span<const float> padded(std::size_t multiple = lanes) {
    const std::size_t even = (size_ + multiple - 1) / multiple * multiple;
    static_cast<void>(room(even - size_));
    std::fill(values_.begin() + static_cast<std::ptrdiff_t>(size_), values_.begin() + static_cast<std::ptrdiff_t>(even),
              gone);
    return {values_.data(), even};
  }

  /// Whether a value is NaN or +inf.
  [[nodiscard]] bool holds_bad() const noexcept {
    for (std::size_t i = 0; i < size_; ++i) {
      if (math::is_bad(values_.data() + i)) return true;
    }
    return false;
  }

  [[nodiscard]] std::size_t count_at_least(float threshold) const noexcept {
    return math::kernels().count_at_least(values_.data(), size_, threshold);
  }

  /// The smallest value from a threshold on; `otherwise` if there is none.
  [[nodiscard]] float smallest_from(float threshold, float otherwise) const noexcept {
    float found = otherwise;
    for (const float z : values()) found = z >= threshold && z < found ? z : found;
    return found;
  }

  /// The last of the first `count` tokens in descending order; there are at least so many, `count` > 0, and values lie
  /// in [low, high]. Its id is `any_id` if all that reach its logit are among them.
  [[nodiscard]] entry nth(std::size_t count, float low, float high) const {
    high = math::next_above(high);
    bisection search(low, high);
    while (search.next()) {
      const std::size_t found = count_at_least(search.middle());
      if (found == count) return {any_id, search.middle()};
      found < count ? search.lower() : search.raise();
    }
    // As many of those at one value as are left.
    std::size_t left = count - (search.high() < high ? count_at_least(search.high()) : 0);
    const auto all = values();
    std::size_t place = 0;
    while (all[place] != search.low() || --left > 0) ++place;
    return {ids_[place], search.low()};
  }

  /// Keeps what is not after `last`: larger logits, and of its own those up to its id.
  void keep(entry last) {
    const std::span<const float> all = padded();
    size_ =
        math::kernels().filter(ids_.data(), all.data(), all.size(), last.logit, beyond, {ids_.data(), values_.data()});
    if (last.id == any_id) return;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      const bool stays = values_[i] != last.logit || ids_[i] <= last.id;
      ids_[kept] = ids_[i];
      values_[kept] = values_[i];
      kept += stays;
    }
    size_ = kept;
  }

  /// The last in descending order. There is one.
  [[nodiscard]] entry last() const noexcept {
    std::size_t found = 0;
    for (std::size_t i = 1; i < size_; ++i) {
      if (values_[i] <= values_[found]) found = i;
    }
    return (*this)[found];
  }

  static constexpr token_id any_id = std::numeric_limits<token_id>::max();
  /// Above all finite values.
  static constexpr float beyond = std::bit_cast<float>(0x7F800000U);

 private:
  static constexpr std::size_t lanes = 16;

  std::vector<token_id> ids_;
  std::vector<float> values_;
  std::size_t size_ = 0;
};

}  // namespace detail

DECANT_STRICT_END

}  // namespace decant
