// SPDX-License-Identifier: MIT
// What each policy costs that chain.bench.cpp does not measure, in passes over the logits: alone in front of a plain
// draw, as step/<policy>/<isa>/<residency>/<row>/<n>, and after edits and a temperature, as step/later.<policy>/...

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
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

/// Where the text that steps see ends: what is to happen at some length happens here.
constexpr std::size_t now = bench::history_size;

struct step_case {
  std::string key;
  std::function<void(benchmark::State&, const place&)> run;
};

/// Some ids, spread over the vocabulary.
std::vector<token_id> some_ids(std::size_t vocabulary, std::size_t count, std::uint64_t seed = 3) {
  const draw_stream draws(seed, 0x696473);
  std::vector<token_id> ids;
  for (std::uint32_t i = 0; i < count; ++i) {
    ids.push_back(static_cast<token_id>(draws.uniform(purpose::user, i) * static_cast<double>(vocabulary)));
  }
  return ids;
}

/// `make(n)` gives a processor for a vocabulary of n.
template <class F>
void add_processor(std::vector<step_case>& cases, const std::string& key, F make) {
  cases.push_back({key, [make](benchmark::State& state, const place& at) {
                     bench::measure(state, at, bench::subject_of<const float>(make(at.size) | multinomial{}));
                   }});
  cases.push_back({"later." + key, [make](benchmark::State& state, const place& at) {
                     bench::measure(state, at,
                                    bench::subject_of<const float>(repetition_penalty(1.1) | temperature(0.8) |
                                                                   make(at.size) | multinomial{}));
                   }});
}

/// `make()` gives a sampler.
template <class F>
void add_sampler(std::vector<step_case>& cases, const std::string& key, F make) {
  cases.push_back({key, [make](benchmark::State& state, const place& at) {
                     bench::measure(state, at, bench::subject_of<const float>(decode_with(make())));
                   }});
  cases.push_back(
      {"later." + key, [make](benchmark::State& state, const place& at) {
         bench::measure(state, at, bench::subject_of<const float>(repetition_penalty(1.1) | temperature(0.8) | make()));
       }});
}

/// The whole row in descending order, as a search that takes token after token would ask for it.
struct descending_walk {
  token_id operator()(candidates& row, const step_context&) const {
    token_id last = no_token;
    const std::size_t size = row.size();
    for (std::size_t reach = 64; last == no_token; reach *= 4) {
      const auto walked = row.descending(reach);
      if (walked.size() == size) last = walked.back().id;
    }
    return last;
  }
};

/// Ten different tokens of one row; the first stands for all.
struct ten_without_replacement {
  std::vector<perturbed_token> drawn{};

  token_id operator()(candidates& row, const step_context& context) {
    sample_without_replacement(row, context, 10, drawn);
    return drawn.empty() ? no_token : drawn.front().id;
  }
};

std::vector<step_case> bans_and_biases() {
  std::vector<step_case> cases;
  add_processor(cases, "allowed_tokens", [](std::size_t n) { return allowed_tokens(some_ids(n, 1000)); });
  add_processor(cases, "bad_words", [](std::size_t n) {
    std::vector<std::vector<token_id>> words;
    for (std::uint64_t i = 0; i < 50; ++i) words.push_back(some_ids(n, 1 + i % 3, i));
    return bad_words(words);
  });
  add_processor(cases, "sequence_bias", [](std::size_t n) {
    std::vector<sequence_with_bias> sequences;
    for (std::uint64_t i = 0; i < 50; ++i) sequences.push_back({some_ids(n, 1 + i % 3, i), -2});
    return sequence_bias(sequences);
  });
  add_processor(cases, "logit_bias", [](std::size_t n) {
    std::vector<token_bias> biases;
    for (const token_id id : some_ids(n, 300)) biases.push_back({id, -1.5});
    return logit_bias(biases);
  });
  add_processor(cases, "suppress_tokens", [](std::size_t n) { return suppress_tokens(some_ids(n, 100)); });
  add_processor(cases, "suppress_at_begin",
                [](std::size_t n) { return suppress_at_begin(some_ids(n, 100), {.begin_index = now}); });
  add_processor(cases, "forced_bos", [](std::size_t) { return forced_bos(2, {.begin_index = now}); });
  add_processor(cases, "forced_eos", [](std::size_t) { return forced_eos(now + 1, {2, 3}); });
  add_processor(cases, "min_length", [](std::size_t) { return min_length(1000, {2, 3}); });
  add_processor(cases, "min_new_tokens", [](std::size_t) { return min_new_tokens(1000, {2, 3}); });
  add_processor(cases, "exponential_decay_length",
                [](std::size_t) { return exponential_decay_length(4, 1.05, {2, 3}); });
  add_processor(cases, "prefix_allowed_tokens", [](std::size_t n) {
    return prefix_allowed_tokens(
        [ids = some_ids(n, 1000)](const step_context&) { return std::span<const token_id>(ids); });
  });
  add_processor(cases, "thinking_budget", [](std::size_t n) {
    // The output begins with the start of thinking, and the budget is just used up.
    const auto history = bench::history_of(n);
    return thinking_budget(static_cast<std::int64_t>(now - bench::prompt_size) - 1,
                           {.start = {history[bench::prompt_size]}, .end = {5, 6}});
  });
  add_processor(cases, "remove_invalid_values", [](std::size_t) { return remove_invalid_values(); });
  return cases;
}

std::vector<step_case> repetition() {
  std::vector<step_case> cases;
  add_processor(cases, "repetition_penalty", [](std::size_t) { return repetition_penalty(1.1); });
  add_processor(cases, "frequency_penalty", [](std::size_t) { return frequency_penalty(0.5, {.prompt = true}); });
  add_processor(cases, "presence_penalty", [](std::size_t) { return presence_penalty(0.5, {.prompt = true}); });
  add_processor(cases, "encoder_repetition_penalty",
                [](std::size_t n) { return encoder_repetition_penalty(1.2, some_ids(n, 200)); });
  add_processor(cases, "dry", [](std::size_t) { return dry({}); });
  add_processor(cases, "no_repeat_ngram", [](std::size_t) { return no_repeat_ngram(3); });
  add_processor(cases, "encoder_no_repeat_ngram",
                [](std::size_t n) { return encoder_no_repeat_ngram(3, some_ids(n, 200)); });
  return cases;
}

std::vector<step_case> truncations() {
  std::vector<step_case> cases;
  add_processor(cases, "tail_free", [](std::size_t) { return tail_free(0.95); });
  add_processor(cases, "top_a", [](std::size_t) { return top_a(0.2); });
  add_processor(cases, "p_less", [](std::size_t) { return p_less(); });
  add_processor(cases, "p_less_norm", [](std::size_t) { return p_less_norm(); });
  add_processor(cases, "top_h", [](std::size_t) { return top_h(0.4); });
  add_processor(cases, "confidence_increment", [](std::size_t) { return confidence_increment(1e-3); });
  return cases;
}

std::vector<step_case> reshaping() {
  std::vector<step_case> cases;
  add_processor(cases, "edt", [](std::size_t) { return edt(1.0, 0.5); });
  add_processor(cases, "quadratic", [](std::size_t) { return quadratic(0.3, 1.5); });
  add_processor(cases, "renormalise", [](std::size_t) { return renormalise(); });
  return cases;
}

std::vector<step_case> watermarks() {
  std::vector<step_case> cases;
  add_processor(cases, "green_list_watermark", [](std::size_t) { return green_list_watermark(); });
  add_processor(cases, "unigram_watermark", [](std::size_t) { return unigram_watermark(); });
  add_processor(cases, "synthid_watermark", [](std::size_t) {
    synthid_options options;
    for (std::uint64_t key = 1; key <= 30; ++key) options.keys.push_back(key * 0x9E3779B97F4A7C15);
    return synthid_watermark(options);
  });
  return cases;
}

std::vector<step_case> samplers() {
  std::vector<step_case> cases;
  add_sampler(cases, "gumbel", [] { return gumbel(); });
  add_sampler(cases, "gumbel_watermark", [] { return gumbel_watermark(); });
  add_sampler(cases, "mirostat_v1", [] { return mirostat_v1(); });
  add_sampler(cases, "adaptive_p", [] { return adaptive_p(0.5); });
  add_sampler(cases, "arithmetic_sampling", [] { return arithmetic_sampling(0.37, 1, 4); });
  add_sampler(cases, "without_replacement", [] { return ten_without_replacement(); });
  add_sampler(cases, "descending_walk", [] { return descending_walk(); });
  return cases;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<step_case> cases;
  for (auto group : {bans_and_biases(), repetition(), truncations(), reshaping(), watermarks(), samplers()}) {
    std::move(group.begin(), group.end(), std::back_inserter(cases));
  }
  const auto isas = bench::measured_isas();
  const auto add_all = [&](bench::isa kernels, row_kind kind) {
    for (const step_case& each : cases) {
      const place at{kernels, residency::L3, kind, 128'256};
      bench::add(at.name("step/" + each.key), [each, at](benchmark::State& state) { each.run(state, at); });
    }
  };
  for (const row_kind kind : {row_kind::zipf, row_kind::flat}) {
    for (const bench::isa kernels : isas) add_all(kernels, kind);
  }
  return bench::run(argc, argv);
}
