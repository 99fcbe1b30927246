// SPDX-License-Identifier: MIT
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <decant/chain.hpp>
#include <decant/generate/batch.hpp>
#include <decant/generate/thread_pool.hpp>
#include <decant/processors.hpp>
#include <decant/samplers.hpp>

#include "harness.hpp"

// Sixteen rows in one call, on one thread and on two. What counts is the time of two by the time of one, beside the
// same ratio for streaming passes over the rows: where two threads do not read twice as fast, no chain can.

namespace {

using namespace decant;
using bench::place;
using bench::residency;
using bench::row_kind;
using clock_type = bench::detail::clock;

constexpr std::size_t batch_size = 16;
constexpr double two_threads_read_faster = 1.9;  // at least, for the others to mean anything

/// Seconds of a call, by turns on one thread and on two.
struct timings {
  std::vector<double> one, two;

  void take(const std::function<void(thread_pool&)>& call, thread_pool& single, thread_pool& pair) {
    for (const auto& [pool, samples] : {std::pair(&single, &one), std::pair(&pair, &two)}) {
      const auto start = clock_type::now();
      call(*pool);
      samples->push_back(bench::detail::seconds(clock_type::now() - start));
    }
  }
  double ratio() { return bench::detail::median(two) / bench::detail::median(one); }
};

template <class D>
void run(benchmark::State& state, const place& at, const D& decoder) {
  const auto& pool = bench::pool_of<float>(at.kind, at.where, at.size);
  const std::vector<token_id> history = bench::history_of(at.size);
  const auto unit = bench::streaming_max();
  const bench::detail::pinned pinned(at.kernels);
  thread_pool single(1), pair(2);
  std::vector<D> decoders(batch_size, decoder);
  std::vector<batch_row<D>> rows(batch_size);
  std::array<float, batch_size> tops{};

  timings steps, passes;
  std::size_t turn = 0;
  for (auto _ : state) {
    const auto begin = clock_type::now();
    while (steps.one.size() < 2 * bench::least_samples ||
           bench::detail::seconds(clock_type::now() - begin) < 4 * bench::budget_seconds()) {
      for (std::size_t i = 0; i < batch_size; ++i, ++turn) {
        rows[i] = {&decoders[i], pool.window(turn), context_after(history, bench::prompt_size, draw_stream(turn))};
      }
      const auto read = [&](std::size_t i) { tops[i] = unit(rows[i].logits.data(), rows[i].logits.size()); };
      passes.take([&](thread_pool& threads) { threads(batch_size, indexed_task(read)); }, single, pair);
      benchmark::DoNotOptimize(tops);
      steps.take([&](thread_pool& threads) { step_batch(std::span(rows), threads); }, single, pair);
    }
    state.SetIterationTime(bench::detail::median(steps.two));
  }
  const double reading = 1 / passes.ratio();
  state.counters["streaming_speedup"] = reading;
  if (reading < two_threads_read_faster) {
    state.SkipWithError(
        ("not measurable here: two threads read " + std::to_string(reading) + " times as fast").c_str());
    return;
  }
  state.counters["passes"] = steps.ratio();  // two threads by one
  state.counters["speedup"] = 1 / steps.ratio();
  state.counters["tokens_per_second"] = static_cast<double>(batch_size) / bench::detail::median(steps.two);
}

template <class D>
void add_key(const std::string& key, bench::isa kernels, const D& decoder) {
  const place at{kernels, residency::L3, row_kind::zipf, 128'256};
  bench::add(at.name("batch/" + key), [=](benchmark::State& state) { run(state, at, decoder); });
}

}  // namespace

int main(int argc, char** argv) {
  for (const bench::isa kernels : bench::measured_isas()) {
    add_key("k_p_m", kernels, top_k(40) | top_p(0.95) | min_p(0.05) | temperature(0.8) | multinomial{});
    add_key("minp", kernels, min_p(0.05) | temperature(0.8) | multinomial{});
    add_key("topp", kernels, top_p(0.95) | temperature(0.8) | multinomial{});
    add_key("full", kernels, temperature(0.8) | multinomial{});
  }
  return bench::run(argc, argv);
}
