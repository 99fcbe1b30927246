// SPDX-License-Identifier: MIT
// What a step of a search costs beside the model, in passes over one row of logits, as
// search/<key>/<isa>/<residency>/<row>/<n>. Every hypothesis has a row of its own. `passes` is what is left after the
// 10 microseconds that a step may take whatever the vocabulary; their number is that of all hypotheses together.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include <decant/processors/no_repeat_ngram.hpp>
#include <decant/processors/repetition_penalty.hpp>
#include <decant/search/beam.hpp>

#include "harness.hpp"

namespace {

using namespace decant;
using bench::place;
using bench::residency;
using bench::row_kind;

constexpr double free_microseconds = 10;

struct search_case {
  std::string key;
  beam_options options;
};

std::vector<search_case> cases() {
  const auto plain = [](std::size_t width) { return beam_options{.width = width, .max_new_tokens = 1'000'000}; };
  std::vector<search_case> all;
  for (const std::size_t width : {1U, 4U, 16U}) all.push_back({"beam" + std::to_string(width), plain(width)});
  beam_options processed = plain(4);
  processed.processors = {repetition_penalty(1.1), no_repeat_ngram(3)};
  all.push_back({"beam4_processors", processed});
  beam_options renormalised = processed;
  renormalised.renormalise = true;
  all.push_back({"beam4_renormalised", renormalised});
  beam_options diverse = plain(4);
  diverse.diversity = {.groups = 4, .strength = 0.5};
  all.push_back({"diverse4", diverse});
  beam_options sampling = plain(4);
  sampling.sampling = beam_sampling{};
  all.push_back({"sampling4", sampling});
  return all;
}

void run(benchmark::State& state, const search_case& searched, const place& at) {
  const auto& rows = bench::pool_of<float>(at.kind, at.where, at.size);
  beam search(bench::history_of(at.size), searched.options);
  std::uint64_t turn = 0;
  bench::measure(state, at,
                 bench::subject<const float>{[&](std::span<const float>, const step_context&) {
                                               search.advance([&](std::size_t) {
                                                 return std::span<const float>(rows.window(2 * turn++));
                                               });
                                               return token_id{0};
                                             },
                                             [] {}});
  const double pass = state.counters["pass_us"];
  state.counters["passes"] = std::max(0.0, static_cast<double>(state.counters["passes"]) - free_microseconds / pass);
}

}  // namespace

int main(int argc, char** argv) {
  for (const bench::isa kernels : bench::measured_isas()) {
    for (const row_kind kind : {row_kind::zipf, row_kind::flat}) {
      for (const search_case& each : cases()) {
        const place at{kernels, residency::L3, kind, 128'256};
        bench::add(at.name("search/" + each.key), [each, at](benchmark::State& state) { run(state, each, at); });
      }
    }
  }
  return bench::run(argc, argv);
}
