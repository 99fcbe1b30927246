// SPDX-License-Identifier: MIT
#include <decant/processors/dry.hpp>

#include "processors/texts.hpp"

#include <map>

#include <decant/chain.hpp>
#include <decant/generate.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/samplers/greedy.hpp>
#include <decant/testing/markov_model.hpp>

namespace dry_tests {

using namespace texts;
using decant::dry;
using decant::dry_options;
using decant::sequence_breakers;

/// The definition: for every next token the longest repeat, by comparing at every place.
std::map<token_id, std::size_t> longest_repeats(const tokens& text, const std::vector<bool>& broken) {
  std::map<token_id, std::size_t> out;
  const std::size_t n = text.size();
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t length = 0;
    while (length < i && text[i - 1 - length] == text[n - 1 - length] && !broken[i - 1 - length] &&
           !broken[n - 1 - length]) {
      ++length;
    }
    auto& known = out[text[i]];
    known = std::max(known, length);
  }
  return out;
}

row penalised(const row& logits, const tokens& text, const dry_options& options, const std::vector<bool>& broken) {
  row out = logits;
  for (const auto& [id, length] : longest_repeats(text, broken)) {
    if (length < options.allowed_length) continue;
    const double power = std::pow(options.base, static_cast<double>(length - options.allowed_length));
    out[static_cast<std::size_t>(id)] -= static_cast<float>(options.multiplier * power);
  }
  return out;
}

double distance(const row& a, const row& b) {
  double largest_distance = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest_distance = std::max(largest_distance, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])) /
                                                      (1 + std::abs(static_cast<double>(b[i]))));
  }
  return largest_distance;
}

TEST_CASE("DRY has the numbers of llama.cpp's worked example", "[processors]") {
  // a b c c b c y a b c: c continues a repeat of 3, y one of 2, b one of 1
  const past before{{0, 1, 2, 2, 1, 2, 3, 0, 1, 2}};
  const row flat(5, 0);
  const row out = logits_after(dry({.multiplier = 1, .base = 2, .allowed_length = 2}), flat, before);
  CHECK(out == row{0, 0, -2, -1, 0});
  CHECK(logits_after(dry({.multiplier = 1, .base = 2, .allowed_length = 1}), flat, before) == row{0, -1, -4, -2, 0});
  CHECK(logits_after(dry({.multiplier = 1, .base = 2, .allowed_length = 3}), flat, before) == row{0, 0, -1, 0, 0});
}

TEST_CASE("DRY has the numbers of llama.cpp's tests", "[processors]") {
  const row four = logs(law(4, 0.25)), five = logs(law(5, 0.2));
  const dry_options usual{.multiplier = 1, .base = 1.1, .allowed_length = 2, .range = 5};
  CHECK(logits_after(dry({.multiplier = 1, .base = 1.1, .allowed_length = 2, .range = 4}), four, {{0, 1}}) == four);
  CHECK(difference(law_after(dry(usual), four, {{0, 1, 2, 0, 1}}), {0.296923, 0.296923, 0.109232, 0.296923}) < 1e-5);
  const auto bytes = vocabulary({"a", "b", "c", "d", "e"});
  CHECK(logits_after(dry({.multiplier = 1, .base = 1.1, .allowed_length = 2, .range = 6}, {{"d"}, bytes}), five,
                     {{0, 1, 3, 4, 0, 1}}) == five);
  CHECK(difference(
            law_after(dry({.multiplier = 2, .base = 1.1, .allowed_length = 2, .range = 5}), five, {{0, 1, 2, 0, 1}}),
            {0.241818, 0.241818, 0.032727, 0.241818, 0.241818}) < 1e-5);
  CHECK(logits_after(dry({.multiplier = 1, .base = 1.1, .allowed_length = 4, .range = 7}), five,
                     {{0, 1, 2, 3, 4, 0, 1}}) == five);
}

TEST_CASE("the usual numbers are the author's", "[processors]") {
  const past before{{0, 1, 2, 9, 0, 1, 2}};
  CHECK(logits_after(dry({}), row(10, 0), before)[9] == static_cast<float>(-0.8 * 1.75));
}

TEST_CASE("the longest repeat of a token counts, once", "[processors]") {
  // 1 2 | 7 once after (0 1 2), twice after (1 2) alone
  const past before{{5, 1, 2, 7, 3, 0, 1, 2, 7, 6, 1, 2, 7, 4, 0, 1, 2}};
  CHECK(logits_after(dry({.multiplier = 1, .base = 2}), row(8, 0), before)[7] == -2);
}

TEST_CASE("repeats may overlap", "[processors]") {
  CHECK(logits_after(dry({.multiplier = 1, .base = 2}), row(2, 0), {{1, 1, 1, 1}}) == row{0, -2});
  CHECK(logits_after(dry({.multiplier = 1, .base = 2}), row(2, 0), {{0, 1, 0, 1, 0}}) == row{0, -2});
}

TEST_CASE("DRY equals the quadratic definition on random texts of few symbols", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const std::size_t symbols = 1 + seed % 3;
    const tokens text = random_text(seed, seed % 47, symbols);
    const row logits = random_row(4, seed);
    for (const std::size_t allowed : {0U, 1U, 2U, 5U}) {
      const dry_options options{.multiplier = 0.8, .base = 1.2, .allowed_length = allowed};
      INFO("seed " << seed << ", allowed " << allowed);
      CHECK(distance(logits_after(dry(options), logits, {text}),
                     penalised(logits, text, options, std::vector<bool>(text.size()))) < of_float);
    }
  }
}

TEST_CASE("DRY equals the definition with breakers of all kinds", "[processors]") {
  const strings pieces{"a", "b", "ab", "", "bca"};
  const auto bytes = vocabulary(pieces);
  const std::vector<strings> sets{{"a"}, {"c"}, {"ab"}, {"bb", "aa"}, {"caab"}, {"abab"}, {"bbb", "c"}};
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const strings& set = sets[seed % sets.size()];
    const tokens text = random_text(seed, seed % 53, seed % 2 == 0 ? 2 : pieces.size());
    const row logits = random_row(5, seed);
    const dry_options options{
        .multiplier = 0.5, .base = 1.3, .allowed_length = 1 + seed % 2, .penalise_breakers = true};
    INFO("seed " << seed);
    CHECK(distance(logits_after(dry(options, {set, bytes}), logits, {text}),
                   penalised(logits, text, options, broken(text, set, pieces))) < of_float);
  }
}

TEST_CASE("every text of two symbols up to length 10 has its law", "[processors]") {
  const dry_options options{.multiplier = 1, .base = 2, .allowed_length = 2};
  dry policy(options);
  candidates c;
  bool equal = true;
  for (std::size_t size = 0; size <= 10; ++size) {
    for (std::size_t bits = 0; bits < (std::size_t{1} << size); ++bits) {
      tokens text;
      for (std::size_t i = 0; i < size; ++i) text.push_back(static_cast<token_id>(bits >> i & 1));
      const row flat(2, 0), expected = penalised(flat, text, options, std::vector<bool>(size));
      c.bind(std::span<const float>(flat));
      policy(c, context_after(text, 0, draw_stream(1)));
      equal = equal && c.logit(0) == expected[0] && c.logit(1) == expected[1];
    }
  }
  CHECK(equal);
}

TEST_CASE("the law of DRY by enumeration", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const row logits = random_row(3, seed);
    const tokens text = random_text(seed, 20, 3);
    const dry_options options{.multiplier = 0.4, .base = 1.5};
    const law expected = reference::exact_law(penalised(logits, text, options, std::vector<bool>(text.size())));
    CHECK(difference(law_after(dry(options), logits, {text}), expected) < of_float);
    CHECK(difference(enumerated_law(dry(options), logits, {text}), expected) < of_float);
  }
}

TEST_CASE("a breaker as the last token ends all repeats", "[processors]") {
  const sequence_breakers breakers(sequence_breakers::usual(), bytes_as_tokens());
  const past before{spelled("say it: say it:")};
  CHECK(logits_after(dry({}, breakers), row(256, 1), before) == row(256, 1));
  CHECK(logits_after(dry({}), row(256, 1), before) != row(256, 1));
}

TEST_CASE("a breaker inside cuts the repeat", "[processors]") {
  const sequence_breakers breakers({":"}, bytes_as_tokens());
  const past before{spelled("xab:cdZ xab:cd")};
  const dry_options options{.multiplier = 1, .base = 2};
  CHECK(logits_after(dry(options, breakers), row(256, 0), before)['Z'] == -1);  // "cd"
  CHECK(logits_after(dry(options), row(256, 0), before)['Z'] == -16);           // "xab:cd"
}

TEST_CASE("a breaker that spans tokens cuts the repeat, and none that only looks like it", "[processors]") {
  const strings pieces{"\nUs", "er", ": ", "hi", "there", "er:", "x"};
  const sequence_breakers breakers({"\nUser:"}, vocabulary(pieces));
  const dry_options options{.multiplier = 1, .base = 2, .allowed_length = 1};
  // The template is no repeat, what follows it is.
  const tokens turns{3, 0, 1, 2, 3, 4, 0, 1, 2, 3};
  const row out = logits_after(dry(options, breakers), row(7, 0), {turns});
  CHECK(out == row{-1, 0, 0, 0, -1, 0, 0});
  CHECK(logits_after(dry(options), row(7, 0), {turns}) == row{-1, 0, 0, 0, -8, 0, 0});
  // "er" stood in a breaker before: having it at the end now makes no repeat of it.
  CHECK(logits_after(dry(options, breakers), row(7, 0), {{0, 1, 2, 6, 1}}) == row(7, 0));
  CHECK(logits_after(dry(options, breakers), row(7, 0), {{6, 1, 2, 6, 1}}) == row{0, 0, -2, 0, 0, 0, 0});
}

TEST_CASE("a next token in which a breaker ends is exempt, or not if told so", "[processors]") {
  const sequence_breakers breakers({"\n", "no"}, bytes_as_tokens());
  const past line{spelled("ab\nab")}, word{spelled("xyno xyn")};
  const dry_options exempt{.multiplier = 1, .base = 2}, all{.multiplier = 1, .base = 2, .penalise_breakers = true};
  CHECK(logits_after(dry(exempt, breakers), row(256, 0), line) == row(256, 0));
  CHECK(logits_after(dry(all, breakers), row(256, 0), line)['\n'] == -1);
  // "n" begins a breaker but has none: with "o" it would be one, so before it stands a broken "n" that is no repeat.
  CHECK(logits_after(dry(all, breakers), row(256, 0), word) == row(256, 0));
  const past begun{spelled("xyn xyno xyn")};
  CHECK(logits_after(dry(all, breakers), row(256, 0), begun)[' '] == -2);
  CHECK(logits_after(dry(exempt, breakers), row(256, 0), begun)['o'] == 0);
}

TEST_CASE("a base of 1 makes the penalty flat", "[processors]") {
  const past before{{0, 1, 2, 2, 1, 2, 3, 0, 1, 2}};
  CHECK(logits_after(dry({.multiplier = 0.5, .base = 1}), row(5, 0), before) == row{0, 0, -0.5F, -0.5F, 0});
}

TEST_CASE("only the range is seen, the prompt included", "[processors]") {
  const past before{{0, 1, 2, 3, 0, 1}, 4};
  const dry_options options{.multiplier = 1, .base = 2, .range = 6};
  CHECK(logits_after(dry(options), row(4, 0), before) == row{0, 0, -1, 0});
  CHECK(logits_after(dry({.multiplier = 1, .range = 5}), row(4, 0), before) == row(4, 0));
  CHECK(logits_after(dry({.multiplier = 1, .range = 1000}), row(4, 0), before) == row{0, 0, -1, 0});
  for (std::size_t range = 1; range <= 30; ++range) {
    const tokens text = random_text(range, 30, 2);
    const tokens last(text.end() - static_cast<std::ptrdiff_t>(range), text.end());
    CHECK(logits_after(dry({.range = range}), row(2, 0), {text}) == logits_after(dry({}), row(2, 0), {last}));
  }
}

TEST_CASE("short texts and long allowances change nothing", "[processors]") {
  CHECK(logits_after(dry({}), golden) == golden);
  CHECK(logits_after(dry({}), golden, {{1}}) == golden);
  CHECK(logits_after(dry({}), golden, {{1, 1}}) == golden);
  CHECK(logits_after(dry({}), golden, {{1, 1, 1}}) != golden);
  const dry_options never{.allowed_length = std::numeric_limits<std::size_t>::max()};
  CHECK(logits_after(dry(never), golden, {{1, 1, 1}}) == golden);
}

TEST_CASE("a huge repeat keeps its logit finite, and takes linear time", "[processors]") {
  const tokens text(300'000, 1);
  for (const double base : {1.0 + 1e-15, 1.0001, 1.75, 2.0, 1e30, 1e300, largest}) {
    INFO("base " << base);
    const row out = logits_after(dry({.base = base}), {1, 1}, {text});
    CHECK(out[0] == 1);
    CHECK(decant::math::is_finite(out[1]));
    CHECK(out[1] < 1);
    CHECK(status_after(dry({.base = base}), {1, 1}, {text}) == row_status::ok);
  }
  // The last exponent whose power a float holds: 2^127.
  CHECK(logits_after(dry({.multiplier = 1, .base = 2}), {0, 0}, {tokens(130, 1)})[1] == -0x1p127F);
  CHECK(logits_after(dry({.multiplier = 1, .base = 2}), {0, 0}, {tokens(129, 1)})[1] == -0x1p126F);
  CHECK(logits_after(dry({.multiplier = 1, .base = 2}), {0, 0}, {text})[1] == -0x1p127F);
  CHECK(logits_after(dry({.multiplier = largest, .base = 2}), {0, 0}, {text})[1] == -std::numeric_limits<float>::max());
}

TEST_CASE("a DRY multiplier of 0 is the identity bit for bit", "[processors]") {
  for (const double multiplier : {0.0, -0.0}) {
    CHECK(dry({.multiplier = multiplier}).off());
    check_identity(dry({.multiplier = multiplier}, {{"a"}, bytes_as_tokens()}));
  }
  CHECK(!dry({.multiplier = denormal}).off());
  CHECK(!dry({}).off());
}

TEST_CASE("the penalty is subtracted from the logit as it stands, and a gone token stays gone", "[processors]") {
  const past before{{1, 0, 1}};
  const dry_options options{.multiplier = 1, .allowed_length = 1};
  CHECK(logits_after(decant::chain(decant::temperature(0.5), dry(options)), {1, 2}, before) == row{1, 4});
  CHECK(logits_after(dry(options), {gone, 2}, before) == row{gone, 2});
}

TEST_CASE("what is generated under a strong DRY repeats nothing for long", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    auto model = decant::testing::random_markov_model(12, 1, seed, 4);
    const tokens prompt{0, 1};
    const auto repeats = [&](auto chain) {
      decant::generate_options options;
      options.max_new_tokens = 60;
      options.seed = seed;
      const auto result = decant::generate(model, prompt, chain, options);
      std::size_t longest = 0;
      for (std::size_t n = 0; n <= result.tokens.size(); ++n) {
        const tokens part(result.tokens.begin(), result.tokens.begin() + static_cast<std::ptrdiff_t>(n));
        for (const auto& [id, length] : longest_repeats(part, std::vector<bool>(n))) {
          if (n < result.tokens.size() && id == result.tokens[n]) longest = std::max(longest, length);
        }
      }
      return longest;
    };
    CHECK(repeats(dry({.multiplier = 50}) | decant::greedy{}) <= 2);
    CHECK(repeats(dry({.multiplier = 0}) | decant::greedy{}) > 20);
  }
}

template <class Options>
void check_refused(const Options& options, const std::string& parameter, const std::string& expected) {
  CHECK(complaint([&] { return dry(options); }) == expected);
  const auto made = dry::make(options);
  REQUIRE(!made.has_value());
  CHECK(made.error().code == decant::error_code::bad_parameter);
  CHECK(made.error().where == "dry." + parameter);
  CHECK(made.error().message == expected);
}

TEST_CASE("DRY refuses a multiplier below 0 and a base below 1, and what is no number", "[processors]") {
  for (const double bad : {not_a_number, infinity, -infinity, -1.0, -denormal}) {
    check_refused(dry_options{.multiplier = bad}, "multiplier",
                  "dry: multiplier = " + decant::detail::number_text(bad) + " must be a finite number >= 0");
  }
  for (const double bad : {not_a_number, infinity, -infinity, -2.0, 0.0, 0.999999}) {
    check_refused(dry_options{.base = bad}, "base",
                  "dry: base = " + decant::detail::number_text(bad) + " must be a finite number >= 1");
  }
  for (const double good : {0.0, denormal, 0.8, 5.0, largest})
    CHECK(dry::make(dry_options{.multiplier = good}).has_value());
  for (const double good : {1.0, 1.0 + 1e-16, 1.75, largest}) CHECK(dry::make(dry_options{.base = good}).has_value());
  CHECK(dry::make(dry_options{}, sequence_breakers({"a"}, bytes_as_tokens())).has_value());
}

TEST_CASE("DRY says what it is", "[processors]") {
  CHECK(dry({}).describe() == "dry(0.8, 1.75, 2)");
  CHECK(dry({.multiplier = 1, .base = 2, .allowed_length = 3, .range = 64, .penalise_breakers = true},
            {sequence_breakers::usual(), bytes_as_tokens()})
            .describe() == "dry(1, 2, 3, range = 64, breakers = 4, penalise_breakers = true)");
}

TEST_CASE("a text with an id outside the vocabulary is misuse of DRY where it is penalised", "[processors]") {
  CHECK_THROWS_AS(logits_after(dry({}), golden, {{6, 6, 6, 6}}), assertion_error);
}

TEST_CASE("DRY on all sizes and on bad rows", "[processors]") {
  const sequence_breakers breakers({"\x05\x01\x08", "\x02"}, bytes_as_tokens());
  for (const double multiplier : {0.0, 0.8}) {
    check_sizes(dry({.multiplier = multiplier, .allowed_length = 1}));
    check_bad_rows(dry({.multiplier = multiplier, .allowed_length = 1}));
    check_sizes(dry({.multiplier = multiplier, .allowed_length = 1}, breakers));
  }
}

TEST_CASE("DRY passes check_processor", "[processors]") {
  const decant::testing::check_options options{.shift_invariant = true, .allocations = decant::testing::allocations};
  // Penalties on the grid of the rows, so that the shift is exact.
  check_report_of(dry({.multiplier = 0.5, .base = 2}), options);
  check_report_of(dry({.multiplier = 0.5, .base = 2, .allowed_length = 0}), options);
  check_report_of(dry({.multiplier = 0}), options);
  check_report_of(dry({.multiplier = 0.5, .base = 2}, {{"\x04"}, bytes_as_tokens()}),
                  {.permutation = false, .shift_invariant = true, .allocations = decant::testing::allocations});
}

}  // namespace dry_tests
