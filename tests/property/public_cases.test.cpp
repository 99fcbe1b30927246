// SPDX-License-Identifier: MIT
#include <decant/decant.hpp>

#include "processors/policies.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// Faults that were reported of other libraries and concern several policies at once. What one policy alone must get
// right stands in the tests of that policy, under the same names.

namespace public_cases_test {

using namespace policies;
namespace presets = decant::presets;
using decant::log_prob_mode;
using decant::sampling_params;

step_context at_start(std::uint64_t seed) { return context_after({}, 0, draw_stream(seed)); }

TEST_CASE("no truncation empties a row, whatever its parameter (llama.cpp PR3841, MNN, simply#42)") {
  const std::vector<any_processor> extreme{decant::temperature(0),
                                           decant::top_k(1),
                                           decant::top_p(0),
                                           decant::top_p(denormal),
                                           decant::min_p(1),
                                           decant::typical(0),
                                           decant::typical(denormal),
                                           decant::epsilon_cutoff(1),
                                           decant::eta_cutoff(1),
                                           decant::top_a(1),
                                           decant::tail_free(0),
                                           decant::top_n_sigma(0),
                                           decant::xtc(1, 0),
                                           decant::p_less(),
                                           decant::p_less_norm(),
                                           decant::top_h(0),
                                           decant::confidence_increment(1),
                                           decant::confidence_increment(largest)};
  const std::vector<row> rows{golden,
                              {7},
                              {0, 0},
                              row(100, -1e30F),
                              {3e38F, -3e38F},
                              logs({0.2, 0.2, 0.2, 0.2, 0.2}),
                              {gone, -5, gone},
                              random_row(200, 1),
                              random_row(5000, 2)};
  for (const any_processor& policy : extreme) {
    for (const row& logits : rows) {
      CAPTURE(policy.describe(), logits.size());
      CHECK(!survivors(policy, logits).empty());
      CHECK(!survivors(decant::chain(policy, policy), logits).empty());
    }
  }
}

TEST_CASE("a distribution of one token has entropy 0, not NaN, for whoever asks (trl#7221)") {
  for (const any_processor& policy : std::vector<any_processor>{
           decant::typical(0.5), decant::eta_cutoff(0.1), decant::dynamic_temperature(0.2, 2), decant::edt(1, 1),
           decant::top_h(0.4), decant::p_less(), decant::p_less_norm(), decant::confidence_increment(0.1),
           decant::top_n_sigma(1), decant::tail_free(0.5), decant::renormalise()}) {
    CAPTURE(policy.describe());
    CHECK(law_after(policy, {0, gone}) == law{1, 0});
    CHECK(law_after(policy, {gone, -300, gone}) == law{0, 1, 0});
    CHECK(law_after(policy, {0, -2000}) == law{1, 0});
    CHECK(status_after(policy, {gone, gone}) == row_status::empty);
  }
  for (const decant::any_sampler& sampler :
       std::vector<decant::any_sampler>{decant::mirostat(), decant::mirostat_v1(), decant::adaptive_p(0.5)}) {
    auto decoder = decant::decode_with(sampler);
    CAPTURE(decoder.describe());
    for (int step = 0; step < 3; ++step) CHECK(decoder.try_step(row{gone, -300, gone}, at_start(1)).token == 1);
    CHECK(decoder.try_step(row{gone, gone}, at_start(1)).status == row_status::empty);
    CHECK(decoder.try_step(row{0, 0, gone}, at_start(1)).status == row_status::ok);
  }
}

TEST_CASE("min_p and a seed work without another parameter (TensorRT-Model-Connect PR1158)") {
  const row logits = logs({0.3, 0.25, 0.2, 0.15, 0.05, 0.05});
  const auto check = [&](auto preset) {
    CAPTURE(preset.describe());
    std::set<token_id> drawn;
    for (std::int64_t seed = 0; seed < 100; ++seed) {
      sampling_params p = preset.params();
      p.seed = seed;
      preset.assign(p);
      REQUIRE(preset.seed() == static_cast<std::uint64_t>(seed));
      const token_id token = preset.step(logits, at_start(*preset.seed()));
      CHECK(preset.step(logits, at_start(*preset.seed())) == token);
      drawn.insert(token);
    }
    CHECK(drawn == std::set<token_id>{0, 1, 2, 3});
  };
  check(presets::paper({.min_p = 0.4}));
  check(presets::llama_cpp({.min_p = 0.4}));
  check(presets::vllm({.min_p = 0.4}));
  check(presets::trtllm({.min_p = 0.4}));
  check(presets::hf({.do_sample = true, .min_p = 0.4}));
}

TEST_CASE("what is absent stays absent, though the preset has a default (mistral.rs#2440, osaurus#932)") {
  const presets::llama_cpp none;
  CHECK(none.describe().find("top_p(0.95)") != std::string::npos);
  CHECK(!none.params().top_p.has_value());
  CHECK(decant::given_parameters(none.params()).empty());
  // A request's value wins over the default, also where it equals another preset's off value.
  CHECK(presets::llama_cpp({.top_p = 1}).describe().find("top_p") == std::string::npos);
  CHECK(presets::llama_cpp({.top_k = 0}).describe().find("top_k") == std::string::npos);
  CHECK(presets::llama_cpp({.temperature = 1}).describe().find("temperature") == std::string::npos);
}

TEST_CASE("all ends are banned, not one of them (ScaleLLM PR305, transformers PR20727, llama.cpp#4000)") {
  const row logits{1, 9, 0, 9};
  sampling_params p;
  p.eos_token_ids = {1, 3};
  p.min_tokens = 2;
  const auto ends_banned = [&](auto preset, std::size_t written) {
    const tokens text(1 + written, 0);
    const decant::law left = preset.law_of(logits, context_after(text, 1, draw_stream(1)));
    CHECK(left.total > 0);
    return left.probability(1) == 0 && left.probability(3) == 0;
  };
  const auto check_min_tokens = [&](const auto& preset) {
    CAPTURE(preset.describe());
    CHECK(ends_banned(preset, 0));
    CHECK(ends_banned(preset, 1));
    CHECK_FALSE(ends_banned(preset, 2));
  };
  check_min_tokens(presets::vllm(p));
  check_min_tokens(presets::paper(p));
  check_min_tokens(presets::trtllm([&] {
    sampling_params sampled = p;
    sampled.top_p = 1;
    return sampled;
  }()));
  check_min_tokens(presets::hf(p));
  p.min_tokens = {};
  p.ignore_eos = true;
  for (const std::size_t written : {0U, 5U, 500U}) {
    CHECK(ends_banned(presets::llama_cpp(p), written));
    CHECK(ends_banned(presets::paper(p), written));
  }
}

TEST_CASE("reported numbers are those of a distribution, in each of the four modes (sglang#2178, llama.cpp PR7203)") {
  const row logits{0.5F, 3, -1, 3, 2, gone};
  auto decoder = decant::temperature(0.5) | decant::top_k(3) | decant::multinomial{};
  const auto report = [&](log_prob_mode mode) {
    decant::token_log_probs out;
    REQUIRE(decoder.try_step(logits, at_start(3), {.top = 100, .mode = mode}, out).status == row_status::ok);
    REQUIRE(out.top.size() == logits.size());
    for (std::size_t i = 1; i < out.top.size(); ++i) {
      const auto &before = out.top[i - 1], &after = out.top[i];
      CHECK((before.value > after.value || (before.value == after.value && before.id < after.id)));
      CHECK(after.rank == i + 1);
    }
    CHECK(std::ranges::find(out.top, out.chosen) != out.top.end());
    return out.top;
  };
  const auto mass = [](const std::vector<decant::ranked_token>& entries) {
    double sum = 0;
    for (const auto& each : entries) sum += std::exp(each.value);
    return sum;
  };
  const auto left = [](const std::vector<decant::ranked_token>& entries) {
    return std::ranges::count_if(entries, [](const auto& each) { return each.value > -infinity; });
  };
  const auto raw = report(log_prob_mode::raw_log_probs), processed = report(log_prob_mode::processed_log_probs);
  CHECK(mass(raw) == Approx(1).epsilon(1e-9));
  CHECK(left(raw) == 5);
  CHECK(mass(processed) == Approx(1).epsilon(1e-9));
  CHECK(left(processed) == 3);
  for (const auto& each : report(log_prob_mode::raw_logits)) {
    CHECK(each.value == static_cast<double>(logits[static_cast<std::size_t>(each.id)]));
  }
  const auto processed_logits = report(log_prob_mode::processed_logits);
  CHECK(processed_logits[0] == decant::ranked_token{1, 6, 1});
  CHECK(processed_logits[1] == decant::ranked_token{3, 6, 2});
  CHECK(processed_logits[2] == decant::ranked_token{4, 4, 3});
  CHECK(left(processed_logits) == 3);
}

TEST_CASE("two instances draw the same, and a larger number never an earlier token (aiter PR2035)") {
  for (const std::size_t size : {std::size_t{7}, std::size_t{300}, std::size_t{6000}}) {
    const row logits = random_row(size, size), elsewhere = logits;
    auto one = decant::top_p(0.98) | decant::temperature(1.3) | decant::multinomial{}, other = one;
    const decant::law left = one.law_of(logits, at_start(0));
    std::vector<std::pair<double, std::size_t>> drawn;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      CHECK(one.step(logits, at_start(seed)) == other.step(elsewhere, at_start(seed)));
      const draw_stream draws = draw_stream(seed).at(0);
      drawn.emplace_back(draws.uniform(decant::purpose::sample),
                         draws.choose(left.weights, left.total, decant::purpose::sample));
    }
    std::ranges::sort(drawn);
    CHECK(std::ranges::is_sorted(drawn, {}, &std::pair<double, std::size_t>::second));
    CHECK(drawn.front().second < drawn.back().second);
  }
}

TEST_CASE("a seed gives the same tokens in any number of threads (CTranslate2#1757)") {
  const auto run = [] {
    decant::stateless model([](std::span<const token_id> text) { return random_row(500, text.size()); });
    const tokens prompt{0};
    return decant::generate(model, prompt, decant::top_p(0.95) | decant::multinomial{},
                            {.max_new_tokens = 30, .seed = 42})
        .tokens;
  };
  const tokens alone = run();
  std::vector<tokens> outputs(4);
  std::vector<std::thread> threads;
  for (tokens& output : outputs) threads.emplace_back([&] { output = run(); });
  for (std::thread& each : threads) each.join();
  for (const tokens& output : outputs) CHECK(output == alone);
}

TEST_CASE("a stage that mirostat makes ineffective is named (llama-cpp-python#914, koboldcpp PR142)") {
  sampling_params p;
  p.mirostat = 2;
  CHECK(presets::llama_cpp::make(p).has_value());
  for (const auto& [parameter, text] : std::vector<std::pair<std::optional<double> sampling_params::*, std::string>>{
           {&sampling_params::top_p, "top_p"},
           {&sampling_params::min_p, "min_p"},
           {&sampling_params::typical_p, "typical_p"},
           {&sampling_params::repetition_penalty, "repetition_penalty"}}) {
    sampling_params both = p;
    both.*parameter = 0.5;
    const auto made = presets::llama_cpp::make(both);
    REQUIRE(!made.has_value());
    CHECK(made.error().message == "llama_cpp: " + text + " = 0.5 has no effect beside mirostat");
  }
  // The state is one a sequence: a copy made in mid-stream goes its own way from the same mu.
  presets::llama_cpp first(p);
  const row logits = random_row(100, 5);
  tokens text;
  for (std::uint64_t step = 0; step < 20; ++step) text.push_back(first.step(logits, at_start(step)));
  const double mu = first.sampler().as<decant::mirostat>()->mu();
  CHECK(mu != 10);
  presets::llama_cpp second = first;
  static_cast<void>(second.step(logits, at_start(99)));
  CHECK(first.sampler().as<decant::mirostat>()->mu() == mu);
  CHECK(second.sampler().as<decant::mirostat>()->mu() != mu);
}

}  // namespace public_cases_test
