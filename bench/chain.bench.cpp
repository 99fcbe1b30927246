// SPDX-License-Identifier: MIT
// What whole chains cost, in passes over the logits: chain/<key>/<isa>/<residency>/<row>/<n>. What each may cost is in
// goals.json; compare.py compares.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include <decant/chain.hpp>
#include <decant/processors.hpp>
#include <decant/samplers.hpp>

#include "harness.hpp"

namespace {

using namespace decant;
using bench::place;
using bench::residency;
using bench::row_kind;

using theirs = std::vector<peer::llama_sampler*>;
using make_theirs = std::function<theirs(const peer::llama_library&, std::size_t)>;

struct chain_case {
  std::string key;
  std::function<void(benchmark::State&, const place&)> run;
};

/// A chain on rows of const Element, with the same chain of llama.cpp if it has it.
template <class Element = const float, class D>
chain_case on(std::string key, D decoder, make_theirs llama = {}) {
  return {std::move(key),
          [decoder = std::move(decoder), llama = std::move(llama)](benchmark::State& state, const place& at) {
            // One comparison is enough: on the best kernels, where the logits usually are.
            const bool compared = llama && at.kernels == math::best_isa() && at.where == residency::L3;
            if (!compared) return bench::measure(state, at, bench::subject_of<Element>(decoder));
            bench::measure(state, at, bench::subject_of<Element>(decoder),
                           [&](const peer::llama_library& library) { return llama(library, at.size); });
          }};
}

/// A bit mask that allows one token in a thousand.
std::vector<std::uint64_t> sparse_mask(std::size_t vocabulary) {
  const draw_stream draws(2, 0x6d61736b);
  std::vector<std::uint64_t> mask((vocabulary + 63) / 64);
  for (std::uint32_t i = 0; i < (vocabulary + 999) / 1000; ++i) {
    const auto id = static_cast<std::size_t>(draws.uniform(purpose::user, i) * static_cast<double>(vocabulary));
    mask[id / 64] |= std::uint64_t{1} << (id % 64);
  }
  return mask;
}

chain_case masked() {
  return {"mask0.1", [](benchmark::State& state, const place& at) {
            const auto mask = sparse_mask(at.size);
            const auto constrain = [&mask](candidates& row, const step_context&) {
              row.allow(std::span<const std::uint64_t>(mask));
            };
            bench::measure(state, at, bench::subject_of<const float>(chain(constrain) | top_p(0.95) | multinomial{}));
          }};
}

auto k_p_m() { return top_k(40) | top_p(0.95) | min_p(0.05) | temperature(0.8) | multinomial{}; }
auto penalised() {
  return repetition_penalty(1.1) | frequency_penalty(0.1, {.prompt = true}) | presence_penalty(0.1, {.prompt = true}) |
         top_k(40) | top_p(0.95) | min_p(0.05) | temperature(0.8) | multinomial{};
}

std::vector<chain_case> all_cases() {
  const make_theirs llama_penalised = [](const auto& l, std::size_t n) {
    return theirs{l.init_penalties(static_cast<std::int32_t>(n), 64, 1.1F, 0.1F, 0.1F),
                  l.init_top_k(40),
                  l.init_top_p(0.95F, 1),
                  l.init_min_p(0.05F, 1),
                  l.init_temp(0.8F),
                  l.init_dist(1)};
  };
  return {
      on("greedy", decode_with(greedy{}), [](const auto& l, std::size_t) { return theirs{l.init_greedy()}; }),
      on("minp", min_p(0.05) | temperature(0.8) | multinomial{},
         [](const auto& l, std::size_t) { return theirs{l.init_min_p(0.05F, 1), l.init_temp(0.8F), l.init_dist(1)}; }),
      on("k_p_m", k_p_m(),
         [](const auto& l, std::size_t) {
           return theirs{l.init_top_k(40), l.init_top_p(0.95F, 1), l.init_min_p(0.05F, 1), l.init_temp(0.8F),
                         l.init_dist(1)};
         }),
      on<float>("pen_k_p_m", penalised(), llama_penalised),
      on("pen_k_p_m_const", penalised(), llama_penalised),
      on("full", temperature(0.8) | multinomial{},
         [](const auto& l, std::size_t) { return theirs{l.init_temp(0.8F), l.init_dist(1)}; }),
      on("topp", top_p(0.95) | temperature(0.8) | multinomial{},
         [](const auto& l, std::size_t) { return theirs{l.init_top_p(0.95F, 1), l.init_temp(0.8F), l.init_dist(1)}; }),
      on("xtc", xtc(1.0, 0.1) | multinomial{},
         [](const auto& l, std::size_t) { return theirs{l.init_xtc(1.0F, 0.1F, 1, 1), l.init_dist(1)}; }),
      on("epsilon", epsilon_cutoff(3e-4) | multinomial{}),
      on("mirostat2", decode_with(mirostat{}),
         [](const auto& l, std::size_t) { return theirs{l.init_mirostat_v2(1, 5, 0.1F)}; }),
      on("typical", typical(0.95) | multinomial{},
         [](const auto& l, std::size_t) { return theirs{l.init_typical(0.95F, 1), l.init_dist(1)}; }),
      on("eta", eta_cutoff(3e-4) | multinomial{}),
      on("dyntemp", dynamic_temperature(0.6, 1.0) | multinomial{},
         [](const auto& l, std::size_t) { return theirs{l.init_temp_ext(0.8F, 0.2F, 1), l.init_dist(1)}; }),
      on("sigma", top_n_sigma(1) | multinomial{},
         [](const auto& l, std::size_t) { return theirs{l.init_top_n_sigma(1), l.init_dist(1)}; }),
      on("topk1000", top_k(1000) | multinomial{},
         [](const auto& l, std::size_t) { return theirs{l.init_top_k(1000), l.init_dist(1)}; }),
      on("topk4000", top_k(4000) | multinomial{},
         [](const auto& l, std::size_t) { return theirs{l.init_top_k(4000), l.init_dist(1)}; }),
      masked(),
  };
}

/// Greedy decoding of rows of 16 bits, in passes over floats.
std::vector<chain_case> half_cases() {
  return {on<const bfloat16>("bf16", decode_with(greedy{})), on<const float16>("fp16", decode_with(greedy{}))};
}

constexpr std::size_t usual_size = 128'256;
constexpr std::array<std::size_t, 3> other_sizes{32'000, 151'936, 262'144};
constexpr std::array<std::size_t, 5> tiny_sizes{5, 32, 100, 320, 500};

void add_all(const std::vector<chain_case>& cases, bench::isa kernels, residency where, row_kind kind,
             std::size_t size) {
  for (const chain_case& each : cases) {
    const place at{kernels, where, kind, size};
    bench::add(at.name("chain/" + each.key), [each, at](benchmark::State& state) { each.run(state, at); });
  }
}

}  // namespace

// Rows by rows, so that a pool serves all chains before the next is made.
int main(int argc, char** argv) {
  const auto cases = all_cases(), halves = half_cases();
  const auto isas = bench::measured_isas();
  const bench::isa best = isas.front();
  const auto over_isas = [&](const auto& of, residency where, row_kind kind, std::size_t size) {
    for (const bench::isa kernels : isas) add_all(of, kernels, where, kind, size);
  };
  // What a row in L2 costs is what a machine shows whose other caches keep up with its vectors.
  for (const residency where : {residency::L3, residency::L2}) {
    for (const row_kind kind : bench::ordinary_rows) over_isas(cases, where, kind, usual_size);
    for (const row_kind kind : bench::adversarial_rows) over_isas(cases, where, kind, usual_size);
  }
  for (const residency where : {residency::L3, residency::L2}) over_isas(halves, where, row_kind::zipf, usual_size);
  if (best != bench::isa::portable) {
    add_all(cases, bench::isa::portable, residency::L3, row_kind::zipf, usual_size);
  }
  for (const std::size_t size : other_sizes) over_isas(cases, residency::L3, row_kind::zipf, size);
  for (const std::size_t size : other_sizes) add_all(cases, best, residency::L2, row_kind::zipf, size);
  add_all(cases, best, residency::DRAM, row_kind::zipf, usual_size);
  for (const std::size_t size : other_sizes) add_all(cases, best, residency::DRAM, row_kind::zipf, size);
  for (const std::size_t size : tiny_sizes) add_all(cases, best, residency::L2, row_kind::zipf, size);
  return bench::run(argc, argv);
}
