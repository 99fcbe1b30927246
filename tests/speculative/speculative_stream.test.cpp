// SPDX-License-Identifier: MIT
#include <decant/speculative/speculative_stream.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>
#include <string>

#include <decant/chain.hpp>
#include <decant/processors/frequency_penalty.hpp>
#include <decant/processors/min_new_tokens.hpp>
#include <decant/processors/min_p.hpp>
#include <decant/processors/no_repeat_ngram.hpp>
#include <decant/processors/repetition_penalty.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/thinking_budget.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/samplers/greedy.hpp>
#include <decant/samplers/gumbel.hpp>
#include <decant/samplers/mirostat.hpp>
#include <decant/samplers/multinomial.hpp>
#include <decant/speculative/draft_model.hpp>
#include <decant/speculative/recursive_rejection.hpp>
#include <decant/testing/chi_square.hpp>
#include <decant/testing/counting_allocator.hpp>

#include "speculative/drivers.hpp"
#include "support/catch.hpp"

namespace speculative_stream_tests {

using namespace drivers;
using decant::any_sampler;
using decant::coupled_verification;
using decant::dynamic_chain;
using decant::finish_reason;
using decant::generate_options;
using decant::generation;
using decant::multinomial;
using decant::row_status;
using decant::speculation;
using decant::speculation_options;

const ids prompt{0, 1};

run_time_decoder sampling() { return dynamic_chain{decant::temperature(0.9)} | any_sampler(multinomial{}); }
run_time_decoder best() { return dynamic_chain{} | any_sampler(decant::greedy{}); }

markov table(std::uint64_t seed) { return decant::testing::random_markov_model(6, 2, seed); }

/// After token i comes i + 1, for certain, up to the largest, which comes again.
function_model counting(std::size_t vocabulary) {
  std::vector<float> rows((vocabulary + 1) * vocabulary, decant::gone);
  for (std::size_t i = 0; i <= vocabulary; ++i)
    rows[i * vocabulary + std::min((i + 1) % (vocabulary + 1), vocabulary - 1)] = 0;
  return tree_model({vocabulary, 1, rows});
}

/// The script that a counting model follows after the prompt.
script_drafter counter(std::size_t vocabulary) {
  script_drafter drafter;
  for (std::size_t i = 0; i < vocabulary; ++i) drafter.script.push_back(static_cast<token_id>(i));
  return drafter;
}

std::string_view letter(token_id token) {
  static constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz";
  return letters.substr(static_cast<std::size_t>(token), 1);
}

/// Both generations came to the same, statistics apart.
void check_same(const generation& a, const generation& b) {
  CHECK(a.tokens == b.tokens);
  CHECK(a.text == b.text);
  CHECK(a.finish == b.finish);
  CHECK(a.stop_token == b.stop_token);
  CHECK(a.stop_string == b.stop_string);
  CHECK(a.status == b.status);
  CHECK(a.log_probs == b.log_probs);
}

// ---- token for token

TEST_CASE("coupled verification gives the tokens of plain decoding with that seed, whatever is drafted",
          "[speculative]") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    function_model model = tree_model(table(3)), alone = tree_model(table(3));
    markov small = table(4 + seed % 3);
    const auto chain = dynamic_chain{decant::repetition_penalty(1.2), decant::top_k(4)} | any_sampler(multinomial{});
    decant::draft_model drafter(small, chain);
    const generate_options options{.max_new_tokens = 60, .log_probs = decant::log_prob_options{.top = 2}, .seed = seed};
    const speculation fast = speculated(model, prompt, drafter, chain, options,
                                        {.length = draft_length::fixed(seed % 5)}, coupled_verification{});
    check_same(fast, decant::generate(alone, prompt, chain, options));
    CHECK((fast.statistics.drafted_tokens_accepted() > 0) == (seed % 5 > 0));
  }
}

TEST_CASE("deterministic drafts change no token, under any rule and any sampler", "[speculative]") {
  function_model model = tree_model(table(5)), alone = tree_model(table(5));
  markov small = table(6);
  for (const run_time_decoder& chain : {sampling(), best(), dynamic_chain{} | any_sampler(decant::mirostat(2, 0.3)),
                                        dynamic_chain{decant::temperature(0.8)} | any_sampler(decant::gumbel{})}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const generate_options options{.max_new_tokens = 50, .seed = seed};
      decant::draft_model drafter(small, best());
      check_same(speculated(model, prompt, drafter, chain, options), decant::generate(alone, prompt, chain, options));
      tree_drafter guesses(small, sampling(), {2, 2}, proposal::deterministic);
      check_same(speculated(model, prompt, guesses, chain, options, {.max_nodes = 6}),
                 decant::generate(alone, prompt, chain, options));
    }
  }
}

TEST_CASE("a greedy chain gives the tokens of plain greedy, under every rule", "[speculative]") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const markov a = table(seed), b = table(seed + 50);
    function_model model = tree_model(a), alone = tree_model(a);
    markov small = b;
    const auto chain =
        dynamic_chain{decant::frequency_penalty(0.3), decant::no_repeat_ngram(4)} | any_sampler(decant::greedy{});
    const generate_options options{.max_new_tokens = 40, .seed = seed};
    decant::draft_model drafter(small, sampling());
    const generation plain = decant::generate(alone, prompt, chain, options);
    check_same(speculated(model, prompt, drafter, chain, options), plain);
    check_same(speculated(model, prompt, drafter, chain, options, {}, coupled_verification{}), plain);
    tree_drafter draws(b, sampling(), {2, 2, 1}, proposal::with_replacement);
    check_same(speculated(model, prompt, draws, chain, options, {.max_nodes = 20}), plain);
    check_same(speculated(model, prompt, draws, chain, options, {.max_nodes = 20}, decant::recursive_rejection{}),
               plain);
  }
}

TEST_CASE("a sampler without a law is verified token for token", "[speculative]") {
  struct second_best {
    token_id operator()(decant::candidates& row, const decant::step_context&) const {
      const auto order = row.descending(2);
      return order.empty() ? decant::no_token : order.back().id;
    }
    [[nodiscard]] std::string describe() const { return "second_best"; }
  };
  function_model model = tree_model(table(7)), alone = tree_model(table(7));
  markov small = table(8);
  const auto chain = dynamic_chain{} | any_sampler(second_best{});
  decant::draft_model drafter(small, sampling());
  check_same(speculated(model, prompt, drafter, chain, {.max_new_tokens = 30, .seed = 1}),
             decant::generate(alone, prompt, chain, {.max_new_tokens = 30, .seed = 1}));
}

// ---- ends

TEST_CASE("a stop token inside a draft ends the output there (transformers PR#31301)", "[speculative]") {
  for (std::size_t length = 1; length <= 7; ++length) {
    function_model model = counting(10), alone = counting(10);
    script_drafter drafter = counter(10);
    const generate_options options{.max_new_tokens = 50, .stop_tokens = {5, 7}, .bytes = letter, .seed = 1};
    const speculation fast =
        speculated(model, prompt, drafter, best(), options, {.length = draft_length::fixed(length)});
    check_same(fast, decant::generate(alone, prompt, best(), options));
    CHECK(fast.tokens == ids{2, 3, 4, 5});
    CHECK(fast.stop_token == 5);
    CHECK(model.size() == alone.size());  // nothing of what was drafted behind it is held
  }
}

TEST_CASE("a stop string that ends inside a draft cuts the text and what is held (openvino.genai PR#1719)",
          "[speculative]") {
  for (std::size_t length = 1; length <= 7; ++length) {
    function_model model = counting(12), alone = counting(12);
    script_drafter drafter = counter(12);
    const generate_options options{.max_new_tokens = 50, .stop_strings = {"zzz", "efg"}, .bytes = letter, .seed = 1};
    const speculation fast =
        speculated(model, prompt, drafter, best(), options, {.length = draft_length::fixed(length)});
    check_same(fast, decant::generate(alone, prompt, best(), options));
    CHECK(fast.text == "cd");
    CHECK(fast.finish == finish_reason::stop_string);
    CHECK(model.size() == alone.size());
  }
}

TEST_CASE("limits end the output where plain decoding would, and nothing is drafted past them", "[speculative]") {
  for (std::size_t limit = 0; limit <= 9; ++limit) {
    function_model model = counting(30), alone = counting(30);
    script_drafter drafter = counter(30);
    std::size_t deepest = 0;
    const speculation_options how{.length = draft_length::fixed(4),
                                  .on_round = [&](const decant::round_outcome& outcome) {
                                    deepest = std::max(deepest, outcome.base + outcome.proposed);
                                  }};
    for (const generate_options& options : {generate_options{.max_new_tokens = limit, .seed = 1},
                                            generate_options{.context_length = limit + 2, .seed = 1}}) {
      const speculation fast = speculated(model, prompt, drafter, best(), options, how);
      check_same(fast, decant::generate(alone, prompt, best(), options));
      CHECK(fast.tokens.size() == limit);
      CHECK(deepest < std::max<std::size_t>(prompt.size() + limit, 1));
      CHECK(model.size() == alone.size());
    }
  }
}

TEST_CASE("criteria and callbacks see one token after another", "[speculative]") {
  function_model model = counting(30);
  script_drafter drafter = counter(30);
  ids seen;
  std::vector<std::size_t> lengths;
  const generate_options options{
      .max_new_tokens = 50,
      .stop = [&](const decant::step_context& c) { return lengths.push_back(c.tokens.size()), c.tokens.back() == 9; },
      .on_token = [&](const decant::token_event& e) { seen.push_back(e.token); },
      .seed = 1};
  const speculation fast = speculated(model, prompt, drafter, best(), options);
  CHECK(fast.finish == finish_reason::criterion);
  CHECK(seen == ids{2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(lengths == std::vector<std::size_t>{3, 4, 5, 6, 7, 8, 9, 10});
  const speculation cancelled = speculated(
      model, prompt, drafter, best(),
      {.max_new_tokens = 50, .on_token = [](const decant::token_event& e) { return e.token < 5; }, .seed = 1});
  CHECK(cancelled.tokens == ids{2, 3, 4, 5});
  CHECK(cancelled.finish == finish_reason::cancelled);
  CHECK(model.size() == prompt.size() + 3);
}

TEST_CASE("a stream can be left and cancelled in the middle of a draft", "[speculative]") {
  function_model model = counting(30);
  script_drafter drafter = counter(30);
  any_drafter any(drafter);
  decant::speculative_stream stream(model, prompt, any, best(), {.max_new_tokens = 50, .seed = 1});
  int count = 0;
  for (const decant::token_event& event : stream) {
    CHECK(event.index == static_cast<std::size_t>(count));
    if (++count == 3) break;
  }
  stream.cancel();
  CHECK(stream.next() == nullptr);
  CHECK(stream.result().tokens == ids{2, 3, 4});
  CHECK(ids(stream.tokens().begin(), stream.tokens().end()) == ids{0, 1, 2, 3, 4});
  CHECK(model.size() == 4);
}

TEST_CASE("a generation goes on from what the model holds after one that was cut off", "[speculative]") {
  function_model model = counting(30);
  script_drafter drafter = counter(30);
  const speculation first = speculated(model, prompt, drafter, best(), {.stop_tokens = {6}, .seed = 1});
  ids longer = prompt;
  longer.insert(longer.end(), first.tokens.begin(), first.tokens.end());
  const speculation second =
      speculated(model, longer, drafter, best(), {.max_new_tokens = 3, .seed = 1, .cached = model.size()});
  CHECK(second.tokens == ids{7, 8, 9});
  CHECK(second.prompt_seconds == 0);  // all but the last token was there
  CHECK(drafter.resets == 2);
}

// ---- rows that cannot be decoded

/// A counting model whose rows after `bad_from` tokens are bad.
function_model failing(std::size_t bad_from, float bad) {
  return function_model(
      [=](std::span<const token_id> tokens) {
        std::vector<float> row(30, 0.0F);
        row[(static_cast<std::size_t>(tokens.back()) + 1) % 30] = 40;
        if (tokens.size() >= bad_from) std::ranges::fill(row, bad);
        return row;
      },
      30);
}

TEST_CASE("a bad row of the target ends the draft before it, and the generation where it is reached", "[speculative]") {
  const float nan = std::bit_cast<float>(0x7FC00000U);
  for (const auto& [bad, status] : {std::pair{nan, row_status::not_finite}, {decant::gone, row_status::empty}}) {
    for (std::size_t bad_from = 2; bad_from <= 9; ++bad_from) {
      auto model = failing(bad_from, bad), alone = failing(bad_from, bad), small = failing(99, bad);
      const generate_options options{.max_new_tokens = 50, .bytes = letter, .seed = 3};
      const generation plain = decant::generate(alone, prompt, sampling(), options);
      CHECK(plain.status == status);
      script_drafter certain = counter(30);
      check_same(speculated(model, prompt, certain, sampling(), options), plain);
      decant::draft_model drawn(small, sampling());
      check_same(speculated(model, prompt, drawn, sampling(), options), plain);
      check_same(speculated(model, prompt, drawn, sampling(), options, {}, decant::recursive_rejection{}), plain);
    }
  }
}

TEST_CASE("a bad row of the draft falls back to the target", "[speculative]") {
  const float nan = std::bit_cast<float>(0x7FC00000U);
  function_model model = counting(30);
  auto small = failing(5, nan);
  decant::draft_model drafter(small, sampling());
  const speculation fast = speculated(model, prompt, drafter, sampling(), {.max_new_tokens = 20, .seed = 1});
  CHECK(fast.finish == finish_reason::length);
  CHECK(fast.tokens.size() == 20);
  CHECK(fast.statistics.drafted_tokens_accepted() == 3);
}

// ---- histories, states, log-probabilities

TEST_CASE("counts grow by every token of a draft (sglang PR#33643)", "[speculative]") {
  function_model model = counting(30);
  script_drafter drafter = counter(30);
  // The end is masked until four tokens are there, not four rounds.
  const auto chain = dynamic_chain{decant::min_new_tokens(4, {5})} | any_sampler(decant::greedy{});
  auto flat = function_model([](std::span<const token_id> tokens) {
    std::vector<float> row(8, 0.0F);
    row[5] = 3;
    row[static_cast<std::size_t>(tokens.size() % 2)] = 1;
    return row;
  });
  script_drafter guesses{{0, 1, 0, 1, 0, 1, 5, 5}};
  CHECK(speculated(flat, prompt, guesses, chain, {.max_new_tokens = 6, .stop_tokens = {5}, .seed = 1}).tokens ==
        ids{0, 1, 0, 1, 5});
  // Three tokens [a, a, b] accepted at once: a counts two, b one.
  std::map<std::size_t, std::array<int, 2>> counts;
  const auto record = [&](decant::candidates&, const decant::step_context& c) {
    counts[c.tokens.size()] = {static_cast<int>(std::ranges::count(c.output(), 3)),
                               static_cast<int>(std::ranges::count(c.output(), 4))};
  };
  script_drafter aab{{0, 1, 3, 3, 4}};
  auto follows = function_model([](std::span<const token_id> tokens) {
    static constexpr token_id next[] = {0, 1, 3, 3, 4, 6, 6, 6, 6};
    std::vector<float> row(8, decant::gone);
    row[static_cast<std::size_t>(next[std::min<std::size_t>(tokens.size(), 8)])] = 0;
    return row;
  });
  const speculation out = speculated(follows, prompt, aab, dynamic_chain{record} | any_sampler(decant::greedy{}),
                                     {.max_new_tokens = 5, .seed = 1}, {.length = draft_length::fixed(3)});
  CHECK(out.statistics.accepted == std::vector<std::size_t>{1, 1, 1});
  CHECK(counts[5] == std::array<int, 2>{2, 1});
}

TEST_CASE("a thinking budget holds inside a draft (sglang#26330)", "[speculative]") {
  constexpr token_id begin = 20, end = 21;
  const auto chain = dynamic_chain{decant::thinking_budget(3, decant::thinking_markers{{begin}, {end}})} |
                     any_sampler(decant::greedy{});
  const auto thinks = [](std::span<const token_id> tokens) {
    std::vector<float> row(30, 0.0F);
    row[tokens.size() == 2 ? std::size_t{begin} : tokens.size()] = 9;
    return row;
  };
  auto model = function_model(thinks), alone = function_model(thinks);
  script_drafter drafter{{0, 1, begin, 3, 4, 5, 6, 7, 8, 9, 10}};
  const generate_options options{.max_new_tokens = 8, .seed = 1};
  const speculation fast = speculated(model, prompt, drafter, chain, options);
  check_same(fast, decant::generate(alone, prompt, chain, options));
  CHECK(fast.tokens[4] == end);
}

TEST_CASE(
    "a constraint that starts after a marker starts inside a draft, and only if the marker is accepted (vLLM PR#44297)",
    "[speculative]") {
  static constexpr token_id marker = 9, allowed = 7;
  const auto after_marker = [](decant::candidates& row, const decant::step_context& context) {
    const auto output = context.output();
    if (std::ranges::find(output, marker) != output.end()) row.allow(std::span<const token_id>(&allowed, 1));
  };
  const auto chain = dynamic_chain{after_marker} | any_sampler(decant::greedy{});
  for (const bool writes_marker : {true, false}) {
    const auto next = [=](std::span<const token_id> tokens) {
      std::vector<float> row(12, 0.0F);
      row[tokens.size() == 3 && writes_marker ? std::size_t{marker} : tokens.size()] = 5;
      return row;
    };
    auto model = function_model(next), alone = function_model(next);
    script_drafter drafter{{0, 1, 2, marker, 4, 5, 6}};
    const generate_options options{.max_new_tokens = 6, .seed = 1};
    const speculation fast = speculated(model, prompt, drafter, chain, options, {.length = draft_length::fixed(3)});
    check_same(fast, decant::generate(alone, prompt, chain, options));
    CHECK(fast.tokens == (writes_marker ? ids{2, marker, allowed, allowed, allowed, allowed} : ids{2, 3, 4, 5, 6, 7}));
  }
}

TEST_CASE("min_p holds at every position of a draft (vLLM#42744)", "[speculative]") {
  const auto flat = [](std::span<const token_id>) {
    return std::vector<float>{std::log(0.6F), std::log(0.3F), std::log(0.05F), std::log(0.05F)};
  };
  auto model = function_model(flat);
  auto small = function_model([](std::span<const token_id>) { return std::vector<float>{0, 0, 0, 9}; });
  const auto chain = dynamic_chain{decant::min_p(0.2)} | any_sampler(multinomial{});
  decant::draft_model drafter(small, sampling());
  std::array<std::size_t, 4> counts{};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    for (const token_id token :
         speculated(model, prompt, drafter, chain, {.max_new_tokens = 10, .seed = seed}).tokens) {
      ++counts[static_cast<std::size_t>(token)];
    }
  }
  CHECK(counts[2] + counts[3] == 0);
  CHECK(std::abs(decant::testing::z_score(counts[0], 2000, 2.0 / 3)) < 4);
}

TEST_CASE("mirostat's mu is where plain decoding of the same tokens would leave it", "[speculative]") {
  // The state is watched through a processor that is accepted into beside it.
  struct watch {
    std::vector<std::pair<token_id, double>>* seen;
    void operator()(decant::candidates&, const decant::step_context&) const {}
    void accept(token_id token, const decant::step_record& record) { seen->emplace_back(token, record.log_prob_after); }
    void rollback(std::size_t count) { seen->resize(seen->size() - count); }
    void reset() { seen->clear(); }
  };
  const markov target = table(11);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    function_model model = tree_model(target);
    markov small = table(12);
    std::vector<std::pair<token_id, double>> seen, plain;
    decant::draft_model drafter(small, sampling());
    const auto chain = dynamic_chain{watch{&seen}} | any_sampler(decant::mirostat(1.5, 0.4));
    any_drafter any(drafter);
    decant::speculative_stream stream(model, prompt, any, chain, {.max_new_tokens = 30, .seed = seed});
    while (stream.next() != nullptr) {
    }
    // Replay.
    auto replay = dynamic_chain{watch{&plain}} | any_sampler(decant::mirostat(1.5, 0.4));
    ids text = prompt;
    const auto records = seen;
    for (const auto& [token, log_prob] : records) {
      const auto context = decant::context_after(text, prompt.size(), decant::draw_stream(0));
      const auto record = replay.record_of(target.row_after(text), context, token);
      CHECK(record.log_prob_after == log_prob);
      replay.accept(token, record);
      text.push_back(token);
    }
    CHECK(ids(text.begin() + 2, text.begin() + 32) == stream.result().tokens);
  }
}

TEST_CASE("log-probabilities are the target's: accepted, replaced and last (vLLM PR#30059, #17876)", "[speculative]") {
  const markov target = table(13);
  for (const std::size_t top : {0U, 3U}) {
    function_model model = tree_model(target);
    markov small = table(14);
    decant::draft_model drafter(small, sampling());
    const speculation fast =
        speculated(model, prompt, drafter, sampling(),
                   {.max_new_tokens = 60, .log_probs = decant::log_prob_options{.top = top}, .seed = 2});
    REQUIRE(fast.log_probs.size() == fast.tokens.size());
    ids text = prompt;
    for (std::size_t i = 0; i < fast.tokens.size(); ++i) {
      const auto row = target.row_after(text);
      double sum = 0;
      for (const float z : row) sum += std::exp(static_cast<double>(z));
      const double expected = static_cast<double>(row[static_cast<std::size_t>(fast.tokens[i])]) - std::log(sum);
      CHECK(fast.log_probs[i].chosen.id == fast.tokens[i]);
      CHECK(std::abs(fast.log_probs[i].chosen.value - expected) < 1e-6);
      CHECK(fast.log_probs[i].top.size() == top);
      text.push_back(fast.tokens[i]);
    }
    CHECK(fast.statistics.drafted_tokens_accepted() > 5);
    CHECK(fast.statistics.drafted_tokens_accepted() < 55);
  }
}

TEST_CASE("asking for log-probabilities changes no token", "[speculative]") {
  function_model model = tree_model(table(15));
  markov small = table(16);
  decant::draft_model drafter(small, sampling());
  const auto run = [&](std::optional<decant::log_prob_options> asked) {
    return speculated(model, prompt, drafter, sampling(), {.max_new_tokens = 40, .log_probs = asked, .seed = 4}).tokens;
  };
  CHECK(run({}) == run(decant::log_prob_options{.top = 5}));
}

// ---- seeds

TEST_CASE("a seed gives its tokens again, and requests without one differ (TRT-LLM#19487)", "[speculative]") {
  function_model model = tree_model(table(17));
  markov small = table(18);
  decant::draft_model drafter(small, sampling());
  const auto run = [&](std::optional<std::uint64_t> seed, std::uint64_t sequence = 0) {
    return speculated(model, prompt, drafter, sampling(), {.max_new_tokens = 64, .seed = seed, .sequence = sequence});
  };
  CHECK(run(5).tokens == run(5).tokens);
  CHECK(run(5).tokens != run(6).tokens);
  CHECK(run(5, 1).tokens != run(5, 2).tokens);
  const speculation made_up = run({});
  CHECK(made_up.tokens != run({}).tokens);
  CHECK(made_up.tokens == run(made_up.seed).tokens);
}

// ---- what drafter, model and statistics are told

TEST_CASE("the drafter sees the rows of the tokens that are held, and what was accepted", "[speculative]") {
  function_model model = counting(30);
  script_drafter drafter{{0, 1, 2, 3, 9, 9, 6, 7, 8}};  // wrong at positions 4 and 5
  const speculation fast = speculated(model, ids{0, 1, 2}, drafter, best(), {.max_new_tokens = 7, .seed = 1},
                                      {.length = draft_length::fixed(3)});
  CHECK(fast.tokens == ids{3, 4, 5, 6, 7, 8, 9});
  // The prompt but its last token; then each pass what was accepted, and the token before.
  CHECK(drafter.rows_seen == std::vector<std::size_t>{2, 2, 1, 4});
  CHECK(drafter.accepted == std::vector<std::size_t>{1, 0, 3});
}

TEST_CASE("statistics count by position", "[speculative]") {
  function_model model = counting(30);
  script_drafter drafter{{0, 1, 2, 3, 9, 9, 6, 7, 8}};
  const auto seen = speculated(model, ids{0, 1, 2}, drafter, best(), {.max_new_tokens = 7, .seed = 1},
                               {.length = draft_length::fixed(3)})
                        .statistics;
  CHECK(seen.rounds == 3);
  CHECK(seen.drafted_rounds == 3);
  CHECK(seen.tokens == 7);
  CHECK(seen.nodes == 9);
  CHECK(seen.proposed == std::vector<std::size_t>{3, 3, 3});
  CHECK(seen.tried == std::vector<std::size_t>{3, 2, 1});
  CHECK(seen.accepted == std::vector<std::size_t>{2, 1, 1});
  CHECK(std::abs(seen.tokens_per_pass() - 7.0 / 3) < 1e-12);
  CHECK(std::abs(seen.acceptance_rate() - 4.0 / 6) < 1e-12);
}

TEST_CASE("drafting is given up when the counts say that it loses, and that is said", "[speculative]") {
  function_model model = counting(30);
  script_drafter useless{ids(60, 29)};
  const speculation fast = speculated(model, prompt, useless, best(), {.max_new_tokens = 25, .seed = 1},
                                      {.length = draft_length::fixed(2), .cost = 0.1, .patience = 10});
  CHECK(fast.statistics.fell_back);
  CHECK(fast.statistics.fell_back_after == 10);
  CHECK(fast.statistics.drafted_rounds == 10);
  CHECK(fast.tokens.size() == 25);
  script_drafter useful = counter(30);
  CHECK(!speculated(model, prompt, useful, best(), {.max_new_tokens = 25, .seed = 1},
                    {.length = draft_length::fixed(2), .cost = 0.1, .patience = 10})
             .statistics.fell_back);
  CHECK(!speculated(model, prompt, useless, best(), {.max_new_tokens = 25, .seed = 1},
                    {.length = draft_length::fixed(2), .patience = 10})
             .statistics.fell_back);
}

TEST_CASE("adapting to time changes when to draft and no greedy token", "[speculative]") {
  function_model model = counting(30);
  script_drafter drafter = counter(30);
  const speculation fast = speculated(model, prompt, drafter, best(), {.max_new_tokens = 25, .seed = 1},
                                      {.length = draft_length::optimal(0.1), .adapt_to_time = true});
  CHECK(fast.tokens == decant::generate(model, prompt, best(), {.max_new_tokens = 25, .seed = 1}).tokens);
}

TEST_CASE("where the model scores no trees the first path of one is verified", "[speculative]") {
  const markov target = table(19), small = table(20);
  markov model = target, alone = target;
  tree_drafter drafter(small, sampling(), {2, 2, 2}, proposal::deterministic);
  const speculation fast =
      speculate(model, prompt, drafter, sampling(), {.max_new_tokens = 40, .seed = 1}, {.max_nodes = 14});
  CHECK(fast.tokens == decant::generate(alone, prompt, sampling(), {.max_new_tokens = 40, .seed = 1}).tokens);
  CHECK(fast.statistics.nodes > fast.statistics.rounds);
}

TEST_CASE("padding behind the vocabulary is never drawn nor drafted", "[speculative]") {
  struct padded : markov {
    std::vector<std::vector<float>> wide;
    explicit padded(markov rows) : markov(std::move(rows)) {}
    std::span<const float> widen(std::span<const float> row) {
      wide.emplace_back(row.begin(), row.end()).resize(row.size() + 3, 99.0F);
      return wide.back();
    }
    std::span<const float> evaluate(std::span<const token_id> tokens) { return widen(markov::evaluate(tokens)); }
    std::span<const float> row(std::size_t i) { return widen(markov::row(i)); }
  };
  padded model(table(21));
  padded small(table(22));
  decant::draft_model drafter(small, sampling());
  for (const token_id token : speculate(model, prompt, drafter, sampling(), {.max_new_tokens = 50, .seed = 1}).tokens) {
    CHECK(token < 6);
  }
}

TEST_CASE("draft lengths learn from the driver what became of drafts", "[speculative]") {
  function_model model = counting(60);
  script_drafter drafter = counter(60);
  std::vector<std::size_t> proposed;
  const speculation_options how{
      .length = draft_length::heuristic(1, 6),
      .on_round = [&](const decant::round_outcome& outcome) { proposed.push_back(outcome.proposed); }};
  (void)speculated(model, prompt, drafter, best(), {.max_new_tokens = 30, .seed = 1}, how);
  proposed.resize(4);
  CHECK(proposed == std::vector<std::size_t>{1, 3, 5, 6});
  proposed.clear();
  drafter.script.assign(60, 0);  // wrong everywhere
  (void)speculated(model, prompt, drafter, best(), {.max_new_tokens = 5, .seed = 1},
                   {.length = draft_length::heuristic(4), .on_round = how.on_round});
  proposed.resize(3);
  CHECK(proposed == std::vector<std::size_t>{4, 3, 2});
}

/// Remembers what it was asked for, and drafts one token that it is certain of.
struct asked_drafter {
  std::vector<draft_request> requests{};
  std::map<std::size_t, double> coins{};  ///< by the size of the text, what a processor would toss

  void propose(const draft_request& request, draft& out) {
    requests.push_back(request);
    coins[request.context.tokens.size()] = request.context.draws.uniform(decant::purpose::user);
    out.set_mode(proposal::with_replacement);
    decant::make_certain(out.children_law(no_parent), 1);
    out.add(1);
  }
};

TEST_CASE("the drafter is told what is wanted, and never to go past the context", "[speculative]") {
  function_model model = tree_model(table(3));
  asked_drafter drafter;
  const generate_options options{.context_length = 12, .stop_tokens = {77, 78}, .seed = 1};
  (void)speculated(model, prompt, drafter, sampling(), options,
                   {.length = draft_length::fixed(4), .max_nodes = 6, .min_confidence = 0.25});
  REQUIRE(drafter.requests.size() > 3);
  for (const draft_request& request : drafter.requests) {
    const std::size_t room = 12 - request.context.tokens.size();
    CHECK(request.context.prompt_size == 2);
    CHECK(request.max_depth == std::min<std::size_t>(4, room - 1));
    CHECK(request.max_nodes == std::min<std::size_t>(6, room));
    CHECK(request.min_confidence == 0.25);
    CHECK(request.stop_tokens.size() == 2);
  }
}

TEST_CASE("processors toss the same coins for the draft and for the target, and others the next round",
          "[speculative]") {
  function_model model = tree_model(table(3));
  asked_drafter drafter;
  std::map<std::size_t, double> coins;
  const auto toss = [&](decant::candidates&, const decant::step_context& context) {
    coins[context.tokens.size()] = context.draws.uniform(decant::purpose::user);
  };
  const auto chain = dynamic_chain{toss} | any_sampler(multinomial{});
  std::vector<std::size_t> bases;
  (void)speculated(model, prompt, drafter, chain, {.max_new_tokens = 40, .seed = 1},
                   {.length = draft_length::fixed(1), .on_round = [&](const decant::round_outcome& outcome) {
                      if (outcome.proposed == 0) return;
                      bases.push_back(outcome.base);
                      CHECK(coins.at(outcome.base) == drafter.coins.at(outcome.base));
                    }});
  REQUIRE(bases.size() > 10);
  for (const std::size_t base : bases) {
    const auto alone = decant::draw_stream(1).at(base).uniform(decant::purpose::user);
    CHECK(drafter.coins.at(base) != alone);  // what plain decoding would toss has been used for the round before
  }
}

TEST_CASE("a drafter that proposes too much is misuse", "[speculative]") {
  struct greedy_for_more {
    void propose(const draft_request&, draft& out) const {
      for (int i = 0; i < 9; ++i) out.add(1, i - 1);
    }
  } drafter;
  function_model model = tree_model(table(1));
  CHECK_THROWS_AS(speculated(model, prompt, drafter, best(), {.max_new_tokens = 20, .seed = 1}), assertion_error);
  CHECK_THROWS_AS(speculated(model, prompt, drafter, best(), {.max_new_tokens = 20, .seed = 1}, {.max_nodes = 9}),
                  assertion_error);
  for (const double wrong : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_AS(speculated(model, prompt, drafter, best(), {.max_new_tokens = 2}, {.cost = wrong}),
                    assertion_error);
    CHECK_THROWS_AS(speculated(model, prompt, drafter, best(), {.max_new_tokens = 2}, {.min_confidence = wrong}),
                    assertion_error);
  }
  CHECK_THROWS_AS(speculated(model, prompt, drafter, best(), {.max_new_tokens = 2}, {.min_confidence = 5}),
                  assertion_error);
  CHECK_THROWS_AS(speculated(model, ids{}, drafter, best(), {}), assertion_error);
}

TEST_CASE("in steady state a round allocates nothing", "[speculative]") {
  // Stretches of 50 tokens in which something was allocated. Vectors of tokens double now and then, in one of many.
  const auto stretches_that_allocate = [](auto rule) {
    markov model = table(23), small = table(24);
    decant::draft_model drafter(small, sampling());
    decant::speculative_stream stream(model, prompt, drafter, sampling(), {.max_new_tokens = 4000, .seed = 1}, {},
                                      rule);
    for (std::size_t i = 0; i < 2100; ++i) (void)stream.next();
    std::size_t count = 0;
    for (int stretch = 0; stretch < 12; ++stretch) {
      const std::size_t before = decant::testing::allocations();
      for (std::size_t i = 0; i < 50; ++i) (void)stream.next();
      count += decant::testing::allocations() != before;
    }
    return count;
  };
  CHECK(stretches_that_allocate(decant::lossless_verification{}) <= 1);
  CHECK(stretches_that_allocate(coupled_verification{}) <= 1);
}

}  // namespace speculative_stream_tests
