// SPDX-License-Identifier: MIT
// What whole chains cost, as a ratio to one streaming pass over the same logits in the same process: machines are
// shared and noisy, and absolute times lie.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include <decant/chain.hpp>
#include <decant/processors.hpp>
#include <decant/samplers.hpp>

#include "logits.hpp"

namespace {

using namespace decant;

/// The unit: reads every logit once. Sixteen running maxima, so that the compiler may use vectors.
float streaming_max(std::span<const float> row) {
  float lanes[16];
  std::fill_n(lanes, 16, row[0]);
  std::size_t i = 0;
  for (; i + 16 <= row.size(); i += 16) {
    for (std::size_t j = 0; j < 16; ++j) lanes[j] = lanes[j] < row[i + j] ? row[i + j] : lanes[j];
  }
  float top = *std::max_element(lanes, lanes + 16);
  for (; i < row.size(); ++i) top = std::max(top, row[i]);
  return top;
}

/// Times a chain on rows of one kind, alternating with the unit, and reports their ratio as `passes`.
template <class D>
void run(benchmark::State& state, D decoder, bench::row_kind kind, std::size_t size) {
  using clock = std::chrono::steady_clock;
  constexpr std::size_t rows = 16;
  std::vector<std::vector<float>> pool;
  for (std::size_t i = 0; i < rows; ++i) pool.push_back(bench::make_row(kind, size, i));
  std::vector<token_id> history;
  for (std::size_t i = 0; i < 64; ++i) history.push_back(static_cast<token_id>(i * 997 % size));
  double in_chain = 0, in_unit = 0;
  std::size_t turn = 0;
  for (auto _ : state) {
    std::span<float> row = pool[turn % rows];
    const auto start = clock::now();
    benchmark::DoNotOptimize(streaming_max(row));
    const auto middle = clock::now();
    benchmark::DoNotOptimize(decoder.try_step(row, context_after(history, 0, draw_stream(++turn))));
    const auto end = clock::now();
    in_unit += std::chrono::duration<double>(middle - start).count();
    in_chain += std::chrono::duration<double>(end - middle).count();
    state.SetIterationTime(std::chrono::duration<double>(end - middle).count());
  }
  state.counters["passes"] = in_chain / in_unit;
  state.counters["tokens_per_second"] = static_cast<double>(turn) / in_chain;
}

template <class D>
void add(const std::string& key, const D& decoder, bench::row_kind kind = bench::row_kind::zipf) {
  for (const std::size_t size : {std::size_t{32'000}, std::size_t{128'256}}) {
    const std::string name = "chain/" + key + "/" + bench::name_of(kind) + "/" + std::to_string(size);
    benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
      run(state, decoder, kind, size);
    })->UseManualTime();
  }
}

const bool registered = [] {
  add("greedy", decode_with(greedy{}));
  add("minp", min_p(0.05) | temperature(0.8) | multinomial{});
  add("k_p_m", top_k(40) | top_p(0.95) | min_p(0.05) | temperature(0.8) | multinomial{});
  add("pen_k_p_m", repetition_penalty(1.1) | frequency_penalty(0.1) | top_k(40) | top_p(0.95) | min_p(0.05) |
                       temperature(0.8) | multinomial{});
  for (const auto kind : {bench::row_kind::zipf, bench::row_kind::flat}) {
    add("full", temperature(0.8) | multinomial{}, kind);
    add("topp", top_p(0.95) | temperature(0.8) | multinomial{}, kind);
  }
  return true;
}();

}  // namespace
