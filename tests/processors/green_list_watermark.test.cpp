// SPDX-License-Identifier: MIT
#include <decant/processors/green_list_watermark.hpp>

#include "processors/policies.hpp"
#include "processors/written_texts.hpp"
#include "support/shared.hpp"

#include <fstream>
#include <set>

#include <nlohmann/json.hpp>

#include <decant/chain.hpp>
#include <decant/processors/top_k.hpp>

namespace green_list_watermark_tests {

using namespace policies;
using decant::detection_options;
using decant::green_list_options;
using decant::green_list_seed;
using decant::green_list_watermark;
using decant::hashing;
using nlohmann::json;

/// One of each kind.
std::vector<green_list_options> kinds() {
  return {{.seed = green_list_seed::left_hash},
          {.seed = green_list_seed::left_hash, .context_width = 3},
          {.seed = green_list_seed::min_hash, .context_width = 4},
          {.seed = green_list_seed::self_hash, .context_width = 4},
          {.seed = green_list_seed::self_hash, .context_width = 1},
          {.how = hashing::hf},
          {.seed = green_list_seed::self_hash, .context_width = 4, .how = hashing::hf}};
}

/// The tokens that a processor has raised, which must all be raised alike.
tokens raised(const green_list_options& options, const row& logits, const past& before) {
  const row out = logits_after(green_list_watermark(options), logits, before);
  tokens ids;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (out[i] == logits[i]) continue;
    CHECK(static_cast<double>(out[i] - logits[i]) == Approx(options.bias).epsilon(1e-5));
    ids.push_back(static_cast<token_id>(i));
  }
  return ids;
}

/// The list as a detector finds it.
tokens detected(const green_list_options& options, std::size_t size, const past& before) {
  const green_list_watermark mark(options);
  tokens ids;
  for (std::size_t i = 0; i < size; ++i) {
    if (mark.green(before.text, static_cast<token_id>(i), size)) ids.push_back(static_cast<token_id>(i));
  }
  return ids;
}

TEST_CASE("a green list has floor(fraction n) tokens, and the detector finds the same", "[processors]") {
  for (green_list_options options : kinds()) {
    for (const double fraction : {0.1, 0.25, 0.5}) {
      options.fraction = fraction;
      INFO(green_list_watermark(options).describe());
      for (const std::size_t size : {std::size_t{8}, std::size_t{39}, std::size_t{500}}) {
        const row logits(size, 0.5F);
        const past before = some_past(size);
        const tokens list = raised(options, logits, before);
        tokens found = detected(options, size, before);
        const bool self = options.seed == green_list_seed::self_hash;
        if (!self) CHECK(list.size() == decant::green_size(fraction, size));
        // Hugging Face's self_hash looks at the 40 largest alone: with equal logits, at the first 40.
        if (self && options.how == hashing::hf) std::erase_if(found, [](token_id id) { return id >= 40; });
        CHECK(list == found);
      }
    }
  }
}

TEST_CASE("the law is proportional to p e^(bias [green])", "[processors]") {
  for (green_list_options options : kinds()) {
    for (const double bias : {0.5, 2.0, 5.0}) {
      options.bias = bias;
      INFO(green_list_watermark(options).describe());
      const row logits = random_row(39, 5);
      const past before = some_past(39);
      law expected = reference::exact_law(logits);
      for (const token_id id : detected(options, 39, before)) expected[static_cast<std::size_t>(id)] *= std::exp(bias);
      double sum = 0;
      for (const double p : expected) sum += p;
      for (double& p : expected) p /= sum;
      CHECK(difference(law_after(green_list_watermark(options), logits, before), expected) < of_float);
      CHECK(difference(enumerated_law(green_list_watermark(options), logits, before), expected) < of_float);
    }
  }
}

TEST_CASE("a green-list watermark after a narrowing raises what is left of the list", "[processors]") {
  const row logits = random_row(300, 8);
  const past before = some_past(300);
  for (const green_list_options& options : kinds()) {
    const tokens green = detected(options, 300, before);
    const row narrowed = logits_after(decant::top_k(30), logits);
    const row out = logits_after(decant::top_k(30) | green_list_watermark(options), logits, before);
    for (std::size_t i = 0; i < 300; ++i) {
      if (decant::is_gone(narrowed[i])) {
        CHECK(decant::is_gone(out[i]));
      } else {
        const bool on = std::ranges::find(green, static_cast<token_id>(i)) != green.end();
        CHECK(static_cast<double>(out[i]) == Approx(static_cast<double>(narrowed[i]) + (on ? 2 : 0)).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("each kind of seed sees what it says of the text", "[processors]") {
  const auto list = [](const green_list_options& options, const tokens& text) {
    return detected(options, 200, {text, 0});
  };
  const green_list_options left{.context_width = 2};
  CHECK(list(left, {7, 1, 2}) == list(left, {9, 1, 2}));
  CHECK(list(left, {7, 1, 2}) != list(left, {7, 2, 1}));
  const green_list_options least{.seed = green_list_seed::min_hash, .context_width = 3};
  CHECK(list(least, {7, 1, 2, 3}) == list(least, {8, 3, 1, 2}));  // the order does not matter, nor what is before
  std::set<tokens> lists;
  for (const token_id changed : {100, 101, 102, 103, 104, 105}) lists.insert(list(least, {changed, 1, 2}));
  CHECK(lists.size() < 6);  // often the least hash is another token's
  const green_list_options self{.seed = green_list_seed::self_hash, .context_width = 2};
  CHECK(list(self, {7, 1}) == list(self, {9, 1}));
  CHECK(list(self, {7, 1}) != list(self, {7, 2}));
  for (const green_list_options& options : kinds()) {
    if (options.seed == green_list_seed::self_hash && options.context_width == 1) continue;
    green_list_options other = options;
    other.key = 5;
    CHECK(list(options, {1, 2, 3, 4, 5}) != list(other, {1, 2, 3, 4, 5}));
    CHECK(list(options, {1, 2, 3, 4, 5}) != list(options, {1, 2, 3, 4, 6}));
  }
}

TEST_CASE("a text shorter than the context leaves the row as it is", "[processors]") {
  const row logits = random_row(50, 2);
  const auto changes = [&](const green_list_options& options, const tokens& text) {
    return !same_bits(logits_after(green_list_watermark(options), logits, {text, 0}), logits);
  };
  CHECK_FALSE(changes({}, {}));
  CHECK(changes({}, {1}));
  CHECK_FALSE(changes({.context_width = 3}, {1, 2}));
  CHECK(changes({.context_width = 3}, {1, 2, 3}));
  CHECK_FALSE(changes({.seed = green_list_seed::self_hash, .context_width = 3}, {1}));
  CHECK(changes({.seed = green_list_seed::self_hash, .context_width = 3}, {1, 2}));
  CHECK(changes({.seed = green_list_seed::self_hash, .context_width = 1}, {}));
  CHECK_FALSE(changes({.context_width = 2, .how = hashing::hf}, {1}));
  CHECK_FALSE(changes({.seed = green_list_seed::self_hash, .context_width = 3, .how = hashing::hf}, {1, 2}));
  CHECK_FALSE(green_list_watermark({.context_width = 3}).green(tokens{1, 2}, 0, 50));
}

TEST_CASE("hard: only green tokens are left, and every one counts", "[processors]") {
  for (green_list_options options : kinds()) {
    options.hard = true;
    options.bias = 0;
    const green_list_watermark mark(options);
    INFO(mark.describe());
    const past before = some_past(500);
    tokens expected = detected(options, 500, before);
    if (options.how == hashing::hf && options.seed == green_list_seed::self_hash) {
      std::erase_if(expected, [](token_id id) { return id >= 40; });
    }
    CHECK(survivors(mark, row(500, 1.0F), before) == expected);
    const tokens text = written::text_by(mark, 3, 120);
    const auto found = mark.detect(text, written::vocabulary, {.prompt_size = written::prompt, .count_repeats = true});
    CHECK(found.tokens == 120);
    CHECK(found.score == 120);
  }
  // Where no green token is left, nothing is banned.
  const row none(3, 0.5F);
  CHECK(survivors(green_list_watermark({.fraction = 0.25, .hard = true}), none, {{1}, 0}) == tokens{0, 1, 2});
}

TEST_CASE("over keys, text without a watermark has fraction * T green tokens", "[processors]") {
  const tokens text = written::plain_text(1, 60);
  for (green_list_options options : kinds()) {
    if (options.how == hashing::hf && options.seed == green_list_seed::self_hash) continue;  // a table a key: too slow
    constexpr std::size_t keys = 400;
    double greens = 0, squares = 0, count = 0;
    for (std::uint64_t key = 1; key <= keys; ++key) {
      options.key = 7919 * key;
      const auto found = green_list_watermark(options).detect(text, written::vocabulary);
      greens += found.score;
      squares += found.z * found.z;
      count += static_cast<double>(found.tokens);
    }
    INFO(green_list_watermark(options).describe());
    // Within 4.5 standard deviations; with a key a list, tokens are as good as independent.
    CHECK(std::abs(greens - 0.25 * count) < 4.5 * std::sqrt(count * 0.25 * 0.75) * 1.5);
    CHECK(squares / keys > 0.7);
    CHECK(squares / keys < 1.5);
  }
}

TEST_CASE("marked text is found, other text is not: 150 tokens, bias 2, a quarter green", "[processors]") {
  for (const green_list_options& options : kinds()) {
    const green_list_watermark mark(options);
    const bool slow = options.how == hashing::hf && options.seed == green_list_seed::self_hash;
    INFO(mark.describe());
    const auto detect = [&](const tokens& text) {
      return mark.detect(text, written::vocabulary, {.prompt_size = written::prompt});
    };
    // Power: every one of these texts at a p-value of 10^-4 (z of 3.7).
    for (std::uint64_t seed = 0; seed < (slow ? 3 : 15); ++seed) {
      const tokens text = written::text_by(mark, seed, 150);
      const auto found = detect(text);
      CAPTURE(seed, found.tokens, found.score, found.z);
      CHECK(found.p_value < 1e-4);
      // With another key it is any text.
      green_list_options other = options;
      other.key += 2;
      if (!slow) {
        CHECK(green_list_watermark(other).detect(text, written::vocabulary, {.prompt_size = written::prompt}).p_value >
              1e-4);
      }
    }
    // Level: of 200 texts at 1 % two are expected, and more than ten are not seen by chance (p < 10^-5).
    CHECK(written::false_alarms(0.01, detect, slow ? 40 : 200) <= 10);
    CHECK(written::false_alarms(1e-5, detect, slow ? 40 : 200) == 0);
  }
}

TEST_CASE("repeated n-grams count once, unless they are asked for", "[processors]") {
  const green_list_watermark mark({.fraction = 0.5});
  tokens text;
  for (int i = 0; i < 100; ++i) {
    text.push_back(3);
    text.push_back(4);
  }
  const auto once = mark.detect(text, 64), each = mark.detect(text, 64, {.count_repeats = true});
  CHECK(once.tokens == 2);
  CHECK(each.tokens == 199);
  CHECK(once.p_value > 0.05);
  CHECK(mark.detect(text, 64, {.prompt_size = 150, .count_repeats = true}).tokens == 50);
  CHECK(mark.detect(tokens{}, 64) == decant::watermark_evidence{});
  CHECK(mark.detect(tokens{1}, 64).tokens == 0);
  CHECK_THROWS_AS(mark.detect(tokens{1, 64}, 64), assertion_error);
  CHECK_THROWS_AS(mark.detect(tokens{1, -1}, 64), assertion_error);
}

TEST_CASE("lists stay what they are: texts marked once must be readable for ever", "[processors]") {
  const past before{{5, 9, 2, 7}, 0};
  CHECK(detected({}, 32, before) == tokens{0, 3, 6, 12, 20, 28, 29, 31});
  CHECK(detected({.seed = green_list_seed::min_hash, .context_width = 4}, 32, before) ==
        tokens{0, 6, 8, 13, 20, 22, 23, 24});
  CHECK(detected({.seed = green_list_seed::self_hash, .context_width = 4}, 32, before) == tokens{3, 7, 10, 20, 22, 30});
}

row read_row(const json& numbers) {
  row out;
  for (const json& number : numbers) out.push_back(number.is_null() ? gone : number.get<float>());
  return out;
}

TEST_CASE("HF's cases: watermark_kgw.json", "[processors]") {
  SKIP_WITHOUT_SHARED("goldens/watermark_kgw.json");
  std::ifstream file(shared_path("goldens/watermark_kgw.json"));
  const json cases = json::parse(file)["cases"];
  REQUIRE(cases.size() >= 9);
  for (const json& each : cases) {
    INFO(each["name"].get<std::string>());
    const json& params = each["params"];
    const green_list_options options{
        .fraction = params["greenlist_ratio"].get<double>(),
        .bias = params["bias"].get<double>(),
        .key = params["hashing_key"].get<std::uint64_t>(),
        .seed = params["seeding_scheme"] == "selfhash" ? green_list_seed::self_hash : green_list_seed::left_hash,
        .context_width = params["context_width"].get<std::size_t>(),
        .how = hashing::hf};
    const row logits = read_row(each["logits"]), expected = read_row(each["expected"]);
    const past before{each["input_ids"].get<tokens>(), 0};
    CHECK(same_bits(logits_after(green_list_watermark(options), logits, before), expected));
    // Gone tokens and narrow rows are treated alike: the list itself, from the detector's side.
    for (const token_id id : each["greenlist"].get<tokens>()) {
      CHECK(green_list_watermark(options).green(before.text, id, logits.size()));
    }
  }
}

TEST_CASE("hashing::hf multiplies key and token modulo 2^64 - 1", "[processors]") {
  // 2^64 - 1 is 0, and adding it to the key changes nothing: keys are below it, so products are compared.
  const auto list = [](std::uint64_t key, token_id last) {
    return detected({.key = key, .how = hashing::hf}, 97, {{last}, 0});
  };
  CHECK(list(0xFFFFFFFFFFFFFFFFU, 5) == list(0, 3));
  CHECK(list(0x8000000000000000U, 2) == list(1, 1));  // 2^64 is 1
  CHECK(list(0x8000000000000000U, 6) == list(1, 3));
  CHECK(list(0x4000000000000001U, 4) == list(1, 5));
  CHECK(list(0x0000000100000000U, 3) == list(0x0000000300000000U, 1));
  // Carries out of the lower half, and out of the sum of the halves.
  CHECK(list(0x55555555FFFFFFFFU, 3) == list(0x00000001FFFFFFFEU, 1));
  CHECK(list(0x9249249249249249U, 7) == list(1, 3));
  CHECK(list(1, 1) != list(1, 3));
}

TEST_CASE("a green-list watermark refuses bad parameters", "[processors]") {
  const auto refused = [](const green_list_options& options) {
    const std::string thrown = complaint([&] { return green_list_watermark(options); });
    const auto made = green_list_watermark::make(options);
    CHECK(made.has_value() == thrown.empty());
    if (!made.has_value()) CHECK(made.error().message == thrown);
    return thrown;
  };
  for (const double fraction : {0.0, 1.0, -0.5, 1.5, not_a_number, infinity}) {
    CHECK(refused({.fraction = fraction}) ==
          "green_list_watermark: fraction = " + decant::detail::number_text(fraction) + " must lie in (0, 1)");
  }
  for (const double bias : {-1.0, not_a_number, infinity}) {
    CHECK(refused({.bias = bias}) ==
          "green_list_watermark: bias = " + decant::detail::number_text(bias) + " must be a finite number >= 0");
  }
  CHECK(refused({.context_width = 0}) == "green_list_watermark: context_width = 0 must be at least 1");
  CHECK(refused({.seed = green_list_seed::min_hash, .how = hashing::hf}) ==
        "green_list_watermark: seed = 1 must not be min_hash with hashing::hf, which has none");
  CHECK(refused({.fraction = denormal, .bias = largest}).empty());
}

TEST_CASE("a bias of 0 is off, but not where it is hard", "[processors]") {
  for (green_list_options options : kinds()) {
    options.bias = 0;
    CHECK(green_list_watermark(options).off());
    check_identity(green_list_watermark(options));
    options.hard = true;
    CHECK_FALSE(green_list_watermark(options).off());
  }
}

TEST_CASE("a green-list watermark on every size of vocabulary and on bad rows", "[processors]") {
  for (green_list_options options : kinds()) {
    // 40 shuffles of 150 000 a row take too long here.
    if (options.how == hashing::decant) check_sizes(green_list_watermark(options));
    check_bad_rows(green_list_watermark(options));
    options.hard = true;
    if (options.how == hashing::decant) check_sizes(green_list_watermark(options));
    check_bad_rows(green_list_watermark(options));
  }
  check_sizes(green_list_watermark({.how = hashing::hf}));
}

TEST_CASE("a green-list watermark passes check_processor", "[processors]") {
  for (green_list_options options : kinds()) {
    const bool slow = options.how == hashing::hf && options.seed == green_list_seed::self_hash;
    check_report_of(green_list_watermark(options), {.draws = slow ? std::size_t{8} : std::size_t{4000},
                                                    .permutation = false,
                                                    .shift_invariant = true,
                                                    .allocations = decant::testing::allocations});
    if (slow) continue;
    options.hard = true;
    check_report_of(green_list_watermark(options),
                    {.permutation = false, .shift_invariant = true, .allocations = decant::testing::allocations});
  }
}

TEST_CASE("a green-list watermark describes itself", "[processors]") {
  CHECK(green_list_watermark().describe() == "green_list_watermark(0.25, 2)");
  CHECK(green_list_watermark({.seed = green_list_seed::min_hash, .context_width = 4}).describe() ==
        "green_list_watermark(0.25, 2, seed = min_hash, context_width = 4)");
  CHECK(green_list_watermark({.fraction = 0.5, .seed = green_list_seed::self_hash, .hard = true, .how = hashing::hf})
            .describe() == "green_list_watermark(0.5, 2, seed = self_hash, hard = true, hashing = hf)");
}

}  // namespace green_list_watermark_tests
