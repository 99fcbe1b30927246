// SPDX-License-Identifier: MIT
#pragma once

// What the eager forms of all policies are written with: random situations, and a row that knows when it cannot decide.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <decant/chain/any.hpp>
#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/draws.hpp>
#include <decant/core/token.hpp>
#include <decant/math/scalar.hpp>
#include <decant/processors/ties.hpp>
#include <decant/testing/eager_row.hpp>

namespace eager {

using namespace decant;

using tokens = std::vector<token_id>;
using doubles = std::vector<double>;

inline std::size_t index_of(token_id id) { return static_cast<std::size_t>(id); }

/// Small random numbers from decant's own generator: the same on every platform.
class dice {
 public:
  explicit dice(std::uint64_t seed) : draws_(seed) {}
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(unit() * static_cast<double>(bound)); }
  double unit() { return draws_.uniform(purpose::user, count_++); }
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }
  /// Mostly a number of [0, most), sometimes one of those that mean something of their own.
  double number(double most, std::initializer_list<double> special) {
    return one_in(6) ? one_of(special) : unit() * most;
  }

 private:
  draw_stream draws_;
  std::uint32_t count_ = 0;
};

/// What a step is made for: a vocabulary, and a text over its first few tokens.
struct situation {
  dice& roll;
  std::size_t n, alphabet;
  step_context context;

  [[nodiscard]] token_id any_id() const { return static_cast<token_id>(roll.below(n)); }
  [[nodiscard]] token_id text_token() const { return static_cast<token_id>(roll.below(alphabet)); }
  [[nodiscard]] tokens ids(std::size_t count) const {
    tokens out(count);
    for (token_id& id : out) id = roll.one_in(2) ? any_id() : text_token();
    return out;
  }
  [[nodiscard]] tokens text(std::size_t count) const {
    tokens out(count);
    for (token_id& id : out) id = text_token();
    return out;
  }
  [[nodiscard]] tokens all() const { return {context.tokens.begin(), context.tokens.end()}; }
  [[nodiscard]] tokens output() const {
    return {context.tokens.begin() + static_cast<std::ptrdiff_t>(context.prompt_size), context.tokens.end()};
  }
  [[nodiscard]] std::size_t min_keep() const { return roll.one_in(2) ? 1 : roll.below(6); }
};

/// The eager row, and whether what it was asked was too close to call: then two right answers differ, because the
/// numbers compared agree but for the rounding of double.
class judged_row : public testing::eager_row {
 public:
  using eager_row::eager_row;

  [[nodiscard]] bool good() { return status() == row_status::ok; }
  [[nodiscard]] bool undecided() const { return undecided_; }
  void doubt(bool doubtful) { undecided_ = undecided_ || doubtful; }
  /// Doubts a comparison of two numbers that may each be wrong by `error`.
  void doubt_near(double x, double y, double error) { doubt(std::abs(x - y) <= error); }

  /// Keeps the tokens whose value, which must fall with the logit, is >= threshold, and at least the largest
  /// `min_keep`; with ties::keep also those that are level with the last of these. Values may be wrong by `error`.
  void keep_at_least(const doubles& value, double threshold, double error, std::size_t min_keep,
                     ties at_border = ties::lower_id) {
    if (!good()) return;
    const tokens order = descending();
    const doubles below = below_max();
    const auto count = [&](double least) {
      std::size_t kept = 0;
      while (kept < order.size() && value[index_of(order[kept])] >= least) ++kept;
      const std::size_t wanted = std::min(std::max<std::size_t>(min_keep, 1), order.size());
      if (kept >= wanted) return kept;
      kept = wanted;
      while (at_border == ties::keep && kept < order.size() &&
             below[index_of(order[kept])] == below[index_of(order[kept - 1])])
        ++kept;
      return kept;
    };
    doubt(count(threshold + error) != count(threshold - error));
    keep_first(order, count(threshold));
  }

 private:
  bool undecided_ = false;
};

/// A step of a chain, twice: as the library does it, and as it is defined.
struct step {
  any_processor library;
  std::function<void(judged_row&)> eager;
};

/// One policy, with the parameters drawn anew for each step. The name is that of the header of the policy.
struct kind {
  std::string_view name;
  step (*make)(const situation&);
};

inline ties random_ties(dice& roll) { return roll.one_in(3) ? ties::keep : ties::lower_id; }

inline bool contains(std::span<const token_id> ids, token_id id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

/// Each id once, in order of first appearance: under extreme scales the order of edits may show.
inline tokens distinct(std::span<const token_id> ids) {
  tokens out;
  for (const token_id id : ids) {
    if (!contains(out, id)) out.push_back(id);
  }
  return out;
}

/// Whether the first `count` tokens end with `end`.
inline bool ends_with(const tokens& text, std::size_t count, std::span<const token_id> end) {
  return count >= end.size() &&
         std::equal(end.begin(), end.end(), text.begin() + static_cast<std::ptrdiff_t>(count - end.size()));
}

inline void ban_all(judged_row& row, const tokens& ids) {
  for (const token_id id : ids) row.ban(id);
}

inline double power(double base, std::size_t exponent) {
  double result = 1;
  for (; exponent > 0; --exponent) result = math::product(result, base);
  return result;
}

/// The bytes of a token in these tests: letters, breakers, halves of characters, nothing.
inline std::string_view bytes_of(token_id id) {
  static constexpr std::array<std::string_view, 14> pool{"a",    "b", "\n",       "ab", "\xC3", "\xF0\x9F", "\x98",
                                                         "\xA9", "",  "\xE2\x82", ": ", "\xAC", "\xE0",     "b\n"};
  return pool[index_of(id) % pool.size()];
}

}  // namespace eager
