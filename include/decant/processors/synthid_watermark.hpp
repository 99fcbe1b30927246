// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
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
#include <decant/processors/history.hpp>
#include <decant/processors/token_list.hpp>
#include <decant/processors/torch_random.hpp>
#include <decant/processors/tournament.hpp>
#include <decant/processors/watermark_detection.hpp>
#include <decant/processors/watermark_key.hpp>

namespace decant {

/// The numbers of a SynthID watermark; the keys have no usual values.
struct synthid_options {
  std::vector<std::uint64_t> keys{};  ///< one a layer of the tournament, 1 to 64; usual: 30
  std::size_t context_width = 4;      ///< tokens that seed the bits; Hugging Face's ngram_len - 1
  std::size_t leaves = 2;             ///< more mark more, and distort; 1: off
  std::size_t history = 1024;         ///< of so many last steps a context counts as repeated; 0: none does
  hashing how = hashing::decant;

  // For hashing::hf alone.
  std::size_t table_size = 65536;  ///< bits of the table that hashes look up
  std::uint64_t table_seed = 0;
  bool skip_first = false;  ///< leaves the first context_width tokens as they are (skip_first_ngram_calls)
};

/// Marks text by a tournament in which tokens with pseudo-random bits 1 win: readable only with the keys, and with two
/// leaves the average law over keys is the model's own.
///
/// Effect: keys, context and token give one bit a layer; layer by layer two tokens are drawn from what the layers so
/// far make of the law, and the one with the larger bit wins, by lot if they are equal: p becomes p (1 + g - sum g p),
/// in closed form. Logits become log-probabilities; a token whose probability leaves the range of double is gone. Where
/// the context has been used in this text before, and where the text is shorter than the context, the row stays as it
/// is: then the tokens of a text, too, follow the model's law on average. All this is a function of prompt and output,
/// so there is no state to roll back. Put it last. O(tokens left * layers + output), some 4 ns a token and layer;
/// nothing allocated in steady state.
///
/// hashing::hf: the context is made of the output alone, zeros before it, and never too short.
///
/// Off: leaves = 1. Errors: parameter_error unless there are 1 to 64 keys, the width is at least 1, leaves lie in
/// 1 .. 1024 and table_size in 1 .. 2^24.
/// Reference: Dathathri et al., "Scalable watermarking for identifying large language model outputs", Nature 634, 2024.
class synthid_watermark : public made_or_error<synthid_watermark> {
 public:
  static constexpr std::string_view name = "synthid_watermark";

  explicit synthid_watermark(synthid_options options) : options_(std::move(options)) {
    detail::raise_if(validate(options_));
    for (const std::uint64_t key : options_.keys) folded_ = watermark_key(folded_ ^ key, watermark_use::synthid);
    if (options_.how == hashing::hf) {
      table_ = torch_random_bits(options_.table_seed, options_.table_size);
      share_ = static_cast<double>(std::ranges::count(table_, true)) / static_cast<double>(table_.size());
    }
  }

  static std::optional<parameter_fault> validate(const synthid_options& options) {
    const auto fault = [](std::string_view parameter, std::size_t value, std::string_view rule) {
      return parameter_fault{name, parameter, static_cast<double>(value), rule};
    };
    if (options.keys.empty() || options.keys.size() > 64) {
      return fault("keys", options.keys.size(), "must be 1 to 64 in number");
    }
    if (options.context_width == 0) return fault("context_width", 0, "must be at least 1");
    if (options.leaves == 0 || options.leaves > 1024) return fault("leaves", options.leaves, "must lie in 1 .. 1024");
    if (options.table_size == 0 || options.table_size > 1U << 24) {
      return fault("table_size", options.table_size, "must lie in 1 .. 2^24");
    }
    return {};
  }

  void operator()(candidates& row, const step_context& context) {
    if (off() || row.status() != row_status::ok) return;
    const bool hf = options_.how == hashing::hf;
    if (!marks(hf ? context.output() : context.tokens, hf ? 0 : context.prompt_size)) return;
    const std::uint64_t seed = context_seed(hf ? context.output() : context.tokens);
    weights_.clear();
    bits_.clear();
    row.visit_below_max([&](token_id id, double below) {
      weights_.push_back(math::exp(below));
      bits_.push_back(bits_of(seed, id));
    });
    for (std::size_t layer = 0; layer < layers(); ++layer) tournament_layer(weights_, bits_, layer, options_.leaves);
    double total = 0;
    for (const double weight : weights_) total = math::rounded(total + weight);
    const double log_total = math::log(total);
    std::size_t next = 0;
    row.transform([&](token_id, float) {
      const double weight = weights_[next++];
      return weight > 0 ? static_cast<float>(math::log(weight) - log_total) : opaque_gone();
    });
  }

  [[nodiscard]] std::size_t layers() const { return options_.keys.size(); }

  /// The bits g of `token` after the text `before`: bit i is that of layer i. The text must hold a context, except with
  /// hashing::hf, where it is the output and zeros stand before it.
  [[nodiscard]] std::uint64_t bits(std::span<const token_id> before, token_id token) const {
    DECANT_ASSERT(options_.how == hashing::hf || before.size() >= options_.context_width,
                  "the text is shorter than the context");
    return bits_of(context_seed(before), token);
  }

  /// The evidence for this watermark in a text, from the tokens alone; the score is the mean of all bits of the tokens
  /// that count. Counts a token whose context is the first of its kind in the text, or each with count_repeats.
  ///
  /// With `layer_weights`, one a layer, the mean is a weighted one: early layers mark more, and deserve more; see
  /// usual_weights. With hashing::hf tokens count from the context_width-th on, when no zeros are needed.
  /// Misuse: weights of another number than layers.
  [[nodiscard]] watermark_evidence detect(std::span<const token_id> text, const detection_options& options = {},
                                          std::span<const double> layer_weights = {}) const {
    DECANT_ASSERT(layer_weights.empty() || layer_weights.size() == layers(), "one weight a layer");
    std::vector<seeded_token> tokens;
    for (std::size_t place = std::max(options.prompt_size, options_.context_width); place < text.size(); ++place) {
      tokens.push_back({context_seed(text.first(place)), text[place]});
    }
    if (!options.count_repeats) count_seeds_once(tokens);
    double sum = 0, all = 0, squares = 0;
    for (std::size_t layer = 0; layer < layers(); ++layer) {
      const double weight = layer_weights.empty() ? 1 : layer_weights[layer];
      all += weight;
      squares += weight * weight;
    }
    for (const auto& [seed, token] : tokens) {
      const std::uint64_t g = bits_of(seed, token);
      for (std::size_t layer = 0; layer < layers(); ++layer) {
        if ((g >> layer & 1) != 0) sum += layer_weights.empty() ? 1 : layer_weights[layer];
      }
    }
    const double count = static_cast<double>(tokens.size());
    if (tokens.empty() || !(all > 0)) return {};
    return normal_evidence(tokens.size(), sum / (count * all), share_,
                           std::sqrt(count * squares * share_ * (1 - share_)) / (count * all));
  }

  /// Weights that fall from 10 in the first layer to 1 in the last, as the authors have them.
  [[nodiscard]] std::vector<double> usual_weights() const {
    std::vector<double> weights(layers(), 10);
    for (std::size_t layer = 1; layer < layers(); ++layer) {
      weights[layer] = 10 - 9 * static_cast<double>(layer) / static_cast<double>(layers() - 1);
    }
    return weights;
  }

  [[nodiscard]] bool off() const { return options_.leaves == 1; }
  [[nodiscard]] std::string describe() const {
    std::string text = detail::counted_text(name, layers(), "layer");
    if (options_.context_width != 4) {
      text = detail::with_option(std::move(text), "context_width", detail::number_text(options_.context_width));
    }
    if (options_.leaves != 2) {
      text = detail::with_option(std::move(text), "leaves", detail::number_text(options_.leaves));
    }
    if (options_.history != 1024) {
      text = detail::with_option(std::move(text), "history", detail::number_text(options_.history));
    }
    return options_.how == hashing::hf ? detail::with_option(std::move(text), "hashing", "hf") : text;
  }

 private:
  /// Whether the token after this text gets the watermark. Contexts count from `first` on, the first one used.
  [[nodiscard]] bool marks(std::span<const token_id> text, std::size_t first) const {
    const bool hf = options_.how == hashing::hf;
    if (!hf || options_.skip_first) first = std::max(first, options_.context_width);
    if (text.size() < first) return false;
    return !context_windows(text, options_.context_width).seen_before(text.size(), first, options_.history);
  }

  [[nodiscard]] std::uint64_t context_seed(std::span<const token_id> text) const {
    if (options_.how == hashing::decant) {
      return watermark_key(folded_, watermark_use::synthid, text.last(options_.context_width));
    }
    const context_windows windows(text, options_.context_width);
    std::uint64_t hash = 1;
    for (std::size_t i = 0; i < options_.context_width; ++i) {
      hash = hf_step(hash, static_cast<std::uint64_t>(windows.token(text.size(), i)));
    }
    return hash;
  }

  [[nodiscard]] std::uint64_t bits_of(std::uint64_t seed, token_id token) const {
    if (options_.how == hashing::decant) return math::splitmix64(seed, static_cast<std::uint64_t>(token));
    const std::uint64_t hash = hf_step(seed, static_cast<std::uint64_t>(token));
    std::uint64_t bits = 0;
    for (std::size_t layer = 0; layer < layers(); ++layer) {
      bits |= static_cast<std::uint64_t>(table_[place_in_table(hf_step(hash, options_.keys[layer]))]) << layer;
    }
    return bits;
  }

  static std::uint64_t hf_step(std::uint64_t hash, std::uint64_t next) {
    return (hash + next) * 6364136223846793005U + 1;
  }

  /// The hash as a signed number modulo the size, rounded down.
  [[nodiscard]] std::size_t place_in_table(std::uint64_t hash) const {
    const auto size = static_cast<std::int64_t>(table_.size());
    const std::int64_t rest = std::bit_cast<std::int64_t>(hash) % size;
    return static_cast<std::size_t>(rest < 0 ? rest + size : rest);
  }

  synthid_options options_;
  std::uint64_t folded_ = 0;
  std::vector<bool> table_;  // hashing::hf alone
  double share_ = 0.5;       // of bits that are 1 where nobody knows the keys
  std::vector<double> weights_;
  std::vector<std::uint64_t> bits_;
};

}  // namespace decant
