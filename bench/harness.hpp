// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include <decant/core/context.hpp>
#include <decant/core/draws.hpp>
#include <decant/core/token.hpp>
#include <decant/math/kernels.hpp>
#define DECANT_TESTING_COUNT_ALLOCATIONS
#include <decant/testing/counting_allocator.hpp>

#include "llama.hpp"
#include "pool.hpp"
#include "unit.hpp"

// Measures steps in passes: the median time of a step, divided by the median time of one streaming max over windows of
// the same pool, the two taken in turn. Medians and turns, because machines are shared: whatever else runs slows both,
// and a burst of it falls on a few samples. Before either goes another pass that is not timed, so that both find the
// caches in the same state, whatever a step leaves in them.

namespace bench {

using decant::token_id;
using decant::math::isa;

/// As names of benchmarks have it.
inline const char* name_of(isa which) {
  return which == isa::portable ? (DECANT_X86 ? "sse2" : "scalar") : decant::math::to_string(which);
}

/// What is measured, and where.
struct place {
  isa kernels;
  residency where;
  row_kind kind;
  std::size_t size;

  [[nodiscard]] std::string name(const std::string& prefix) const {
    return prefix + "/" + name_of(kernels) + "/" + name_of(where) + "/" + name_of(kind) + "/" + std::to_string(size);
  }
};

/// The text that a step sees: 64 tokens, three quarters of them prompt, whose last ones have stood before.
inline constexpr std::size_t history_size = 64, prompt_size = 48;
inline std::vector<token_id> history_of(std::size_t vocabulary) {
  const decant::draw_stream draws(1, 0x74657874);
  std::vector<token_id> history;
  for (std::uint32_t i = 0; i < history_size; ++i) {
    history.push_back(i >= history_size - 6 ? history[i - 30]
                                            : static_cast<token_id>(draws.uniform(decant::purpose::user, i) *
                                                                    static_cast<double>(vocabulary)));
  }
  return history;
}

/// One step after another, its type forgotten.
template <class Element>
struct subject {
  std::function<token_id(std::span<Element>, const decant::step_context&)> step;
  std::function<void()> reset;  ///< forgets accepted tokens, so that what is kept of them does not grow
};

template <class Element, class D>
subject<Element> subject_of(const D& decoder) {
  const auto own = std::make_shared<D>(decoder);
  return {
      [own](std::span<Element> row, const decant::step_context& context) { return own->try_step(row, context).token; },
      [own] {
        if (own->keeps_state()) own->reset();
      }};
}

/// How long one benchmark samples, and how many samples there are at least and at most.
inline double& budget_seconds() {
  static double seconds = 0.06;
  return seconds;
}
inline constexpr std::size_t least_samples = 12, most_samples = 10'000;

namespace detail {

using clock = std::chrono::steady_clock;

inline double seconds(clock::duration span) { return std::chrono::duration<double>(span).count(); }

inline double median(std::vector<double>& samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

/// What the clock adds to what it measures.
inline double clock_overhead() {
  static const double overhead = [] {
    std::vector<double> samples;
    for (int i = 0; i < 2001; ++i) {
      const auto start = clock::now();
      samples.push_back(seconds(clock::now() - start));
    }
    return median(samples);
  }();
  return overhead;
}

/// Pins the kernels for a scope.
class pinned {
 public:
  explicit pinned(isa which) { decant::math::use_kernels(which); }
  pinned(const pinned&) = delete;
  pinned& operator=(const pinned&) = delete;
  ~pinned() { decant::math::use_kernels(decant::math::best_isa()); }
};

}  // namespace detail

/// Runs one benchmark. `make_llama` builds the same chain of llama.cpp; it is called where there is a libllama, and the
/// counter vs_llama says how many times as long a step of it takes.
template <class Element>
void measure(benchmark::State& state, const place& at, subject<Element> measured,
             const std::function<std::vector<peer::llama_sampler*>(const peer::llama_library&)>& make_llama = {}) {
  using logit = std::remove_const_t<Element>;
  using detail::clock;
  const auto& rows = pool_of<logit>(at.kind, at.where, at.size);
  // Sixteen-bit rows too are counted in passes over floats.
  const auto& unit_rows = pool_of<float>(at.kind, at.where, at.size);
  const streaming_max_function unit = streaming_max();
  const std::vector<token_id> history = history_of(at.size);
  const detail::pinned pinned(at.kernels);

  // A step that is too short for the clock is taken many at a time.
  const std::size_t batch = at.size <= 4096 ? 64 : 1;
  std::uint64_t turn = 0, passed = 0;
  std::size_t allocated = 0;
  const auto steps = [&](std::size_t count) {
    if (turn % 64 == 0) measured.reset();
    std::vector<decant::step_context> contexts;
    std::vector<std::span<Element>> windows;
    for (std::size_t i = 0; i < count; ++i, ++turn) {
      contexts.push_back(decant::context_after(history, prompt_size, decant::draw_stream(turn)));
      windows.push_back(rows.window(2 * turn));
    }
    const std::size_t before = decant::testing::allocations();
    const auto start = clock::now();
    for (std::size_t i = 0; i < count; ++i) benchmark::DoNotOptimize(measured.step(windows[i], contexts[i]));
    const double spent = detail::seconds(clock::now() - start);
    allocated += decant::testing::allocations() - before;
    return std::max(spent - detail::clock_overhead(), 1e-9) / static_cast<double>(count);
  };
  const auto passes = [&](std::size_t count) {
    std::vector<std::span<float>> windows;
    for (std::size_t i = 0; i < count; ++i) windows.push_back(unit_rows.window(2 * passed++ + 1));
    const auto start = clock::now();
    for (const auto window : windows) benchmark::DoNotOptimize(unit(window.data(), window.size()));
    return std::max(detail::seconds(clock::now() - start) - detail::clock_overhead(), 1e-9) /
           static_cast<double>(count);
  };

  std::vector<double> in_steps, in_passes, in_llama;
  double allocations = 0;  // a step, in the second half: in the first, workspaces may still grow
  for (auto _ : state) {
    const auto begin = clock::now();
    for (int i = 0; i < 4 || (i < 64 && detail::seconds(clock::now() - begin) < budget_seconds() / 4); ++i) {
      static_cast<void>(passes(1));
      static_cast<void>(steps(1));
    }
    std::size_t settled = 0;
    for (int half = 0; half < 2; ++half) {
      settled = in_steps.size();
      allocated = 0;
      const auto start = clock::now();
      for (std::size_t i = 0; i < least_samples / 2 ||
                              (i < most_samples / 2 && detail::seconds(clock::now() - start) < budget_seconds() / 2);
           ++i) {
        static_cast<void>(passes(batch));
        in_passes.push_back(passes(batch));
        in_steps.push_back(steps(batch));
      }
    }
    allocations = static_cast<double>(allocated) / static_cast<double>((in_steps.size() - settled) * batch);
    state.SetIterationTime(detail::median(in_steps));
  }
  const double step = detail::median(in_steps), pass = detail::median(in_passes);
  state.counters["passes"] = step / pass;
  state.counters["bytes"] = static_cast<double>(at.size * sizeof(Element));
  state.counters["tokens_per_second"] = 1 / step;
  state.counters["pass_us"] = pass * 1e6;
  state.counters["allocations"] = allocations;

  if constexpr (std::is_same_v<logit, float>) {
    if (const peer::llama_library* const library = peer::llama_library::get(); library != nullptr && make_llama) {
      llama_chain theirs(make_llama(*library), history);
      std::vector<double> beside;
      const auto start = clock::now();
      while (in_llama.size() < 5 ||
             (in_llama.size() < 1001 && detail::seconds(clock::now() - start) < budget_seconds())) {
        const auto window = rows.window(2 * passed++ + 1);
        const auto before = clock::now();
        benchmark::DoNotOptimize(theirs.step(window, history[turn % history.size()]));
        in_llama.push_back(detail::seconds(clock::now() - before) - detail::clock_overhead());
        for (int i = 0; i < 8; ++i) beside.push_back(steps(1));
      }
      state.counters["vs_llama"] = detail::median(in_llama) / detail::median(beside);
    }
  }
}

/// Registers a benchmark by its name alone: one iteration, which takes its own samples.
inline void add(const std::string& name, std::function<void(benchmark::State&)> run) {
  benchmark::RegisterBenchmark(name.c_str(), std::move(run))
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

/// The instruction sets of this machine among those that are measured.
inline std::vector<isa> measured_isas() {
  std::vector<isa> found;
  for (const isa which : {isa::avx512, isa::avx2}) {
    if (which <= decant::math::best_isa()) found.push_back(which);
  }
  if (found.empty()) found.push_back(isa::portable);
  return found;
}

namespace detail {

/// Google Benchmark adds to a name how it was timed; here all are timed alike.
template <class Reporter>
class plain_names : public Reporter {
 public:
  using Reporter::Reporter;
  void ReportRuns(const std::vector<benchmark::BenchmarkReporter::Run>& reports) override {
    auto runs = reports;
    for (auto& run : runs) {
      run.run_name.iterations.clear();
      run.run_name.time_type.clear();
    }
    Reporter::ReportRuns(runs);
  }
};

/// Takes an option of the form --name=number out of the arguments.
inline std::optional<double> take_number(int& argc, char** argv, std::string_view name) {
  std::optional<double> found;
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with(name) && argument.substr(name.size()).starts_with('=')) {
      found = std::strtod(argv[i] + name.size() + 1, nullptr);
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  return found;
}

inline bool has_option(int argc, char** argv, std::string_view name) {
  return std::any_of(argv + 1, argv + argc,
                     [&](const char* argument) { return std::string_view(argument).starts_with(name); });
}

}  // namespace detail

/// The main of every benchmark program. Beside Google Benchmark's options: --milliseconds=60 (how long each benchmark
/// samples) and --dram_megabytes=100.
inline int run(int argc, char** argv) {
  if (const auto given = detail::take_number(argc, argv, "--milliseconds")) budget_seconds() = *given / 1e3;
  if (const auto given = detail::take_number(argc, argv, "--dram_megabytes")) {
    dram_megabytes() = static_cast<std::size_t>(*given);
  }
  const bool to_file = detail::has_option(argc, argv, "--benchmark_out=");
  const bool formatted = detail::has_option(argc, argv, "--benchmark_format=");
  const bool file_formatted = detail::has_option(argc, argv, "--benchmark_out_format=");
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::AddCustomContext("unit", std::string(name_of(decant::math::best_isa())) + " streaming max");
  benchmark::AddCustomContext("best_isa", name_of(decant::math::best_isa()));
  benchmark::AddCustomContext("compiler", DECANT_BENCH_COMPILER);
  benchmark::AddCustomContext("dram_megabytes", std::to_string(dram_megabytes()));
  benchmark::AddCustomContext("libllama", peer::llama_library::get() != nullptr ? "present" : "absent");
  detail::plain_names<benchmark::ConsoleReporter> console(benchmark::ConsoleReporter::OO_None);
  detail::plain_names<benchmark::JSONReporter> json;
  benchmark::RunSpecifiedBenchmarks(formatted ? nullptr : &console, to_file && !file_formatted ? &json : nullptr);
  benchmark::Shutdown();
  return 0;
}

}  // namespace bench
