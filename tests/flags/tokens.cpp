// SPDX-License-Identifier: MIT
// Decides rows by many decoders and compares a hash of all tokens, laws and bits of weights with the one that stands
// here. Compiled with flags that change what floating point means: see CMakeLists.txt beside this file.
#include <decant/chain.hpp>
#include <decant/processors.hpp>
#include <decant/samplers.hpp>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include <decant/math/kernels.hpp>
#include <decant/math/splitmix64.hpp>

#include "math/bits.hpp"

namespace {

using namespace decant;

constexpr std::uint64_t expected = 0xA89C300E33D34656U;

/// Logits by their bits, so that no flag has a say in them: multiples of 2^-12, some -inf, some denormal.
std::vector<float> row_of(std::uint64_t number) {
  std::uint64_t drawn = 0;
  const auto next = [&](std::uint64_t below) { return math::splitmix64(number, drawn++) % below; };
  const std::size_t size = number % 4 == 0 ? 4'000 + next(9'000) : 1 + next(600);
  const bool has_gaps = next(3) == 0, has_ties = next(4) == 0;
  std::vector<float> logits;
  for (std::size_t i = 0; i < size; ++i) {
    std::int32_t steps = -80'000;
    for (int die = 0; die < 4; ++die) steps += static_cast<std::int32_t>(next(40'000));
    if (has_ties) steps = steps / 8'192 * 8'192;
    auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(steps));
    if (steps != 0) bits -= 12U << 23;
    if (has_gaps && next(3) == 0) bits = 0xFF800000U;
    if (next(2'000) == 0) bits = 0x80000123U;
    logits.push_back(std::bit_cast<float>(bits));
  }
  return logits;
}

template <class... Decoders>
std::uint64_t hash_of_rows(std::size_t rows, Decoders... decoders) {
  test_bits::hash seen;
  for (std::size_t number = 0; number < rows; ++number) {
    const std::vector<float> fixed = row_of(number);
    std::vector<float> row = fixed;
    std::vector<token_id> text;
    for (std::uint64_t i = 0; i < 30; ++i) {
      text.push_back(static_cast<token_id>(math::splitmix64(number + 1, i) % row.size()));
    }
    const step_context context = context_after(text, 10, draw_stream(number));
    const auto decide = [&](auto& decoder) {
      const auto [token, status] = number % 2 == 0 ? decoder.try_step(std::span<float>(row), context)
                                                   : decoder.try_step(std::span<const float>(fixed), context);
      seen.add(static_cast<std::uint64_t>(token));
      seen.add(static_cast<std::uint64_t>(status));
      if constexpr (requires { decoder.law_of(fixed, context); }) {
        const law left = decoder.law_of(fixed, context);
        for (const token_id id : left.ids) seen.add(static_cast<std::uint64_t>(id));
        for (const double weight : left.weights) seen.add(weight);
        seen.add(left.total);
      }
    };
    (decide(decoders), ...);
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (std::bit_cast<std::uint32_t>(row[i]) != std::bit_cast<std::uint32_t>(fixed[i])) std::abort();
    }
  }
  return seen.value();
}

std::uint64_t hash_of_tokens(std::size_t rows) {
  return hash_of_rows(
      rows, decode_with(greedy{}), temperature(0.7) | multinomial{},
      suppress_tokens({0, 3}) | min_new_tokens(100, {1}) | top_k(40) | top_p(0.95) | min_p(0.05) | multinomial{},
      repetition_penalty(1.2, {.prompt = true}) | frequency_penalty(0.3) | no_repeat_ngram(2) | top_p(0.8) |
          multinomial{},
      typical(0.9) | multinomial{}, xtc(0.7, 0.03) | temperature(1.3) | multinomial{},
      quadratic(0.3, 2) | top_n_sigma(1.5) | multinomial{}, dynamic_temperature(0.5, 1.5) | eta_cutoff(3e-4) | gumbel{},
      logit_bias({{2, 1.5F}, {5, gone}}) | tail_free(0.9) | multinomial{}, top_h(0.4) | multinomial{},
      unigram_watermark() | renormalise() | epsilon_cutoff(1e-3) | multinomial{}, p_less() | arithmetic_sampling(0.3),
      decode_with(mirostat{}), decode_with(mirostat_v1{}), min_p(0.01) | adaptive_p(0.3));
}

}  // namespace

int main() {
  bool right = true;
  for (const math::isa which : {math::isa::portable, math::isa::avx2, math::isa::avx512}) {
    if (math::best_isa() < which) {
      std::printf("%s: not on this machine\n", math::to_string(which));
      continue;
    }
    math::use_kernels(which);
    const std::uint64_t found = hash_of_tokens(120);
    std::printf("%s: %016llx\n", math::to_string(which), static_cast<unsigned long long>(found));
    right = right && found == expected;
  }
  return right ? 0 : 1;
}
