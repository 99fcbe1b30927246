// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/math/scalar.hpp>
#include <decant/math/splitmix64.hpp>
#include <decant/processors/green_list.hpp>
#include <decant/processors/history.hpp>
#include <decant/processors/torch_random.hpp>
#include <decant/processors/watermark_detection.hpp>
#include <decant/processors/watermark_key.hpp>

namespace decant {

/// What of the context seeds a green list.
enum class green_list_seed : std::uint8_t {
  left_hash,  ///< the `context_width` tokens before, in their order
  min_hash,   ///< the one among them with the smallest hash: edits of the others do not matter
  self_hash,  ///< as min_hash, hashed with the token in question, which is itself the last of the context
};

/// The numbers of a green-list watermark; those not given have their usual values.
struct green_list_options {
  double fraction = 0.25;        ///< of the vocabulary that is green
  double bias = 2;               ///< added to the logits of green tokens; 0: off
  std::uint64_t key = 15485863;  ///< who knows it can detect the watermark, and forge it
  green_list_seed seed = green_list_seed::left_hash;
  std::size_t context_width = 1;  ///< tokens that seed a list; usual with self_hash: 4
  bool hard = false;              ///< ban all other tokens instead of adding `bias`
  hashing how = hashing::decant;
};

/// Marks text by raising pseudo-random "green" tokens, a new list for each context: readable only with the key.
///
/// Effect: key and context choose floor(fraction * n) of the n tokens; `bias` is added to the logits of these, so the
/// law becomes proportional to p e^(bias [green]). Hard: only green tokens are left, or all where no green one is. A
/// text shorter than the context leaves the row as it is. With self_hash each token is judged by a list of its own.
/// Sees prompt and output. Put it last, or where later policies see the raised logits. O(vocabulary), some ns a token
/// and with self_hash some 40; nothing allocated in steady state.
///
/// hashing::hf: left_hash takes the last token alone, whatever the width, and shuffles the vocabulary; self_hash raises
/// only tokens among the 40 largest and shuffles once for each of them; there is no min_hash.
///
/// Off: bias = 0, unless hard. Errors: parameter_error for a fraction outside (0, 1), a bias that is not a finite
/// number
/// >= 0, a width of 0, min_hash with hashing::hf.
/// Reference: Kirchenbauer, Geiping, Wen, Katz, Miers, Goldstein, "A watermark for large language models", ICML 2023,
/// arXiv 2301.10226; the seeds: Kirchenbauer et al., "On the reliability of watermarks", ICLR 2024, arXiv 2306.04634.
class green_list_watermark : public made_or_error<green_list_watermark> {
 public:
  static constexpr std::string_view name = "green_list_watermark";

  explicit green_list_watermark(const green_list_options& options = {}) : options_(options) {
    detail::raise_if(validate(options));
    if (options.how != hashing::hf || options.seed != green_list_seed::self_hash) return;
    std::vector<std::uint32_t> table;
    torch_randperm(options.key, table_size, table_size, table);
    table_ = std::make_shared<const std::vector<std::uint32_t>>(std::move(table));
  }

  static std::optional<parameter_fault> validate(const green_list_options& options = {}) {
    if (!(options.fraction > 0 && options.fraction < 1) || math::is_nan(options.fraction)) {
      return parameter_fault{name, "fraction", options.fraction, "must lie in (0, 1)"};
    }
    if (!math::is_finite(options.bias) || options.bias < 0) {
      return parameter_fault{name, "bias", options.bias, "must be a finite number >= 0"};
    }
    if (options.context_width == 0) return parameter_fault{name, "context_width", 0, "must be at least 1"};
    if (options.how == hashing::hf && options.seed == green_list_seed::min_hash) {
      return parameter_fault{name, "seed", static_cast<double>(options.seed),
                             "must not be min_hash with hashing::hf, which has none"};
    }
    return {};
  }

  void operator()(candidates& row, const step_context& context) {
    if (off() || context.tokens.size() < shortest_text() || row.status() != row_status::ok) return;
    const std::size_t n = row.vocabulary_size(), green = green_size(options_.fraction, n);
    if (options_.how == hashing::hf) {
      list_as_hf(row, context.tokens, green);
      edit(row, [this](token_id id) { return listed_[static_cast<std::size_t>(id)]; });
    } else if (options_.seed == green_list_seed::self_hash) {
      hash_context(context.tokens, hashes_);
      edit(row, [&](token_id id) { return on_green_list(id, n, green, self_seed(id, hashes_)); });
    } else {
      list_.make(n, green, context_seed(context.tokens));
      edit(row, list_);
    }
  }

  /// Whether `token` after the text `before` is green; false where the text is too short to tell. With hashing::hf
  /// O(vocabulary).
  [[nodiscard]] bool green(std::span<const token_id> before, token_id token, std::size_t vocabulary_size) const {
    if (before.size() < shortest_text()) return false;
    return count_green({seeded_token{seed_of(before, token), token}}, vocabulary_size) == 1;
  }

  /// The evidence for this watermark in a text, from the tokens alone; the score is the number of green ones. The
  /// vocabulary must be as large as when the text was made. With hashing::hf O(vocabulary) a seed.
  [[nodiscard]] watermark_evidence detect(std::span<const token_id> text, std::size_t vocabulary_size,
                                          const detection_options& options = {}) const {
    std::vector<seeded_token> tokens;
    for (std::size_t place = std::max(options.prompt_size, shortest_text()); place < text.size(); ++place) {
      tokens.push_back({seed_of(text.first(place), text[place]), text[place]});
    }
    if (!options.count_repeats) count_once(tokens);
    const double share =
        static_cast<double>(green_size(options_.fraction, vocabulary_size)) / static_cast<double>(vocabulary_size);
    return green_evidence(tokens.size(), count_green(tokens, vocabulary_size), share);
  }

  [[nodiscard]] bool off() const { return options_.bias == 0 && !options_.hard; }
  [[nodiscard]] std::string describe() const {
    std::string text = detail::call_text(name, {options_.fraction, options_.bias});
    if (options_.seed == green_list_seed::min_hash) text = detail::with_option(std::move(text), "seed", "min_hash");
    if (options_.seed == green_list_seed::self_hash) text = detail::with_option(std::move(text), "seed", "self_hash");
    if (options_.context_width != 1) {
      text = detail::with_option(std::move(text), "context_width", detail::number_text(options_.context_width));
    }
    if (options_.hard) text = detail::with_option(std::move(text), "hard", "true");
    if (options_.how == hashing::hf) text = detail::with_option(std::move(text), "hashing", "hf");
    return text;
  }

 private:
  static constexpr std::size_t table_size = 1'000'003, hf_reach = 40;

  /// How many tokens before the one in question seed its list.
  [[nodiscard]] std::size_t left_tokens() const {
    return options_.context_width - (options_.seed == green_list_seed::self_hash ? 1 : 0);
  }
  /// Hugging Face wants a whole context even where the token in question is part of it.
  [[nodiscard]] std::size_t shortest_text() const {
    return options_.how == hashing::hf ? options_.context_width : left_tokens();
  }

  template <class Green>
  void edit(candidates& row, const Green& green) {
    options_.hard ? edit_.keep(row, green) : edit_.raise(row, options_.bias, green);
  }

  /// The seed of the list that judges a token.
  [[nodiscard]] std::uint64_t seed_of(std::span<const token_id> before, token_id token) const {
    if (options_.how == hashing::hf) return hf_seed(before, token);
    if (options_.seed != green_list_seed::self_hash) return context_seed(before);
    std::vector<std::uint64_t> hashes;
    hash_context(before, hashes);
    return self_seed(token, hashes);
  }

  [[nodiscard]] std::size_t count_green(const std::vector<seeded_token>& tokens, std::size_t vocabulary_size) const {
    const std::size_t green = green_size(options_.fraction, vocabulary_size);
    std::vector<std::uint32_t> list;
    std::optional<std::uint64_t> listed;
    std::size_t found = 0;
    for (const auto& [seed, token] : tokens) {
      DECANT_ASSERT(token >= 0 && static_cast<std::size_t>(token) < vocabulary_size, "token id outside the vocabulary");
      if (options_.how == hashing::decant) {
        found += on_green_list(token, vocabulary_size, green, seed);
        continue;
      }
      if (listed != seed) torch_randperm(seed, vocabulary_size, green, list);
      listed = seed;
      found += std::ranges::find(list, static_cast<std::uint32_t>(token)) != list.end();
    }
    return found;
  }

  // ---- hashing::decant

  [[nodiscard]] std::uint64_t context_seed(std::span<const token_id> before) const {
    const auto context = before.last(left_tokens());
    if (options_.seed == green_list_seed::left_hash) {
      return watermark_key(options_.key, watermark_use::green_list, context);
    }
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t i = 0; i < context.size(); ++i) {
      least = std::min(least, watermark_key(options_.key, watermark_use::green_list, context.subspan(i, 1)));
    }
    return least;
  }

  /// One hash for each token of a self_hash context, and last the one that stands for the token in question.
  void hash_context(std::span<const token_id> before, std::vector<std::uint64_t>& hashes) const {
    const auto context = before.last(left_tokens());
    hashes.clear();
    for (std::size_t i = 0; i < context.size(); ++i) {
      hashes.push_back(watermark_key(options_.key, watermark_use::green_list, context.subspan(i, 1)));
    }
    hashes.push_back(watermark_key(options_.key, watermark_use::candidate));
  }

  static std::uint64_t self_seed(token_id token, std::span<const std::uint64_t> hashes) {
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (const std::uint64_t hash : hashes) {
      least = std::min(least, math::splitmix64(hash, static_cast<std::uint64_t>(token)));
    }
    return least;
  }

  // ---- hashing::hf

  /// Writes listed_: the green tokens that are to be treated as such.
  void list_as_hf(candidates& row, std::span<const token_id> before, std::size_t green) {
    const std::size_t n = row.vocabulary_size();
    listed_.assign(n, false);
    if (options_.seed == green_list_seed::left_hash) {
      torch_randperm(hf_seed(before, no_token), n, green, permutation_);
      for (const std::uint32_t id : permutation_) listed_[id] = true;
      return;
    }
    for (const entry& each : row.descending(hf_reach)) {
      torch_randperm(hf_seed(before, each.id), n, green, permutation_);
      listed_[static_cast<std::size_t>(each.id)] =
          std::ranges::find(permutation_, static_cast<std::uint32_t>(each.id)) != permutation_.end();
    }
  }

  [[nodiscard]] std::uint64_t hf_seed(std::span<const token_id> before, token_id token) const {
    if (options_.seed == green_list_seed::left_hash) {
      return product_modulo(options_.key, static_cast<std::uint32_t>(before.back()));
    }
    // Products of 64-bit integers that wrap; the least of them as a signed number.
    const std::uint64_t own = options_.key * table_value(token);
    auto least = static_cast<std::int64_t>(own * table_value(token));
    for (const token_id other : before.last(left_tokens())) {
      least = std::min(least, static_cast<std::int64_t>(own * table_value(other)));
    }
    return static_cast<std::uint64_t>(least) - (least < 0 ? 1 : 0);
  }

  [[nodiscard]] std::uint64_t table_value(token_id token) const {
    return std::uint64_t{(*table_)[static_cast<std::size_t>(token) % table_size]} + 1;
  }

  /// a * b modulo 2^64 - 1: the halves of the product, added with the carry taken round.
  static std::uint64_t product_modulo(std::uint64_t a, std::uint32_t b) {
    const std::uint64_t low = (a & 0xFFFFFFFFU) * b, high = (a >> 32) * b;
    const std::uint64_t lower = low + (high << 32);
    std::uint64_t sum = lower + (high >> 32) + (lower < low ? 1 : 0);
    if (sum < lower) ++sum;
    return sum == std::numeric_limits<std::uint64_t>::max() ? 0 : sum;
  }

  green_list_options options_;
  std::shared_ptr<const std::vector<std::uint32_t>> table_;  // self_hash with hashing::hf alone
  green_list list_;
  green_list_edit edit_;
  std::vector<std::uint64_t> hashes_;
  std::vector<std::uint32_t> permutation_;
  std::vector<bool> listed_;
};

}  // namespace decant
