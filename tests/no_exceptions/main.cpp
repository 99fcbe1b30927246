// SPDX-License-Identifier: MIT
#include <decant/decant.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

// What decant promises without exceptions and run-time type information: errors as values, and everything else.

static_assert(!DECANT_EXCEPTIONS, "this program is compiled with -fno-exceptions");

namespace {

int failures = 0;

void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("failed: %s\n", what);
  ++failures;
}

template <class Result>
void refused(const Result& made, std::string_view where, std::string_view message, const char* what) {
  check(!made.has_value(), what);
  check(made.error().code == decant::error_code::bad_parameter, what);
  check(made.error().where == where, what);
  check(made.error().message.find(message) != std::string::npos, what);
}

void results() {
  const decant::result<int> good = 3;
  check(good.has_value() && *good == 3, "a result holds its value");
  const decant::result<int> bad = decant::error{decant::error_code::bad_parameter, "top_p", "p must be a number"};
  check(!bad && bad.error().text() == "top_p: p must be a number", "a result holds its error");
}

void parameters() {
  const double nan = std::bit_cast<double>(std::uint64_t{0x7FF8000000000000U});
  refused(decant::top_p::make(-0.5), "top_p.p", "top_p: p = -0.5", "top_p refuses -0.5");
  refused(decant::top_p::make(nan), "top_p.p", "top_p: p = nan", "top_p refuses NaN");
  refused(decant::temperature::make(-1.0), "temperature.t", "-1", "temperature refuses -1");
  refused(decant::temperature::make(nan), "temperature.t", "nan", "temperature refuses NaN");
  refused(decant::min_p::make(1.5), "min_p.p", "1.5", "min_p refuses 1.5");
  refused(decant::repetition_penalty::make(0.0), "repetition_penalty.penalty", "0", "repetition_penalty refuses 0");
  refused(decant::frequency_penalty::make(nan), "frequency_penalty.penalty", "nan", "frequency_penalty refuses NaN");
  refused(decant::presence_penalty::make(nan), "presence_penalty.penalty", "nan", "presence_penalty refuses NaN");
  check(decant::top_p::make(0.9).has_value(), "top_p takes 0.9");
  check(decant::temperature::make(0.0).has_value(), "temperature takes 0");
  check(decant::top_k::make(40).has_value(), "top_k takes 40");
  check(decant::no_repeat_ngram::make(3).has_value(), "no_repeat_ngram takes 3");
  check(!decant::stop_matcher::make({""}).has_value(), "an empty stop string is refused");
  check(decant::stop_matcher::make({"x"}).has_value(), "a stop string is taken");
}

void steps() {
  auto decoder = decant::top_k(2) | decant::temperature(0.7) | decant::multinomial{};
  const std::vector<decant::token_id> history{0};
  const auto context = decant::context_after(history, 1, decant::draw_stream(1));
  std::vector<float> row{1, 3, 2};
  const auto good = decoder.try_step(row, context);
  check(good.status == decant::row_status::ok && (good.token == 1 || good.token == 2), "a good row gives a token");
  check(decoder.step(row, context) == good.token, "step gives the same token");
  check(row == std::vector<float>{1, 3, 2}, "the row is restored");
  check(decoder.law_of(row, context).size() == 2, "the law has what top_k keeps");

  row[1] = std::bit_cast<float>(0x7FC00000U);
  const auto bad = decoder.try_step(row, context);
  check(bad.token == decant::no_token && bad.status == decant::row_status::not_finite,
        "NaN gives no token and its status");
  check(decoder.law_of(row, context).empty(), "a bad row has no law");
  const std::vector<float> empty(5, decant::gone);
  check(decoder.try_step(empty, context).status == decant::row_status::empty, "all -inf gives no token and its status");

  decant::dynamic_chain run_time{decant::top_k(2), decant::temperature(0.7)};
  auto erased = run_time | decant::any_sampler(decant::multinomial{});
  row[1] = 3;
  check(erased.try_step(row, context).token == good.token, "an erased decoder gives the same token");
  check(!decoder.explain(row, context, 0).survives, "explain works");
}

void generations() {
  decant::stateless model([](std::span<const decant::token_id> tokens) {
    std::vector<float> row(4, 0.0F);
    row[(static_cast<std::size_t>(tokens.back()) + 1) % 4] = 50;
    if (tokens.size() > 9) row.assign(4, decant::gone);
    return row;
  });
  const auto bytes = [](decant::token_id id) {
    return std::string_view("abcd").substr(static_cast<std::size_t>(id), 1);
  };
  const std::vector<decant::token_id> prompt{0};
  auto decoder = decant::top_p(0.9) | decant::multinomial{};
  const auto run = decant::generate(model, prompt, decoder,
                                    {.max_new_tokens = 6, .stop_strings = {"da"}, .bytes = bytes, .seed = 1});
  check(run.tokens == std::vector<decant::token_id>{1, 2, 3, 0}, "generate draws what the model says");
  check(run.text == "bc" && run.finish == decant::finish_reason::stop_string, "a stop string ends the text");
  const auto stopped = decant::generate(model, prompt, decoder, {.stop_tokens = {2}, .seed = 1});
  check(stopped.finish == decant::finish_reason::stop_token && stopped.stop_token == 2, "a stop token ends the run");
  const auto bad = decant::generate(model, prompt, decoder, {.max_new_tokens = 50, .seed = 1});
  check(
      bad.finish == decant::finish_reason::bad_row && bad.status == decant::row_status::empty && bad.tokens.size() == 9,
      "a bad row ends the run");
  const auto time =
      decant::generate(model, prompt, decoder,
                       {.stop = decant::stop_any(decant::stop_sequence{{1, 2}}, decant::max_new_tokens{9}), .seed = 1});
  check(time.finish == decant::finish_reason::stop_sequence, "criteria compose");
}

/// A text that a model without preferences writes under a decoder.
template <class D>
std::vector<decant::token_id> written(D decoder) {
  decant::stateless level([](std::span<const decant::token_id>) { return std::vector<float>(50, 0.0F); });
  const std::vector<decant::token_id> prompt{0, 1, 2, 3};
  return decant::generate(level, prompt, decoder, {.max_new_tokens = 200, .seed = 1}).tokens;
}

template <class Mark, class... Size>
void found_in(const Mark& mark, const std::vector<decant::token_id>& text, const char* what, Size... size) {
  check(mark.detect(text, size...).p_value < 1e-4, what);
}

void watermarks() {
  refused(decant::green_list_watermark::make(decant::green_list_options{.fraction = 1}),
          "green_list_watermark.fraction", "1", "green_list_watermark refuses fraction 1");
  refused(decant::unigram_watermark::make(decant::unigram_options{.bias = -1}), "unigram_watermark.bias", "-1",
          "unigram_watermark refuses bias -1");
  refused(decant::synthid_watermark::make(decant::synthid_options{}), "synthid_watermark.keys", "0",
          "synthid_watermark refuses to be without keys");
  refused(decant::gumbel_watermark::make(decant::gumbel_watermark_options{.context_width = 0}),
          "gumbel_watermark.context_width", "0", "gumbel_watermark refuses width 0");

  const auto plain = written(decant::decode_with(decant::multinomial{}));
  const decant::green_list_watermark green;
  found_in(green, written(green | decant::multinomial{}), "a green list is found", std::size_t{50});
  check(green.detect(plain, 50).p_value > 1e-4, "no green list is found in plain text");
  const decant::unigram_watermark unigram;
  found_in(unigram, written(unigram | decant::multinomial{}), "a unigram watermark is found", std::size_t{50},
           decant::detection_options{.count_repeats = true});
  const decant::synthid_watermark synthid({.keys = {1, 2, 3, 4, 5, 6, 7, 8}});
  found_in(synthid, written(synthid | decant::multinomial{}), "SynthID is found");
  const decant::gumbel_watermark gumbel;
  found_in(gumbel, written(decant::decode_with(gumbel)), "a Gumbel watermark is found");
}

template <class Preset>
void made_by(const char* what) {
  decant::sampling_params params;
  params.top_p = 0.9;
  params.do_sample = std::is_same_v<Preset, decant::presets::hf> ? std::optional(true) : std::nullopt;
  auto preset = Preset::make(params);
  check(preset.has_value(), what);
  const std::vector<decant::token_id> none;
  const std::vector<float> row{1, 9, 2};
  check(preset->try_step(row, decant::context_after(none, 0, decant::draw_stream(1))).token == 1, what);
  params.top_p = -1;
  check(!Preset::make(params).has_value(), what);
  check(preset->try_assign(params).has_value() && preset->params().top_p == 0.9, what);
}

void presets() {
  made_by<decant::presets::paper>("the paper preset");
  made_by<decant::presets::hf>("the hf preset");
  made_by<decant::presets::vllm>("the vllm preset");
  made_by<decant::presets::trtllm>("the trtllm preset");
  refused(
      decant::presets::llama_cpp::make(decant::sampling_params{.temperature = 1, .dynamic_temperature_exponent = -1}),
      "llama_cpp.dynamic_temperature_exponent", "-1", "the llama_cpp preset refuses an exponent of -1");
  check(!decant::llama_cpp_order::from_names("top_q").has_value(), "an unknown stage is refused");
}

void searches() {
  decant::stateless model(
      [](std::span<const decant::token_id> text) { return std::vector<float>{text.size() > 2 ? 9.0F : 0.0F, 1, 0}; });
  const std::vector<decant::token_id> prompt{1};
  const auto phrases = decant::required_phrases::make(std::vector<decant::phrase_choice>{{{{2, 1}}}});
  const decant::beam_options options{.end_tokens = {0}, .constraint = *phrases};
  check(!options.validate().has_value(), "options of a search that break no rule");
  const decant::beam_result found = decant::beam_search(model, prompt, options);
  check(found.best() != nullptr && found.best()->tokens == std::vector<decant::token_id>{2, 1, 0},
        "a constrained search");
  check(decant::beam_options{.width = 0}.validate().has_value(), "a search refuses to be without width");
  refused(decant::required_phrases::make(std::vector<decant::phrase_choice>{{}}), "required_phrases.alternatives", "0",
          "required_phrases refuses a choice of nothing");
}

}  // namespace

void speculation() {
  const auto rows = [](std::span<const decant::token_id> text) {
    return std::vector<float>{0, text.size() % 3 == 0 ? 3.0F : 1.0F, 1};
  };
  decant::stateless model(rows), alone(rows), small(rows);
  const std::vector<decant::token_id> prompt{1};
  const auto chain = *decant::temperature::make(0.8) | decant::multinomial{};
  const decant::generate_options options{.max_new_tokens = 20, .seed = 3};
  decant::draft_model drafter(small, chain);
  const auto run = decant::speculate(model, prompt, drafter, chain, options);
  check(run.tokens.size() == 20, "speculation writes to the end");
  check(run.statistics.tokens_per_pass() > 4, "a draft model that is the target is believed");
  check(decant::speculate(model, prompt, drafter, chain, options, {}, decant::coupled_verification{}).tokens ==
            decant::generate(alone, prompt, chain, options).tokens,
        "coupled verification writes what plain decoding does");
  refused(decant::typical_acceptance::make(2.0, 0.3), "typical_acceptance.epsilon", "2",
          "typical_acceptance refuses 2");
  refused(decant::lenient_verification::make(0.0), "lenient_verification.lenience", "0",
          "lenient_verification refuses 0");
  refused(decant::among_top::make(0), "among_top.k", "0", "among_top refuses 0");
  refused(decant::relaxed_verification<decant::among_top>::make(decant::among_top(2), 0),
          "relaxed_verification.min_block", "0", "relaxed_verification refuses 0");
  check(!decant::draft_length::make_optimal(1.5).has_value(), "a draft length refuses a cost of 1.5");
}

int main() {
  const double u = decant::draw_stream(1).uniform(decant::purpose::sample);
  check(u > 0 && u < 1, "a draw is strictly inside (0, 1)");
  results();
  parameters();
  steps();
  generations();
  watermarks();
  presets();
  searches();
  speculation();
  return failures == 0 ? 0 : 1;
}
