// SPDX-License-Identifier: MIT
// What each kernel costs alone, in passes over the row: kernel/<name>/<isa>/<residency>/<row>/<n>. The unit stands
// among them, as a check on the measuring: it costs 1.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include <decant/math/half.hpp>
#include <decant/math/kernels.hpp>

#include "harness.hpp"

namespace {

using namespace decant;
using bench::place;
using bench::residency;
using bench::row_kind;

struct kernel_case {
  std::string name;
  std::function<void(benchmark::State&, const place&)> run;
};

/// Room for what kernels write, as large as a row.
struct workspace {
  std::vector<float> floats;
};

/// `kernel(row, workspace)` is one call on a whole row.
template <class Element, class F>
kernel_case on(std::string name, F kernel) {
  return {std::move(name), [kernel](benchmark::State& state, const place& at) {
            const auto room = std::make_shared<workspace>();
            room->floats.resize(at.size + 64);
            bench::measure(state, at,
                           bench::subject<const Element>{
                               [kernel, room](std::span<const Element> row, const step_context&) -> token_id {
                                 benchmark::DoNotOptimize(kernel(row, *room));
                                 benchmark::ClobberMemory();
                                 return 0;
                               },
                               [] {}});
          }};
}

/// The weights of temperature 0.8 below the largest logit of zipf.
constexpr math::weight_parameters weighed{20.0F, 1.8F};

std::vector<kernel_case> all_kernels() {
  return {
      on<float>("streaming_max", [unit = bench::streaming_max()](std::span<const float> row,
                                                                 workspace&) { return unit(row.data(), row.size()); }),
      on<float>("peaks_f32",
                [](std::span<const float> row, workspace& room) {
                  return math::kernels().peaks_f32(row.data(), row.size(), room.floats.data());
                }),
      on<bfloat16>("peaks_bf16",
                   [](std::span<const bfloat16> row, workspace& room) {
                     return math::kernels().peaks_bf16(row.data(), row.size(), room.floats.data());
                   }),
      on<float16>("peaks_f16",
                  [](std::span<const float16> row, workspace& room) {
                    return math::kernels().peaks_f16(row.data(), row.size(), room.floats.data());
                  }),
      on<float>("count_at_least",
                [](std::span<const float> row, workspace&) {
                  return math::kernels().count_at_least(row.data(), row.size(), 8.0F);
                }),
      on<float>("at_least",
                [](std::span<const float> row, workspace&) {
                  std::uint64_t all = 0;
                  const auto kernel = math::kernels().at_least;
                  for (std::size_t i = 0; i + 64 <= row.size(); i += 64) all |= kernel(row.data() + i, 8.0F);
                  return all;
                }),
      on<float>("float_weights",
                [](std::span<const float> row, workspace& room) {
                  math::kernels().float_weights(row.data(), row.size() / 16 * 16, weighed, room.floats.data());
                  return room.floats[0];
                }),
      on<float>("quick_mass",
                [](std::span<const float> row, workspace&) {
                  return math::kernels().quick_mass(row.data(), row.size() / 64 * 64,
                                                    math::quick_parameters_of(weighed));
                }),
      on<float>("exact_mass",
                [](std::span<const float> row, workspace&) {
                  return math::kernels().exact_mass(row.data(), row.size() / 16 * 16, weighed.reference, 1.25).mass;
                }),
      on<float>("near_mass",
                [](std::span<const float> row, workspace&) {
                  return math::kernels().near_mass(row.data(), row.size() / 16 * 16, weighed.reference, 1.25, 14).above;
                }),
      on<float>("moments",
                [](std::span<const float> row, workspace&) {
                  return math::kernels().moments(row.data(), row.size() / 16 * 16, weighed.reference).squares;
                }),
  };
}

}  // namespace

int main(int argc, char** argv) {
  auto isas = bench::measured_isas();
  if (isas.back() != bench::isa::portable) isas.push_back(bench::isa::portable);
  for (const residency where : {residency::L2, residency::L3, residency::DRAM}) {
    for (const bench::isa kernels : isas) {
      for (const kernel_case& each : all_kernels()) {
        const place at{kernels, where, row_kind::zipf, 128'256};
        bench::add(at.name("kernel/" + each.name), [each, at](benchmark::State& state) { each.run(state, at); });
      }
    }
  }
  return bench::run(argc, argv);
}
