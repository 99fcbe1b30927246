// SPDX-License-Identifier: MIT
#include <decant/chain/preset.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <decant/chain/preset_hf.hpp>
#include <decant/chain/preset_llama_cpp.hpp>
#include <decant/chain/preset_paper.hpp>
#include <decant/chain/preset_trtllm.hpp>
#include <decant/chain/preset_vllm.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/testing/counting_allocator.hpp>

#include "chain/policies.hpp"
#include "chain/presets.hpp"
#include "support/catch.hpp"

namespace preset_test {

using namespace presets_test;
using chain_policies::no_repeat;
using decant::candidates;
using decant::preset;
using decant::preset_plan;
using decant::sampling_params;
using decant::step_context;
namespace presets = decant::presets;

/// A house that knows two parameters, and takes an absent top_k for 4.
struct small_rules {
  static constexpr std::string_view name = "small";

  std::int64_t usual_k = 4;

  [[nodiscard]] bool knows(std::string_view parameter) const { return parameter == "top_k" || parameter == "min_p"; }
  [[nodiscard]] std::optional<decant::parameter_fault> validate(const sampling_params& p) const {
    return decant::detail::first_broken(name, {{"top_k", p.top_k, [](double k) { return k < 100; }, "must be < 100"}});
  }
  [[nodiscard]] sampling_params normal(sampling_params p) const {
    p.top_k = p.top_k.value_or(usual_k);
    return p;
  }
  [[nodiscard]] preset_plan plan(const sampling_params& given) const {
    preset_plan out;
    out.add<decant::top_k>(normal(given).top_k);
    out.add_custom();
    out.add<decant::min_p>(given.min_p);
    return out;
  }
};
static_assert(decant::PresetRules<small_rules>);
using small = preset<small_rules>;
static_assert(decant::Decoder<small>);

/// Draws count tokens from rows that change, and tells them apart from the text so far.
template <class D>
std::vector<token_id> decode(D& decoder, std::vector<token_id>& text, std::size_t count) {
  std::vector<token_id> drawn;
  for (std::size_t i = 0; i < count; ++i) {
    drawn.push_back(decoder.step(some_row(200, text.size()), decant::context_after(text, 0, decant::draw_stream(9))));
    text.push_back(drawn.back());
  }
  return drawn;
}

TEST_CASE("a preset is a decoder by anybody's rules") {
  check_same(small(), by_hand({decant::top_k(4)}));
  check_same(small({.top_k = 7, .min_p = 0.2}), by_hand({decant::top_k(7), decant::min_p(0.2)}));
  check_same(small({}, {.usual_k = 2}), by_hand({decant::top_k(2)}));
}

TEST_CASE("a preset leaves out steps that are off") {
  const small decoder({.top_k = 0, .min_p = 0});
  CHECK(decoder.describe() == "multinomial");
  CHECK(decoder.processor().size() == 1);  // the place of the user's processors
}

TEST_CASE("a preset takes no parameter that it would ignore") {
  sampling_params p{.temperature = 0.5};
  CHECK(complaint<small>(p) == "small: temperature = 0.5 is not a parameter that it has");
  const auto made = small::make(p);
  CHECK(made.error().where == "small.temperature");
  p.temperature = 1;
  CHECK(complaint<small>(p).empty());
  p.bad_words = {{1}, {2}};
  CHECK(complaint<small>(p) == "small: bad_words = 2 is not a parameter that it has");
  p = {};
  p.xtc_threshold = 0.2;  // shapes nothing that is there
  CHECK(complaint<small>(p).empty());
}

TEST_CASE("a preset names itself in faults of ranges, of numbers and of policies") {
  CHECK(complaint<small>({.top_k = 100}) == "small: top_k = 100 must be < 100");
  CHECK(complaint<small>({.min_p = 2}) == "small: min_p = 2 must lie in [0, 1]");
  CHECK(complaint<small>({.min_p = std::numeric_limits<double>::quiet_NaN()}) == "small: min_p = nan must be a number");
}

TEST_CASE("no preset lets a number through that a policy would not take") {
  const double infinite = std::numeric_limits<double>::infinity();
  std::vector<sampling_params> bad(29);
  std::size_t i = 0;
  bad[i++].temperature = -1;
  bad[i++].temperature = infinite;
  bad[i++].top_p = -0.1;
  bad[i++].min_p = 1.1;
  bad[i++].typical_p = -0.1;
  bad[i++].top_n_sigma = -1;
  bad[i++].xtc_probability = 1.5;
  bad[i++].xtc_threshold = -1;
  bad[i++].epsilon_cutoff = -0.1;
  bad[i++].eta_cutoff = 1.1;
  bad[i++].top_h = -1;
  bad[i++].top_a = 2;
  bad[i++].tail_free = -1;
  bad[i++].smoothing_factor = -1;
  bad[i++].smoothing_curve = 4;
  bad[i++].repetition_penalty = 0;
  bad[i++].frequency_penalty = infinite;
  bad[i++].presence_penalty = infinite;
  bad[i++].dry_multiplier = -1;
  bad[i++].dry_base = 0.5;
  bad[i++].dry_allowed_length = -1;
  bad[i++].min_tokens = -1;
  bad[i++].min_length = -1;
  bad[i++].exponential_decay_factor = 0;
  bad[i++].mirostat = -1;
  bad[i++].mirostat_tau = -1;
  bad[i++].mirostat_eta = -1;
  bad[i++].adaptive_target = 1.1;
  bad[i++].bad_words = {{}};
  REQUIRE(i == bad.size());
  for (std::size_t n = 0; n < bad.size(); ++n) {
    INFO("case " << n);
    CHECK_FALSE(complaint<presets::paper>(bad[n]).empty());
  }
}

TEST_CASE("what needs another parameter says so") {
  sampling_params p;
  p.min_tokens = 3;
  CHECK(complaint<presets::paper>(p) == "paper: min_tokens = 3 needs eos_token_ids");
  p = {};
  p.min_length = 3;
  CHECK(complaint<presets::paper>(p) == "paper: min_length = 3 needs eos_token_ids");
  p = {};
  p.forced_eos = true;
  p.eos_token_ids = {2};
  CHECK(complaint<presets::paper>(p) == "paper: forced_eos = 1 needs max_length");
  p = {};
  p.exponential_decay_factor = 1.1;
  CHECK(complaint<presets::paper>(p) == "paper: exponential_decay_factor = 1.1 needs eos_token_ids");
  p = {};
  p.encoder_repetition_penalty = 1.1;
  CHECK(complaint<presets::paper>(p) == "paper: encoder_repetition_penalty = 1.1 needs encoder_tokens");
  p = {};
  p.encoder_no_repeat_ngram_size = 2;
  CHECK(complaint<presets::paper>(p) == "paper: encoder_no_repeat_ngram_size = 2 needs encoder_tokens");
}

TEST_CASE("a preset's own defaults leave every other parameter effective") {
  auto row = some_row(100, 3);
  for (float& logit : row) logit /= 3;
  const auto with_min_p = [&](auto decoder) { return left(decoder, row).size(); };
  CHECK(with_min_p(presets::trtllm({.min_p = 0.3})) > 1);
  CHECK(with_min_p(presets::trtllm({.min_p = 0.3})) < with_min_p(presets::trtllm({.min_p = 0.01})));
  CHECK(with_min_p(presets::vllm({.min_p = 0.3})) < with_min_p(presets::vllm({.min_p = 0.01})));
  CHECK(with_min_p(presets::hf({.do_sample = true, .min_p = 0.3})) <
        with_min_p(presets::hf({.do_sample = true, .min_p = 0.01})));
  CHECK(with_min_p(presets::llama_cpp({.min_p = 0.3})) < with_min_p(presets::llama_cpp({.min_p = 0.01})));
}

TEST_CASE("temperature and min_p in the presets' two orders keep different tokens") {
  const std::vector<float> row{10, 8, 7, 0, -2};
  const sampling_params p{.temperature = 5, .min_p = 0.1};
  auto llama = p, hugging = p;
  llama.top_k = hugging.top_k = 0;
  llama.top_p = 1;
  hugging.do_sample = true;
  CHECK(left(presets::llama_cpp(llama), row) == std::vector<token_id>{0, 1});
  CHECK(left(presets::hf(hugging), row) == std::vector<token_id>{0, 1, 2, 3});
}

TEST_CASE("other parameters in mid-stream leave mirostat's mu where it stands") {
  sampling_params p{.temperature = 0.9};
  p.mirostat = 2;
  presets::llama_cpp decoder(p);
  std::vector<token_id> text;
  decode(decoder, text, 20);
  const decant::mirostat before = *decoder.sampler().as<decant::mirostat>();
  CHECK(before.mu() != 10);

  p.temperature = 0.5;
  decoder.assign(p);
  CHECK(decoder.params().temperature == 0.5);
  CHECK(*decoder.sampler().as<decant::mirostat>() == before);
  auto by_hand_with_state = by_hand({decant::temperature(0.5)}, before);
  std::vector<token_id> same_text = text;
  CHECK(decode(decoder, text, 10) == decode(by_hand_with_state, same_text, 10));

  p.mirostat_tau = 2;  // also where a parameter of mirostat itself changes
  const double mu = decoder.sampler().as<decant::mirostat>()->mu();
  decoder.assign(p);
  CHECK(decoder.sampler().as<decant::mirostat>()->mu() == mu);
  CHECK(decoder.describe() == "temperature(0.5) | mirostat(2, 0.1, llama_cpp)");

  decoder.rollback(10);  // back over both assignments
  CHECK(decoder.sampler().as<decant::mirostat>()->mu() == before.mu());
  decoder.reset();
  CHECK(decoder.sampler().as<decant::mirostat>()->mu() == 4);
}

TEST_CASE("a rollback beyond the assignment that switched mirostat on is misuse") {
  presets::llama_cpp decoder({.temperature = 1});
  std::vector<token_id> text;
  decode(decoder, text, 3);
  sampling_params p;
  p.mirostat = 2;
  decoder.assign(p);
  decode(decoder, text, 2);
  CHECK_THROWS_AS(decoder.rollback(3), assertion_error);
  decoder.rollback(2);
  CHECK(decoder.sampler().as<decant::mirostat>()->mu() == 10);
}

TEST_CASE("other parameters before the first token begin anew") {
  sampling_params p;
  p.mirostat = 1;
  presets::paper decoder(p);
  CHECK(decoder.sampler().as<decant::mirostat_v1>()->mu() == 6);
  p.mirostat_tau = 5;
  decoder.assign(p);
  CHECK(decoder.sampler().as<decant::mirostat_v1>()->mu() == 10);
  decoder.rollback(0);
  decoder.reset();
  CHECK(decoder.sampler().as<decant::mirostat_v1>()->mu() == 10);
}

TEST_CASE("other parameters in mid-stream keep what mirostat_v1 and adaptive_p have learnt") {
  sampling_params p;
  p.mirostat = 1;
  presets::paper first(p);
  std::vector<token_id> text;
  decode(first, text, 12);
  const double mu = first.sampler().as<decant::mirostat_v1>()->mu();
  p.temperature = 2;
  first.assign(p);
  CHECK(mu != 6);
  CHECK(first.sampler().as<decant::mirostat_v1>()->mu() == mu);

  sampling_params q;
  q.adaptive_target = 0.3;
  presets::paper second(q);
  text.clear();
  decode(second, text, 12);
  const decant::adaptive_p learnt = *second.sampler().as<decant::adaptive_p>();
  q.min_p = 0.05;
  second.assign(q);
  CHECK(*second.sampler().as<decant::adaptive_p>() == learnt);
  q.adaptive_decay = 0.5;
  second.assign(q);
  CHECK(second.sampler().as<decant::adaptive_p>()->adapted_target() == learnt.adapted_target());
  second.reset();
  CHECK(second.sampler().as<decant::adaptive_p>()->adapted_target() == Approx(0.3));
  q.adaptive_target = -1;
  second.assign(q);
  CHECK_FALSE(second.keeps_state());
}

TEST_CASE("the user's processors run at their place, and keep their state when parameters change") {
  presets::llama_cpp decoder({.temperature = 1}, {}, {no_repeat()});
  CHECK(decoder.describe() == "no_repeat | top_k(40) | top_p(0.95) | min_p(0.05) | multinomial");
  std::vector<token_id> text;
  const auto drawn = decode(decoder, text, 3);
  decoder.assign({.temperature = 2, .top_k = 5});
  CHECK(decoder.describe() == "no_repeat | top_k(5) | top_p(0.95) | min_p(0.05) | temperature(2) | multinomial");
  const auto* custom = decoder.processor()[0].as<decant::dynamic_chain>();
  REQUIRE(custom != nullptr);
  CHECK((*custom)[0].as<no_repeat>()->accepted() == drawn);
}

TEST_CASE("every preset has a place for the user's processors") {
  const auto ban = [](candidates& row, const step_context&) { row.ban(0); };
  const decant::dynamic_chain custom{ban};
  CHECK(presets::hf({.do_sample = true, .temperature = 2, .top_k = 3}, {}, custom).describe() ==
        "function | temperature(2) | top_k(3) | multinomial");
  CHECK(presets::trtllm({}, {}, custom).describe() == "function | greedy");
  sampling_params p{.temperature = 2};
  p.presence_penalty = 1;
  CHECK(presets::vllm(p, {}, custom).describe() == "function | presence_penalty(1) | temperature(2) | multinomial");
  CHECK(presets::paper(p, {}, custom).describe() == "presence_penalty(1) | function | temperature(2) | multinomial");
}

TEST_CASE("bad parameters in mid-stream change nothing") {
  presets::vllm decoder({.temperature = 0.5});
  CHECK_THROWS_AS(decoder.assign({.temperature = 3}), decant::parameter_error);
  const auto failure = decoder.try_assign({.top_p = 0});
  REQUIRE(failure.has_value());
  CHECK(failure->where == "vllm.top_p");
  CHECK(failure->message == "vllm: top_p = 0 must lie in (0, 1]");
  CHECK(decoder.describe() == "temperature(0.5) | multinomial");
  CHECK(decoder.params().temperature == 0.5);
  CHECK_FALSE(decoder.try_assign({.temperature = 0.7}).has_value());
  CHECK(decoder.describe() == "temperature(0.7) | multinomial");
}

TEST_CASE("a copy of a preset is a fork") {
  sampling_params p;
  p.mirostat = 2;
  presets::llama_cpp one(p);
  std::vector<token_id> text;
  decode(one, text, 5);
  presets::llama_cpp other = one;
  const double mu = other.sampler().as<decant::mirostat>()->mu();
  decode(one, text, 5);
  CHECK(other.sampler().as<decant::mirostat>()->mu() == mu);
  CHECK(one.sampler().as<decant::mirostat>()->mu() != mu);
}

TEST_CASE("a preset's steps allocate nothing in steady state") {
  sampling_params p{.temperature = 0.7, .top_k = 50, .top_p = 0.9, .min_p = 0.01, .typical_p = 0.95};
  p.repetition_penalty = 1.1;
  p.dry_multiplier = 0.8;
  p.xtc_probability = 1;
  presets::llama_cpp decoder(p);
  const auto row = some_row(3000, 1);
  for (std::uint64_t seed = 0; seed < 5; ++seed) static_cast<void>(decoder.step(row, after_text(seed)));
  const std::size_t before = decant::testing::allocations();
  for (std::uint64_t seed = 0; seed < 20; ++seed) static_cast<void>(decoder.step(row, after_text(seed)));
  CHECK(decant::testing::allocations() == before);
}

TEST_CASE("all parameters that a peer does not have can be listed", "[chain][preset]") {
  decant::sampling_params params;
  params.typical_p = 0.9;
  params.top_p = 0.9;
  params.dry_multiplier = 0.8;
  params.top_a = 0;  // asks for nothing
  CHECK(decant::presets::vllm::unknown(params) == std::vector<std::string_view>{"typical_p", "dry_multiplier"});
  CHECK(decant::presets::llama_cpp::unknown(params).empty());
  CHECK(decant::presets::vllm::unknown({}).empty());
}

}  // namespace preset_test
