// SPDX-License-Identifier: MIT
#include <decant/processors/synthid_watermark.hpp>

#include "processors/policies.hpp"
#include "processors/written_texts.hpp"
#include "support/shared.hpp"

#include <fstream>

#include <nlohmann/json.hpp>

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/testing/chi_square.hpp>

namespace synthid_watermark_tests {

using namespace policies;
using decant::hashing;
using decant::synthid_options;
using decant::synthid_watermark;
using nlohmann::json;

std::vector<std::uint64_t> keys(std::size_t layers, std::uint64_t first = 1) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t i = 0; i < layers; ++i) out.push_back(first + 31 * i);
  return out;
}

std::vector<synthid_options> kinds() {
  return {{.keys = keys(30)},
          {.keys = keys(3), .context_width = 1},
          {.keys = keys(12), .context_width = 2, .leaves = 3},
          {.keys = keys(64), .context_width = 2, .history = 0},
          {.keys = keys(10), .how = hashing::hf}};
}

/// p, and then layer after layer of tournaments with the bits that the detector reads.
law expected_law(const synthid_options& options, const law& p, const tokens& text) {
  const synthid_watermark mark(options);
  law weights = p;
  std::vector<std::uint64_t> g;
  for (std::size_t i = 0; i < p.size(); ++i) g.push_back(mark.bits(text, static_cast<token_id>(i)));
  for (std::size_t layer = 0; layer < options.keys.size(); ++layer) {
    decant::tournament_layer(weights, g, layer, options.leaves);
  }
  return weights;
}

TEST_CASE("the law is that of the tournaments whose bits the detector reads", "[processors]") {
  for (synthid_options options : kinds()) {
    const row logits = random_row(90, 5);
    // 6 tokens of prompt, 4 of output: with hashing::hf only these make the context.
    const tokens text{7, 8, 9, 1, 2, 3, 4, 5, 60, 70};
    const tokens read = options.how == hashing::hf ? tokens{4, 5, 60, 70} : text;
    const law expected = expected_law(options, reference::exact_law(logits), read);
    CHECK(difference(law_after(synthid_watermark(options), logits, {text, 6}), expected) < of_float);
    CHECK(difference(enumerated_law(synthid_watermark(options), logits, {text, 6}), expected) < of_float);
    CHECK(difference(expected, reference::exact_law(logits)) > 1e-3);
  }
}

TEST_CASE("what it leaves are log-probabilities", "[processors]") {
  const row out = logits_after(synthid_watermark({.keys = keys(20)}), random_row(50, 1), some_past(50));
  double sum = 0;
  for (const float z : out) sum += std::exp(static_cast<double>(z));
  CHECK(sum == Approx(1).epsilon(1e-5));
}

TEST_CASE("SynthID after other steps works on what they leave", "[processors]") {
  const row logits = random_row(200, 6);
  const tokens text{1, 2, 3, 4, 5};
  const synthid_options options{.keys = keys(5)};
  const law narrowed =
      reference::exact_law(reference::top_k(reference::temperature(reference::widened(logits), 0.5), 20));
  const auto policy = decant::temperature(0.5) | decant::top_k(20) | synthid_watermark(options);
  CHECK(difference(law_after(policy, logits, {text, 0}), expected_law(options, narrowed, text)) < of_float);
}

TEST_CASE("over keys, two leaves leave the law as it is; three do not", "[processors]") {
  const past before{{1, 2, 3, 4, 5}, 0};
  const law p = reference::exact_law(golden);
  for (const std::size_t layers : {std::size_t{1}, std::size_t{3}, std::size_t{8}}) {
    constexpr std::size_t draws = 20'000;
    std::vector<std::size_t> two(6), three(6);
    candidates c;
    for (std::uint64_t key = 0; key < draws; ++key) {
      for (const std::size_t leaves : {std::size_t{2}, std::size_t{3}}) {
        synthid_watermark mark({.keys = keys(layers, 1'000'003 * key), .leaves = leaves});
        c.bind(std::span<const float>(golden));
        const auto context = context_after(before.text, 0, draw_stream(key, layers));
        mark(c, context);
        ++(leaves == 2 ? two : three)[static_cast<std::size_t>(c.draw(context.draws))];
      }
    }
    CAPTURE(layers);
    CHECK(decant::testing::chi_square(two, p).p_value > 1e-4);
    CHECK(decant::testing::chi_square(three, p).p_value < 1e-6);
  }
}

TEST_CASE("a context that has been used is left alone, as far back as the history reaches", "[processors]") {
  const row logits = random_row(40, 3);
  const auto marked = [&](const synthid_options& options, const tokens& text, std::size_t prompt) {
    return !same_bits(logits_after(synthid_watermark(options), logits, {text, prompt}), logits);
  };
  const synthid_options two{.keys = keys(4), .context_width = 2};
  CHECK(marked(two, {1, 2}, 0));
  CHECK_FALSE(marked(two, {1, 2, 1, 2}, 0));
  CHECK(marked(two, {1, 2, 1, 2}, 3));  // the first (1, 2) is inside the prompt: no token was chosen there
  CHECK_FALSE(marked(two, {1, 2, 1, 2}, 2));
  CHECK_FALSE(marked(two, {5, 5, 5}, 0));
  synthid_options near = two;
  near.history = 3;
  CHECK_FALSE(marked(near, {1, 2, 3, 1, 2}, 0));
  CHECK(marked(near, {1, 2, 3, 4, 1, 2}, 0));
  near.history = 0;
  CHECK(marked(near, {5, 5, 5}, 0));
  synthid_options hf = two;
  hf.how = hashing::hf;
  CHECK(marked(hf, {1, 2}, 2));
  CHECK(marked(hf, {1, 2, 3}, 2));
  CHECK_FALSE(marked(hf, {1, 2, 0}, 2));  // zeros before the output, and then a zero in it
  CHECK_FALSE(marked(hf, {1, 2, 7, 8, 7, 8}, 2));
  CHECK(marked(hf, {7, 8, 7, 8}, 2));
  hf.skip_first = true;
  CHECK_FALSE(marked(hf, {1, 2, 3}, 2));
  CHECK(marked(hf, {1, 2, 3, 4}, 2));
  CHECK(marked(hf, {1, 2, 0, 0}, 2));  // what was skipped has not been used
}

TEST_CASE("a text shorter than SynthID's context leaves the row as it is", "[processors]") {
  const row logits = random_row(40, 3);
  const auto out = [&](const tokens& text) {
    return logits_after(synthid_watermark({.keys = keys(4), .context_width = 3}), logits, {text, 0});
  };
  CHECK(same_bits(out({}), logits));
  CHECK(same_bits(out({1, 2}), logits));
  CHECK_FALSE(same_bits(out({1, 2, 3}), logits));
  CHECK_THROWS_AS(synthid_watermark({.keys = keys(4)}).bits(tokens{1, 2, 3}, 0), assertion_error);
}

TEST_CASE("over the tokens of a whole text, skipping repeats keeps the law", "[processors]") {
  // A writer of two tokens repeats contexts at once. The law of five tokens, over keys, is that of the model.
  const row logits = logs({0.7, 0.3});
  std::vector<std::size_t> counts(32), without(32);
  candidates c;
  for (std::uint64_t key = 0; key < 20'000; ++key) {
    for (const std::size_t history : {std::size_t{1024}, std::size_t{0}}) {
      synthid_watermark mark({.keys = keys(6, 77 * key), .context_width = 1, .history = history});
      tokens text{1};
      std::size_t code = 0;
      for (int i = 0; i < 5; ++i) {
        c.bind(std::span<const float>(logits));
        const auto context = context_after(text, 1, draw_stream(key));
        mark(c, context);
        text.push_back(c.draw(context.draws));
        code = 2 * code + static_cast<std::size_t>(text.back());
      }
      ++(history > 0 ? counts : without)[code];
    }
  }
  law expected(32, 1);
  for (std::size_t code = 0; code < 32; ++code) {
    for (std::size_t bit = 0; bit < 5; ++bit) expected[code] *= (code >> bit & 1) == 1 ? 0.3 : 0.7;
  }
  CHECK(decant::testing::chi_square(counts, expected).p_value > 1e-4);
  CHECK(decant::testing::chi_square(without, expected).p_value < 1e-6);
}

TEST_CASE("over keys, half of the bits of any text are set", "[processors]") {
  const tokens text = written::plain_text(3, 60);
  for (synthid_options options : kinds()) {
    const std::size_t layers = options.keys.size();
    double z = 0, squares = 0, weighted = 0;
    constexpr int texts = 500;
    for (std::uint64_t key = 0; key < texts; ++key) {
      options.keys = keys(layers, 1 + 104'729 * key);
      const synthid_watermark mark(options);
      const auto found = mark.detect(text);
      z += found.z;
      squares += found.z * found.z;
      weighted += std::pow(mark.detect(text, {}, mark.usual_weights()).z, 2);
    }
    CHECK(std::abs(z) < 4.5 * std::sqrt(texts));
    CHECK(std::abs(squares - texts) < 5 * std::sqrt(2.0 * texts));
    CHECK(std::abs(weighted - texts) < 5 * std::sqrt(2.0 * texts));
  }
}

TEST_CASE("SynthID-marked text is found, other text is not: 150 tokens", "[processors]") {
  for (const synthid_options& options : kinds()) {
    const synthid_watermark mark(options);
    INFO(mark.describe());
    const auto detect = [&](const tokens& text) { return mark.detect(text, {.prompt_size = written::prompt}); };
    const auto detect_weighted = [&](const tokens& text) {
      return mark.detect(text, {.prompt_size = written::prompt}, mark.usual_weights());
    };
    synthid_options other = options;
    for (std::uint64_t& key : other.keys) key += 5;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      // Power: every one of these texts at a p-value of 10^-3.
      const tokens text = written::text_by(mark, seed, 150);
      CAPTURE(seed, detect(text).tokens, detect(text).score, detect(text).z, detect_weighted(text).z);
      CHECK(detect(text).p_value < 1e-3);
      CHECK(detect_weighted(text).p_value < 1e-3);
      CHECK(synthid_watermark(other).detect(text, {.prompt_size = written::prompt}).p_value > 1e-4);
    }
    // Level: of 200 texts at 1 % two are expected, and more than ten are not seen by chance (p < 10^-5).
    CHECK(written::false_alarms(0.01, detect) <= 10);
    CHECK(written::false_alarms(0.01, detect_weighted) <= 10);
    CHECK(written::false_alarms(1e-5, detect) == 0);
  }
}

TEST_CASE("SynthID's detector counts each context once, unless repeats are asked for", "[processors]") {
  const synthid_watermark mark({.keys = keys(5), .context_width = 2});
  const tokens text{1, 2, 3, 1, 2, 4, 1, 2};
  CHECK(mark.detect(text).tokens == 5);
  CHECK(mark.detect(text, {.count_repeats = true}).tokens == 6);
  CHECK(mark.detect(text, {.prompt_size = 6}).tokens == 2);
  CHECK(mark.detect(tokens{1, 2}) == decant::watermark_evidence{});
  CHECK(mark.detect(tokens{}) == decant::watermark_evidence{});
  CHECK_THROWS_AS(mark.detect(text, {}, law{1, 2}), assertion_error);
  // The first token behind (1, 2) is the one that counts.
  double ones = 0;
  const auto add = [&](const tokens& before, token_id token) {
    ones += static_cast<double>(std::popcount(mark.bits(before, token) & 31));
  };
  add({1, 2}, 3), add({2, 3}, 1), add({3, 1}, 2), add({2, 4}, 1), add({4, 1}, 2);
  CHECK(mark.detect(text).score == Approx(ones / 25).epsilon(1e-12));
  const law equal(5, 3.0);
  CHECK(mark.detect(text, {}, equal).score == Approx(mark.detect(text).score).epsilon(1e-12));
  CHECK(mark.detect(text, {}, equal).z == Approx(mark.detect(text).z).epsilon(1e-12));
  CHECK(mark.usual_weights() == law{10, 7.75, 5.5, 3.25, 1});
  CHECK(synthid_watermark({.keys = keys(1)}).usual_weights() == law{10});
}

TEST_CASE("SynthID's bits stay what they are: texts marked once must be readable for ever", "[processors]") {
  CHECK((synthid_watermark({.keys = {1, 2, 3}}).bits(tokens{1, 2, 3, 4}, 5)) == 0x10068dc2075a2536U);
}

TEST_CASE("HF's cases: watermark_synthid.json", "[processors]") {
  SKIP_WITHOUT_SHARED("goldens/watermark_synthid.json");
  std::ifstream file(shared_path("goldens/watermark_synthid.json"));
  const json cases = json::parse(file)["cases"];
  REQUIRE(cases.size() >= 3);
  for (const json& each : cases) {
    const json& params = each["params"];
    const synthid_options options{.keys = params["keys"].get<std::vector<std::uint64_t>>(),
                                  .context_width = params["ngram_len"].get<std::size_t>() - 1,
                                  .history = params["context_history_size"].get<std::size_t>(),
                                  .how = hashing::hf,
                                  .table_size = params["sampling_table_size"].get<std::size_t>(),
                                  .table_seed = params["sampling_table_seed"].get<std::uint64_t>(),
                                  .skip_first = params["skip_first_ngram_calls"].get<bool>()};
    const auto table = each["sampling_table_first64"].get<std::vector<int>>();
    const auto bits = decant::torch_random_bits(options.table_seed, options.table_size);
    for (std::size_t i = 0; i < table.size(); ++i) CHECK(bits[i] == (table[i] == 1));
    const auto logits = each["logits"].get<row>();
    synthid_watermark mark(options);
    for (const json& step : each["steps"]) {
      const auto text = step["input_ids"].get<tokens>();
      INFO(step["input_ids"].dump());
      const tokens output(text.begin() + 1, text.end());  // the prompt is one token
      for (std::size_t id = 0; id < logits.size(); ++id) {
        for (std::size_t layer = 0; layer < options.keys.size(); ++layer) {
          const bool g = (mark.bits(output, static_cast<token_id>(id)) >> layer & 1) == 1;
          CHECK(g == (step["g_values_by_token"][id][layer] == 1));
        }
      }
      const row out = logits_after(mark, logits, {text, 1});
      CHECK(same_bits(out, logits) == step["context_repeated"].get<bool>());
      for (std::size_t id = 0; id < logits.size(); ++id) {
        CHECK(static_cast<double>(out[id]) == Approx(step["expected"][id].get<double>()).epsilon(2e-5).margin(2e-5));
      }
    }
  }
}

TEST_CASE("SynthID refuses bad parameters", "[processors]") {
  const auto refused = [](const synthid_options& options) {
    const std::string thrown = complaint([&] { return synthid_watermark(options); });
    const auto made = synthid_watermark::make(options);
    CHECK(made.has_value() == thrown.empty());
    if (!made.has_value()) CHECK(made.error().message == thrown);
    return thrown;
  };
  CHECK(refused({}) == "synthid_watermark: keys = 0 must be 1 to 64 in number");
  CHECK(refused({.keys = keys(65)}) == "synthid_watermark: keys = 65 must be 1 to 64 in number");
  CHECK(refused({.keys = keys(2), .context_width = 0}) == "synthid_watermark: context_width = 0 must be at least 1");
  CHECK(refused({.keys = keys(2), .leaves = 0}) == "synthid_watermark: leaves = 0 must lie in 1 .. 1024");
  CHECK(refused({.keys = keys(2), .leaves = 1025}) == "synthid_watermark: leaves = 1025 must lie in 1 .. 1024");
  CHECK(refused({.keys = keys(2), .table_size = 0}) == "synthid_watermark: table_size = 0 must lie in 1 .. 2^24");
  CHECK_FALSE(refused({.keys = keys(2), .table_size = (1U << 24) + 1}).empty());
  CHECK(refused({.keys = keys(64), .leaves = 1024}).empty());
}

TEST_CASE("one leaf is SynthID's off value", "[processors]") {
  CHECK(synthid_watermark({.keys = keys(4), .leaves = 1}).off());
  check_identity(synthid_watermark({.keys = keys(4), .leaves = 1}));
}

TEST_CASE("SynthID as any processor: sizes, bad rows, check_processor", "[processors]") {
  for (synthid_options options : kinds()) {
    check_bad_rows(synthid_watermark(options));
    options.context_width = 1;  // the text of these repeats itself
    options.history = 0;
    check_report_of(synthid_watermark(options),
                    {.permutation = false, .shift_invariant = true, .allocations = decant::testing::allocations});
    options.keys.resize(std::min<std::size_t>(options.keys.size(), 6));
    check_sizes(synthid_watermark(options));
  }
  // The longest tournament leaves little more than one token, and that is still a law.
  const synthid_watermark longest({.keys = keys(64), .leaves = 1024});
  const law left = law_after(longest, row(50, 0.0F), {{1, 2, 3, 4}, 0});
  CHECK(*std::ranges::max_element(left) > 0.999);
  CHECK(status_after(longest, random_row(50, 1), {{1, 2, 3, 4}, 0}) == row_status::ok);
}

TEST_CASE("SynthID describes itself", "[processors]") {
  CHECK(synthid_watermark({.keys = keys(30)}).describe() == "synthid_watermark(30 layers)");
  CHECK(synthid_watermark({.keys = keys(1), .context_width = 2, .leaves = 3, .history = 0, .how = hashing::hf})
            .describe() == "synthid_watermark(1 layer, context_width = 2, leaves = 3, history = 0, hashing = hf)");
}

}  // namespace synthid_watermark_tests
