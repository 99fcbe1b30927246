// SPDX-License-Identifier: MIT
#pragma once

// Watermarks. What pseudo-random choices they make is defined by decant's generators, so these are shared.

#include "eager_support.hpp"

#include <limits>

#include <decant/math/keyed_permutation.hpp>
#include <decant/math/mt19937.hpp>
#include <decant/math/philox.hpp>
#include <decant/math/splitmix64.hpp>
#include <decant/processors/green_list_watermark.hpp>
#include <decant/processors/synthid_watermark.hpp>
#include <decant/processors/unigram_watermark.hpp>

namespace eager {

/// A key, a use (1 green list, 2 candidate, 3 unigram, 4 synthid) and tokens, folded into 64 bits.
inline std::uint64_t fold(std::uint64_t key, std::uint32_t use, const tokens& text) {
  const auto block = [&](std::uint32_t word, std::uint32_t last) {
    const auto out = math::philox4x32({word, use, last, 0x7761746D}, key);
    key = (static_cast<std::uint64_t>(out[1]) << 32) + out[0];
  };
  block(static_cast<std::uint32_t>(text.size()), 1);
  for (const token_id id : text) block(static_cast<std::uint32_t>(id), 0);
  return key;
}

inline tokens last(const tokens& text, std::size_t count) {
  return {text.end() - static_cast<std::ptrdiff_t>(count), text.end()};
}

/// The ids that a permutation puts on the first places.
inline bool first_places(token_id id, std::size_t n, double fraction, std::uint64_t seed) {
  return math::keyed_permutation(n, seed)(static_cast<std::uint64_t>(id)) <
         static_cast<std::uint64_t>(fraction * static_cast<double>(n));
}

/// Raises the green tokens, or keeps them alone where any is left.
inline void mark(judged_row& row, const std::vector<bool>& green, double bias, bool hard) {
  if (!hard) {
    row.transform(
        [&](token_id id, float z) { return green[index_of(id)] ? math::saturated(static_cast<double>(z) + bias) : z; });
    return;
  }
  const tokens left = row.ids();
  if (std::any_of(left.begin(), left.end(), [&](token_id id) { return green[index_of(id)]; }))
    row.keep_if([&](token_id id) { return green[index_of(id)]; });
}

inline step make_unigram_watermark(const situation& s) {
  unigram_options options;
  options.fraction = 0.05 + 0.9 * s.roll.unit();
  options.bias = s.roll.number(4, {0, 2});
  options.key = s.roll.below(1000);
  options.hard = s.roll.one_in(3);
  return {unigram_watermark(options), [=](judged_row& row) {
            if ((options.bias == 0 && !options.hard) || !row.good()) return;
            const std::uint64_t seed = fold(options.key, 3, {});
            std::vector<bool> green;
            for (std::size_t i = 0; i < row.vocabulary_size(); ++i)
              green.push_back(first_places(static_cast<token_id>(i), row.vocabulary_size(), options.fraction, seed));
            mark(row, green, options.bias, options.hard);
          }};
}

/// The first `count` numbers of torch's shuffle.
inline std::vector<std::uint64_t> shuffled(std::uint64_t seed, std::size_t n, std::size_t count) {
  std::vector<std::uint64_t> order;
  for (std::size_t i = 0; i < n; ++i) order.push_back(i);
  math::mt19937 generator(static_cast<std::uint32_t>(seed));
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t other = i + generator() % (n - i);
    std::swap(order[i], order[other]);
  }
  order.resize(count);
  return order;
}

inline step make_green_list_watermark(const situation& s) {
  green_list_options options;
  options.fraction = 0.05 + 0.9 * s.roll.unit();
  options.bias = s.roll.number(4, {0, 2});
  options.key = s.roll.below(1000);
  options.hard = s.roll.one_in(3);
  options.context_width = 1 + s.roll.below(4);
  options.seed = s.roll.one_of({green_list_seed::left_hash, green_list_seed::min_hash, green_list_seed::self_hash});
  // Only left_hash: the table that self_hash has with hashing::hf takes longer than all else in a chain.
  if (options.seed == green_list_seed::left_hash && s.roll.one_in(3)) options.how = hashing::hf;
  const bool itself = options.seed == green_list_seed::self_hash;
  const std::size_t width = options.context_width - (itself ? 1 : 0);
  const tokens text = s.all();
  return {green_list_watermark(options), [=](judged_row& row) {
            if ((options.bias == 0 && !options.hard) || text.size() < width || !row.good()) return;
            const std::size_t n = row.vocabulary_size();
            std::vector<bool> green(n);
            if (options.how == hashing::hf) {
              const std::uint64_t seed = options.key * static_cast<std::uint64_t>(text.back());
              const auto count = static_cast<std::size_t>(options.fraction * static_cast<double>(n));
              for (const std::uint64_t id : shuffled(seed, n, count)) green[id] = true;
            } else {
              std::vector<std::uint64_t> hashes;
              for (const token_id id : last(text, width)) hashes.push_back(fold(options.key, 1, {id}));
              if (itself) hashes.push_back(fold(options.key, 2, {}));
              for (std::size_t i = 0; i < n; ++i) {
                std::uint64_t seed = std::numeric_limits<std::uint64_t>::max();
                for (const std::uint64_t hash : hashes)
                  seed = std::min(seed, itself ? math::splitmix64(hash, i) : hash);
                if (options.seed == green_list_seed::left_hash) seed = fold(options.key, 1, last(text, width));
                green[i] = first_places(static_cast<token_id>(i), n, options.fraction, seed);
              }
            }
            mark(row, green, options.bias, options.hard);
          }};
}

inline step make_synthid_watermark(const situation& s) {
  synthid_options options;
  options.keys.resize(1 + s.roll.below(12));
  for (std::uint64_t& key : options.keys) key = s.roll.below(1000);
  options.context_width = 1 + s.roll.below(4);
  options.leaves = s.roll.one_in(2) ? 2 : 1 + s.roll.below(5);
  options.history = s.roll.one_in(2) ? 1024 : s.roll.below(8);
  options.skip_first = s.roll.one_in(2);
  options.table_seed = s.roll.below(50);
  options.table_size = 1 + s.roll.below(300);
  if (s.roll.one_in(3)) options.how = hashing::hf;
  const bool hf = options.how == hashing::hf;
  const std::size_t width = options.context_width;

  // The text as contexts are read from it: with hashing::hf the output, and zeros before it.
  tokens text = hf ? s.output() : s.all();
  std::size_t first = hf ? 0 : s.context.prompt_size;
  const std::size_t size = text.size();
  if (!hf || options.skip_first) first = std::max(first, width);
  text.insert(text.begin(), width, 0);
  const auto context_before = [=](std::size_t place) {
    return tokens(text.begin() + static_cast<std::ptrdiff_t>(place),
                  text.begin() + static_cast<std::ptrdiff_t>(place + width));
  };
  bool marks = size >= first;
  for (std::size_t place = first; marks && place < size; ++place)
    marks = size - place > options.history || context_before(place) != context_before(size);

  const tokens context = marks ? context_before(size) : tokens{};
  return {synthid_watermark(options), [=](judged_row& row) {
            if (options.leaves == 1 || !row.good() || !marks) return;
            const auto next = [](std::uint64_t hash, std::uint64_t value) {
              return (hash + value) * 6364136223846793005U + 1;
            };
            std::vector<bool> table;
            math::mt19937 generator(static_cast<std::uint32_t>(options.table_seed));
            for (std::size_t i = 0; i < options.table_size; ++i) table.push_back(generator() % 2 != 0);
            std::uint64_t seed = hf ? 1 : 0;
            if (hf) {
              for (const token_id id : context) seed = next(seed, static_cast<std::uint64_t>(id));
            } else {
              for (const std::uint64_t key : options.keys) seed = fold(seed ^ key, 4, {});
              seed = fold(seed, 4, context);
            }
            const auto bit = [&](token_id id, std::size_t layer) {
              if (!hf) return (math::splitmix64(seed, static_cast<std::uint64_t>(id)) >> layer) % 2 != 0;
              const auto hash =
                  static_cast<std::int64_t>(next(next(seed, static_cast<std::uint64_t>(id)), options.keys[layer]));
              const auto entries = static_cast<std::int64_t>(table.size());
              return static_cast<bool>(table[static_cast<std::size_t>((hash % entries + entries) % entries)]);
            };
            const tokens left = row.ids();
            doubles p = row.below_max();
            for (double& each : p) each = math::exp(each);
            // The order of the sums shows in the logit of a token that is nearly certain.
            const auto mass_in_fours = [&](auto mass) {
              std::array<double, 4> sums{};
              for (std::size_t i = 0; i < left.size(); ++i) sums[i % 4] = math::rounded(sums[i % 4] + mass(left[i]));
              return math::rounded(sums[0] + sums[1]) + math::rounded(sums[2] + sums[3]);
            };
            for (std::size_t layer = 0; layer < options.keys.size(); ++layer) {
              const double lost = mass_in_fours([&](token_id id) { return bit(id, layer) ? 0 : p[index_of(id)]; });
              const double won = mass_in_fours([&](token_id id) { return bit(id, layer) ? p[index_of(id)] : 0; });
              // All leaves of bit 0, for a token of bit 0; else the token stands among them once, first to last.
              const double share = lost / (lost + won);
              double among = 1;
              for (std::size_t leaf = 1; leaf < options.leaves; ++leaf) among += power(share, leaf);
              for (const token_id id : left)
                p[index_of(id)] *= bit(id, layer) ? among : power(share, options.leaves - 1);
            }
            double total = 0;
            for (const token_id id : left) total = math::rounded(total + p[index_of(id)]);
            row.transform([&](token_id id, float) {
              const double own = p[index_of(id)];
              return own > 0 ? static_cast<float>(math::log(own) - math::log(total)) : gone;
            });
          }};
}

}  // namespace eager
