// SPDX-License-Identifier: MIT
#include <decant/generate/generate.hpp>

#include "generate/models.hpp"
#include "math/bits.hpp"
#include "support/catch.hpp"

#include <decant/chain/any.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace generate_test {

using namespace generate_models;
using decant::finish_reason;
using decant::generate;
using decant::generate_options;
using decant::generation;
using decant::greedy;
using decant::row_status;
using decant::token_event;
using decant::top_k;
using ids = std::vector<token_id>;

const auto best = top_k(0) | greedy{};
const ids zero{0};

static_assert(decant::Model<markov> && decant::Model<padded> && decant::Model<failing> &&
              decant::Model<decltype(scrambled_model())>);

// ---- reasons to end

TEST_CASE("a run of the wanted length", "[generate]") {
  markov model = cycle(5);
  const generation g = generate(model, zero, best, {.max_new_tokens = 7, .seed = 3});
  CHECK(g.tokens == ids{1, 2, 3, 4, 0, 1, 2});
  CHECK(g.finish == finish_reason::length);
  CHECK(g.stop_token == decant::no_token);
  CHECK_FALSE(g.stop_string);
  CHECK(g.status == row_status::ok);
  CHECK(g.prompt_tokens == 1);
  CHECK(g.seed == 3);
  CHECK(g.text.empty());
  CHECK(g.seconds() > 0);
}

TEST_CASE("a stop token ends the run, stands in the tokens and not in the text", "[generate]") {
  markov model = cycle(6);
  const generation g =
      generate(model, zero, best, {.max_new_tokens = 20, .stop_tokens = {9, 3, 4}, .bytes = letter, .seed = 1});
  CHECK(g.tokens == ids{1, 2, 3});
  CHECK(g.finish == finish_reason::stop_token);
  CHECK(g.stop_token == 3);
  CHECK(g.text == "bc");
}

TEST_CASE("a stop token drawn as the last token allowed is a stop token, not the length", "[generate]") {
  markov model = cycle(6);
  CHECK(generate(model, zero, best, {.max_new_tokens = 3, .stop_tokens = {3}, .seed = 1}).finish ==
        finish_reason::stop_token);
  CHECK(generate(model, zero, best, {.max_new_tokens = 2, .stop_tokens = {3}, .seed = 1}).finish ==
        finish_reason::length);
  CHECK(generate(model, zero, best, {.max_new_tokens = 3, .context_length = 4, .stop_tokens = {3}, .seed = 1}).finish ==
        finish_reason::stop_token);
  CHECK(generate(model, zero, best, {.max_new_tokens = 3, .stop_strings = {"d"}, .bytes = letter, .seed = 1}).finish ==
        finish_reason::stop_string);
  CHECK(generate(model, zero, best, {.max_new_tokens = 3, .stop = decant::stop_sequence{{2, 3}}, .seed = 1}).finish ==
        finish_reason::stop_sequence);
  CHECK(generate(model, zero, best, {.max_new_tokens = 3, .context_length = 4, .seed = 1}).finish ==
        finish_reason::length);
}

TEST_CASE("what stands in the prompt never ends a run, though BOS is EOS", "[generate]") {
  markov model = cycle(4);
  const ids prompt{0, 1, 0};
  const generation g = generate(model, prompt, best, {.max_new_tokens = 20, .stop_tokens = {0}, .seed = 1});
  CHECK(g.tokens == ids{1, 2, 3, 0});
  CHECK(g.finish == finish_reason::stop_token);
  const generation text =
      generate(model, prompt, best, {.max_new_tokens = 20, .stop_strings = {"ab"}, .bytes = letter, .seed = 1});
  CHECK(text.tokens == ids{1, 2, 3, 0, 1});
  CHECK(text.text == "bcd");
  const generation sequence =
      generate(model, prompt, best, {.max_new_tokens = 20, .stop = decant::stop_sequence{{0, 1}}, .seed = 1});
  CHECK(sequence.tokens == ids{1, 2, 3, 0, 1});
  CHECK(sequence.finish == finish_reason::stop_sequence);
}

TEST_CASE("criteria of every kind end a run with their own reason", "[generate]") {
  markov model = cycle(6);
  const auto run = [&](decant::any_criterion stop) {
    return generate(model, zero, best, {.max_new_tokens = 20, .stop = std::move(stop), .seed = 1});
  };
  CHECK(run(decant::max_new_tokens{4}).finish == finish_reason::length);
  CHECK(run(decant::max_new_tokens{4}).tokens.size() == 4);
  CHECK(run(decant::max_length{4}).finish == finish_reason::context_full);
  CHECK(run(decant::max_length{4}).tokens.size() == 3);
  const generation token = run(decant::stop_tokens{{5}});
  CHECK(token.finish == finish_reason::stop_token);
  CHECK(token.stop_token == 5);
  const generation lambda = run([](const decant::step_context& c) { return c.output().size() == 2; });
  CHECK(lambda.finish == finish_reason::criterion);
  CHECK(lambda.tokens == ids{1, 2});
  const generation composed = run(decant::stop_any(decant::stop_tokens{{17}}, decant::stop_sequence{{3, 4}}));
  CHECK(composed.finish == finish_reason::stop_sequence);
  CHECK(composed.tokens == ids{1, 2, 3, 4});
}

TEST_CASE("a time budget ends a run", "[generate]") {
  markov model = cycle(6);
  const generation none = generate(
      model, zero, best, {.max_new_tokens = 20, .stop = decant::time_budget(std::chrono::nanoseconds(0)), .seed = 1});
  CHECK(none.finish == finish_reason::time);
  CHECK(none.tokens == ids{1});
  const generation ample = generate(
      model, zero, best, {.max_new_tokens = 20, .stop = decant::time_budget(std::chrono::hours(10)), .seed = 1});
  CHECK(ample.finish == finish_reason::length);
  const generation either = generate(
      model, zero, best,
      {.max_new_tokens = 20, .stop = decant::stop_any(decant::time_budget(std::chrono::nanoseconds(0))), .seed = 1});
  CHECK(either.finish == finish_reason::time);
}

TEST_CASE("the context ends a run: the model's own length, or the one given", "[generate]") {
  markov model = cycle(5, 6);
  const ids prompt{0, 1};
  const generation own = generate(model, prompt, best, {.seed = 1});
  CHECK(own.tokens.size() == 4);
  CHECK(own.finish == finish_reason::context_full);
  const generation given = generate(model, prompt, best, {.context_length = 3, .seed = 1});
  CHECK(given.tokens.size() == 1);
  CHECK(given.finish == finish_reason::context_full);
  auto endless = scrambled_model();
  CHECK(generate(endless, prompt, sampling(), {.max_new_tokens = 300, .seed = 1}).finish == finish_reason::length);
}

TEST_CASE("a prompt that fills the context, or more, generates nothing and evaluates nothing", "[generate]") {
  for (const std::size_t context : {std::size_t{2}, std::size_t{1}}) {
    markov model = cycle(5, context);
    const ids prompt{0, 1};
    const generation g = generate(model, prompt, best, {.seed = 1});
    CHECK(g.tokens.empty());
    CHECK(g.finish == finish_reason::context_full);
    CHECK(model.calls == 0);
  }
}

TEST_CASE("no new tokens wanted: none, and nothing evaluated", "[generate]") {
  markov model = cycle(5);
  int calls = 0;
  const generation g =
      generate(model, zero, best, {.max_new_tokens = 0, .on_token = [&](const token_event&) { ++calls; }, .seed = 1});
  CHECK(g.tokens.empty());
  CHECK(g.finish == finish_reason::length);
  CHECK(g.prompt_tokens == 1);
  CHECK(model.calls == 0);
  CHECK(calls == 0);
}

TEST_CASE("the callback can cancel; one of void cannot", "[generate]") {
  markov model = cycle(5);
  ids seen;
  const auto until_three = [&](const token_event& event) {
    seen.push_back(event.token);
    return event.token != 3;
  };
  const generation g = generate(model, zero, best, {.max_new_tokens = 20, .on_token = until_three, .seed = 1});
  CHECK(g.finish == finish_reason::cancelled);
  CHECK(g.tokens == ids{1, 2, 3});
  CHECK(seen == g.tokens);
  seen.clear();
  const generation all =
      generate(model, zero, best,
               {.max_new_tokens = 6, .on_token = [&](const token_event& e) { seen.push_back(e.token); }, .seed = 1});
  CHECK(all.finish == finish_reason::length);
  CHECK(seen == all.tokens);
}

TEST_CASE("a bad row ends a run with its status and loses no text (colibri#369)", "[generate]") {
  const ids prompt{1, 2};
  for (const auto& [bad, status] : {std::pair{test_bits::float_of(0x7FC00000U), row_status::not_finite},
                                    std::pair{test_bits::float_of(0x7F800000U), row_status::not_finite},
                                    std::pair{decant::gone, row_status::empty}}) {
    failing model(20, 5, bad);
    int calls = 0;
    const auto all_held = [](token_id) { return std::string_view("x"); };
    const generation g = generate(model, prompt, sampling(),
                                  {.max_new_tokens = 50,
                                   .stop_strings = {"xxxxxxx"},
                                   .bytes = all_held,
                                   .on_token = [&](const token_event&) { ++calls; },
                                   .seed = 1});
    CHECK(g.finish == finish_reason::bad_row);
    CHECK(g.status == status);
    CHECK(g.tokens.size() == 3);
    CHECK(calls == 3);
    CHECK(g.text == "xxx");
    failing at_once(20, 0, bad);
    CHECK(generate(at_once, prompt, sampling(), {.seed = 1}).tokens.empty());
    CHECK(generate(at_once, prompt, sampling(), {.seed = 1}).finish == finish_reason::bad_row);
  }
}

TEST_CASE("a chain that empties the row ends the run, it does not draw token 0", "[generate]") {
  markov model = cycle(4);
  auto decoding = decant::no_repeat_ngram(1) | greedy{};
  const generation g = generate(model, zero, decoding, {.max_new_tokens = 50, .seed = 1});
  CHECK(g.tokens == ids{1, 2, 3});
  CHECK(g.finish == finish_reason::bad_row);
  CHECK(g.status == row_status::empty);
}

TEST_CASE("an empty prompt is misuse", "[generate]") {
  markov model = cycle(4);
  CHECK_THROWS_AS(generate(model, ids{}, best, {.seed = 1}), assertion_error);
}

// ---- the model is asked once for each position

TEST_CASE("each position is evaluated once, the prompt in one call", "[generate]") {
  padded model(20);
  const ids prompt{1, 2, 3, 4, 5};
  const generation g = generate(model, prompt, sampling(), {.max_new_tokens = 10, .seed = 1});
  CHECK(g.tokens.size() == 10);
  CHECK(model.given == 5 + 9);  // the last token's row is not needed
  markov counted = cycle(5);
  (void)generate(counted, ids{0, 1, 2}, best, {.max_new_tokens = 4, .seed = 1});
  CHECK(counted.calls == 4);
  CHECK(counted.evaluated == 6);
}

TEST_CASE("padding behind the vocabulary is never drawn, and history is what was drawn", "[generate]") {
  padded model(20);
  const generation g = generate(model, zero, decant::repetition_penalty(1.1) | decant::multinomial{},
                                {.max_new_tokens = 200, .seed = 1});
  CHECK(g.tokens.size() == 200);
  for (const token_id token : g.tokens) {
    CHECK(token >= 0);
    CHECK(token < 20);
  }
}

TEST_CASE("a second run on one model equals one on a fresh model", "[generate]") {
  auto used = scrambled_model();
  const ids first{1, 2, 3}, second{4, 5};
  (void)generate(used, first, sampling(), {.max_new_tokens = 15, .seed = 1});
  const generation again = generate(used, second, sampling(), {.max_new_tokens = 15, .seed = 2});
  auto fresh = scrambled_model();
  CHECK(again.tokens == generate(fresh, second, sampling(), {.max_new_tokens = 15, .seed = 2}).tokens);
}

TEST_CASE("a cached prefix is not evaluated again, and changes no token", "[generate]") {
  const ids prompt{1, 2, 3, 4};
  padded fresh(20);
  const generation expected = generate(fresh, prompt, sampling(), {.max_new_tokens = 6, .seed = 1});
  for (const std::size_t cached : {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{4}, std::size_t{99}}) {
    padded model(20);
    (void)model.evaluate(prompt);
    const std::size_t before = model.given;
    const generation g = generate(model, prompt, sampling(), {.max_new_tokens = 6, .seed = 1, .cached = cached});
    CHECK(g.tokens == expected.tokens);
    // The prompt's last token is always evaluated: its row starts the output.
    CHECK(model.given - before == prompt.size() - std::min<std::size_t>(cached, 3) + 5);
  }
  // A conversation goes on where it was.
  padded talk(20);
  const generation turn = generate(talk, prompt, sampling(), {.max_new_tokens = 6, .seed = 1});
  ids longer = prompt;
  longer.insert(longer.end(), turn.tokens.begin(), turn.tokens.end());
  longer.push_back(7);
  const std::size_t before = talk.given;
  const generation next = generate(talk, longer, sampling(), {.max_new_tokens = 3, .seed = 2, .cached = talk.size()});
  CHECK(talk.given - before == 2 + 2);
  padded anew(20);
  CHECK(next.tokens == generate(anew, longer, sampling(), {.max_new_tokens = 3, .seed = 2}).tokens);
}

// ---- seeds

TEST_CASE("a seed that was made up is reported, and repeats the run", "[generate]") {
  auto model = scrambled_model();
  const generation unseeded = generate(model, zero, sampling(), {.max_new_tokens = 40});
  const generation again = generate(model, zero, sampling(), {.max_new_tokens = 40, .seed = unseeded.seed});
  CHECK(again.tokens == unseeded.tokens);
  CHECK(again.seed == unseeded.seed);
}

TEST_CASE("two unseeded runs differ (TensorRT-LLM #19487)", "[generate]") {
  decant::stateless flat([](std::span<const token_id>) { return std::vector<float>(50, 0.0F); });
  const generation a = generate(flat, zero, sampling(), {.max_new_tokens = 64}),
                   b = generate(flat, zero, sampling(), {.max_new_tokens = 64});
  CHECK(a.seed != b.seed);
  CHECK(a.tokens != b.tokens);
}

TEST_CASE("seeds and sequences tell runs apart; equal ones agree (CTranslate2 #1757)", "[generate]") {
  auto model = scrambled_model();
  const auto run = [&](std::uint64_t seed, std::uint64_t sequence) {
    return generate(model, zero, sampling(), {.max_new_tokens = 40, .seed = seed, .sequence = sequence}).tokens;
  };
  std::set<ids> different;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    for (std::uint64_t sequence = 0; sequence < 5; ++sequence) {
      different.insert(run(seed, sequence));
      CHECK(run(seed, sequence) == run(seed, sequence));
    }
  }
  CHECK(different.size() == 25);
}

TEST_CASE("a request draws the same tokens alone and between others (vllm#51226, TensorRT-LLM PR #1742)",
          "[generate]") {
  const auto alone = [](std::uint64_t seed, token_id start) {
    auto model = scrambled_model();
    return generate(model, ids{start}, sampling(), {.max_new_tokens = 20, .seed = seed}).tokens;
  };
  std::vector<decltype(scrambled_model())> models;
  for (int i = 0; i < 8; ++i) models.push_back(scrambled_model());
  using stream = decant::token_stream<decltype(scrambled_model()), decltype(sampling())>;
  std::vector<stream> streams;
  streams.reserve(8);
  std::vector<ids> prompts;
  for (token_id i = 0; i < 8; ++i) prompts.push_back({i});
  for (std::size_t i = 0; i < 8; ++i) {
    generate_options options{.max_new_tokens = 20};
    if (i % 2 == 0) options.seed = 100 + i;  // their neighbours have none
    streams.emplace_back(models[i], prompts[i], sampling(), options);
  }
  for (int step = 0; step < 20; ++step) {
    for (std::size_t i = streams.size(); i-- > 0;) (void)streams[i].next();
  }
  for (std::size_t i = 0; i < 8; i += 2) CHECK(streams[i].result().tokens == alone(100 + i, static_cast<token_id>(i)));
}

TEST_CASE("what is observed does not change what is drawn (llama.cpp PR5564)", "[generate]") {
  auto model = scrambled_model();
  const generation plain = generate(model, zero, sampling(), {.max_new_tokens = 40, .seed = 6});
  std::string heard;
  const generation observed = generate(model, zero, sampling(),
                                       {.max_new_tokens = 40,
                                        .stop_strings = {"never to be seen"},
                                        .stop = [](const decant::step_context&) { return false; },
                                        .bytes = letter,
                                        .on_token = [&](const token_event& e) { heard += e.text; },
                                        .seed = 6});
  CHECK(observed.tokens == plain.tokens);
  CHECK(observed.text == heard);
  CHECK(heard.size() == 40);
  CHECK(generate(model, zero, top_k(0) | decant::top_p(1) | decant::temperature(0.9) | decant::multinomial{},
                 {.max_new_tokens = 40, .seed = 6})
            .tokens == plain.tokens);
  // How the chain was put together does not either.
  decant::dynamic_chain run_time{decant::temperature(0.9)};
  CHECK(generate(model, zero, run_time | decant::any_sampler(decant::multinomial{}), {.max_new_tokens = 40, .seed = 6})
            .tokens == plain.tokens);
}

TEST_CASE("draws vary from step to step (TensorRT-Edge-LLM #211, ctransformers)", "[generate]") {
  decant::stateless coin([](std::span<const token_id>) { return std::vector<float>{0, 0}; });
  const generation g = generate(coin, zero, top_k(0) | decant::multinomial{}, {.max_new_tokens = 1000, .seed = 8});
  int heads = 0, changes = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    heads += g.tokens[i] == 0;
    if (i > 0) changes += g.tokens[i] != g.tokens[i - 1];
  }
  CHECK(std::abs(heads - 500) < 80);
  CHECK(std::abs(changes - 500) < 80);
}

TEST_CASE("penalties see the output of the run itself (vmlx-swift#295)", "[generate]") {
  decant::stateless model([](std::span<const token_id>) { return std::vector<float>{3, 2.5F, 2}; });
  const ids prompt{0, 0, 0};
  const generation g =
      generate(model, prompt, decant::frequency_penalty(0.6) | greedy{}, {.max_new_tokens = 5, .seed = 1});
  CHECK(g.tokens == ids{0, 1, 0, 2, 1});  // 3, 2.5 | 2.4, 2.5 | 2.4, 1.9, 2 | 1.8, 1.9, 2 | 1.8, 1.9, 1.4
}

// ---- exact law, and the golden tokens

/// Takes every branch in turn: a decision is repeated from the list, a new one starts at its first possible answer.
struct every_branch : decant::decision_hook {
  std::size_t choose(const decant::draw_key&, std::span<const double> weights, double total) override {
    if (depth == path.size()) path.push_back({0, {weights.begin(), weights.end()}, total});
    auto& taken = path[depth++];
    probability *= taken.weights[taken.choice] / taken.total;
    return taken.choice;
  }

  /// To the next path; false when there is none.
  bool advance() {
    while (!path.empty() && path.back().choice + 1 == path.back().weights.size()) path.pop_back();
    if (path.empty()) return false;
    ++path.back().choice;
    return true;
  }

  struct decision {
    std::size_t choice;
    std::vector<double> weights;
    double total;
  };
  std::vector<decision> path;
  std::size_t depth = 0;
  double probability = 1;
};

TEST_CASE("the law of whole outputs is the product of the rows' laws, by enumeration", "[generate]") {
  const std::vector<std::vector<float>> table{{0, 1, 0.5F}, {1, decant::gone, 2}, {0.25F, 0, 0}};
  markov model(table);
  std::map<ids, double> law;
  every_branch hook;
  double sum = 0;
  do {
    hook.depth = 0;
    hook.probability = 1;
    const generation g = generate(model, zero, top_k(0) | decant::multinomial{},
                                  {.max_new_tokens = 4, .stop_tokens = {2}, .seed = 1, .hook = &hook});
    law[g.tokens] += hook.probability;
    sum += hook.probability;
  } while (hook.advance());
  CHECK(sum == Approx(1).epsilon(1e-12));
  for (const auto& [tokens, probability] : law) {
    double expected = 1;
    token_id before = 0;
    for (const token_id token : tokens) {
      const auto& row = table[static_cast<std::size_t>(before)];
      double all = 0;
      for (const float z : row) all += decant::is_gone(z) ? 0 : std::exp(static_cast<double>(z));
      expected *= std::exp(static_cast<double>(row[static_cast<std::size_t>(token)])) / all;
      before = token;
    }
    CHECK(probability == Approx(expected).epsilon(1e-6));
    CHECK((tokens.size() == 4 || tokens.back() == 2));
  }
  CHECK(law.size() == 19);  // 1 + 2 + 3 + 5 that stop, 8 that do not
}

// What a seed means. Changing one of these lines is a new major version.
TEST_CASE("golden tokens", "[generate][golden]") {
  auto model = scrambled_model(50);
  const ids prompt{1, 2, 3};
  const auto chain = decant::repetition_penalty(1.1) | top_k(20) | decant::temperature(0.8) | decant::top_p(0.95) |
                     decant::multinomial{};
  CHECK(generate(model, prompt, chain, {.max_new_tokens = 24, .seed = 42}).tokens ==
        ids{9, 15, 32, 22, 38, 40, 42, 39, 15, 33, 23, 8, 34, 30, 27, 28, 6, 18, 48, 2, 10, 15, 37, 13});
  auto wide = scrambled_model(5000);
  CHECK(generate(wide, prompt, top_k(0) | decant::multinomial{}, {.max_new_tokens = 12, .seed = 42, .sequence = 1})
            .tokens == ids{2908, 3626, 3263, 531, 1363, 178, 770, 4804, 3791, 4769, 490, 589});
  CHECK(generate(model, prompt, top_k(0) | decant::gumbel{}, {.max_new_tokens = 12, .seed = 42}).tokens ==
        ids{27, 30, 32, 5, 18, 31, 14, 29, 5, 37, 33, 22});
}

// ---- log-probabilities

TEST_CASE("log-probabilities come with every token, and change none", "[generate]") {
  auto model = scrambled_model();
  const auto decoder = decant::frequency_penalty(0.3) | top_k(4) | decant::temperature(1.5) | decant::multinomial{};
  const ids prompt{3, 1};
  const generation plain = generate(model, prompt, decoder, {.max_new_tokens = 30, .seed = 8});
  CHECK(plain.log_probs.empty());
  for (const auto mode : {decant::log_prob_mode::raw_log_probs, decant::log_prob_mode::processed_log_probs}) {
    std::vector<decant::token_log_probs> seen;
    generate_options options{.max_new_tokens = 30, .log_probs = decant::log_prob_options{3, mode}, .seed = 8};
    options.on_token = [&](const token_event& event) {
      REQUIRE(event.log_probs != nullptr);
      seen.push_back(*event.log_probs);
    };
    const generation asked = generate(model, prompt, decoder, options);
    CHECK(asked.tokens == plain.tokens);
    CHECK(asked.log_probs == seen);
    REQUIRE(asked.log_probs.size() == asked.tokens.size());
    ids so_far = prompt;
    for (std::size_t i = 0; i < asked.tokens.size(); ++i) {
      CHECK(asked.log_probs[i].chosen.id == asked.tokens[i]);
      CHECK(asked.log_probs[i].top.size() == 3);
      if (mode == decant::log_prob_mode::raw_log_probs) {
        const std::vector<float> row = scrambled_row(so_far, 20);
        double sum = 0;
        for (const float z : row) sum += std::exp(static_cast<double>(z));
        const double expected = static_cast<double>(row[static_cast<std::size_t>(asked.tokens[i])]) - std::log(sum);
        CHECK(asked.log_probs[i].chosen.value == Approx(expected).epsilon(1e-9));
      } else {
        CHECK(asked.log_probs[i].chosen.rank <= 4);
      }
      so_far.push_back(asked.tokens[i]);
    }
  }
}

}  // namespace generate_test
