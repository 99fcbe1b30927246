// SPDX-License-Identifier: MIT
#include <decant/samplers/gumbel_watermark.hpp>

#include "processors/policies.hpp"
#include "processors/written_texts.hpp"
#include "samplers/noisy_rows.hpp"

#include <decant/chain.hpp>
#include <decant/processors.hpp>
#include <decant/testing/chi_square.hpp>

namespace gumbel_watermark_tests {

using namespace policies;
using decant::gumbel_watermark;
using decant::gumbel_watermark_options;
using decant::testing::chi_square;

static_assert(decant::Sampler<gumbel_watermark>);
static_assert(!decant::LawSampler<gumbel_watermark>);

const auto nothing = [](candidates&, const step_context&) {};
const tokens five{1, 2, 3, 4, 5};

template <class P>
token_id pick(P policy, const gumbel_watermark_options& options, const row& logits, const past& before,
              std::uint64_t seed = 1) {
  candidates c;
  c.bind(std::span<const float>(logits));
  const step_context context = context_after(before.text, before.prompt, draw_stream(seed));
  policy(c, context);
  return gumbel_watermark(options)(c, context);
}

token_id pick(const gumbel_watermark_options& options, const row& logits, const past& before, std::uint64_t seed = 1) {
  return pick(nothing, options, logits, before, seed);
}

template <class P>
std::vector<std::size_t> counts_over_keys(P policy, const row& logits, std::size_t keys) {
  std::vector<std::size_t> counts(logits.size());
  for (std::uint64_t key = 0; key < keys; ++key) {
    ++counts[static_cast<std::size_t>(pick(policy, {.key = key}, logits, {five, 0}))];
  }
  return counts;
}

TEST_CASE("over keys, a Gumbel watermark draws softmax", "[samplers]") {
  CHECK(chi_square(counts_over_keys(nothing, golden, 20'000), reference::exact_law(golden)).p_value > 1e-4);
  for (const std::size_t size : {std::size_t{2}, std::size_t{30}, std::size_t{70}}) {
    row logits = random_row(size, size);
    if (size > 5) logits[4] = gone;
    CHECK(chi_square(counts_over_keys(nothing, logits, 20'000), reference::exact_law(logits)).p_value > 1e-4);
  }
}

TEST_CASE("over many more keys, a Gumbel watermark draws softmax", "[samplers][long]") {
  CHECK(chi_square(counts_over_keys(nothing, golden, 400'000), reference::exact_law(golden)).p_value > 1e-4);
}

TEST_CASE("over keys, a Gumbel watermark draws the law of a chain", "[samplers]") {
  const auto z = reference::widened(golden);
  CHECK(chi_square(counts_over_keys(decant::temperature(0.7), golden, 20'000),
                   reference::exact_law(reference::temperature(z, 0.7)))
            .p_value > 1e-4);
  CHECK(chi_square(counts_over_keys(decant::top_p(0.9), golden, 20'000), reference::exact_law(reference::top_p(z, 0.9)))
            .p_value > 1e-4);
}

TEST_CASE("over contexts of one key, too, a Gumbel watermark draws softmax", "[samplers]") {
  std::vector<std::size_t> counts(golden.size());
  for (token_id token = 0; token < 20'000; ++token) {
    ++counts[static_cast<std::size_t>(pick({.key = 9}, golden, {{token, 7, 8, 9}, 0}))];
  }
  CHECK(chi_square(counts, reference::exact_law(golden)).p_value > 1e-4);
}

TEST_CASE("given key, context and row, the token is the largest u^(1/p), whatever the seed", "[samplers]") {
  for (std::uint64_t key = 0; key < 200; ++key) {
    const row logits = random_row(40, key);
    const law p = reference::exact_law(logits);
    const gumbel_watermark mark({.key = key, .context_width = 2});
    std::size_t best = 0;
    law score;
    for (std::size_t i = 0; i < p.size(); ++i) {
      score.push_back(std::log(mark.number(five, static_cast<token_id>(i))) / p[i]);
      if (score[i] > score[best]) best = i;
    }
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      CHECK(pick({.key = key, .context_width = 2}, logits, {five, 0}, seed) == static_cast<token_id>(best));
      CHECK(pick({.key = key, .context_width = 2}, logits, {{9, 4, 5}, 0}, seed) == static_cast<token_id>(best));
    }
  }
}

TEST_CASE("short texts, and repeated contexts on demand, are drawn plainly", "[samplers]") {
  const row logits(30, 0.0F);
  const auto depends_on_seed = [&](const gumbel_watermark_options& options, const past& before) {
    const token_id first = pick(options, logits, before, 0);
    for (std::uint64_t seed = 1; seed < 20; ++seed) {
      if (pick(options, logits, before, seed) != first) return true;
    }
    return false;
  };
  CHECK(depends_on_seed({}, {{1, 2, 3}, 0}));
  CHECK_FALSE(depends_on_seed({}, {{1, 2, 3, 4}, 0}));
  const past repeated{{1, 2, 7, 1, 2}, 1};
  CHECK_FALSE(depends_on_seed({.context_width = 2}, repeated));
  CHECK(depends_on_seed({.context_width = 2, .history = 3}, repeated));
  CHECK_FALSE(depends_on_seed({.context_width = 2, .history = 2}, repeated));
  CHECK_FALSE(depends_on_seed({.context_width = 2, .history = 9}, {{1, 2, 7, 1, 2}, 3}));
  // Plain draws are those of multinomial.
  candidates c;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    c.bind(std::span<const float>(logits));
    CHECK(pick({}, logits, {{1}, 0}, seed) == c.draw(draw_stream(seed).at(1)));
  }
}

TEST_CASE("over keys, a text with a history follows the model's law; without one it does not", "[samplers]") {
  const row logits = logs({0.6, 0.4});
  std::vector<std::size_t> with(16), without(16);
  for (std::uint64_t key = 0; key < 20'000; ++key) {
    for (const std::size_t history : {std::size_t{0}, std::size_t{100}}) {
      tokens text{1};
      std::size_t code = 0;
      for (int i = 0; i < 4; ++i) {
        text.push_back(pick({.key = key, .context_width = 1, .history = history}, logits, {text, 1}, key));
        code = 2 * code + static_cast<std::size_t>(text.back());
      }
      ++(history > 0 ? with : without)[code];
    }
  }
  law expected(16, 1);
  for (std::size_t code = 0; code < 16; ++code) {
    for (std::size_t bit = 0; bit < 4; ++bit) expected[code] *= (code >> bit & 1) == 1 ? 0.4 : 0.6;
  }
  CHECK(chi_square(with, expected).p_value > 1e-4);
  CHECK(chi_square(without, expected).p_value < 1e-6);
}

TEST_CASE("over keys, the score of any text is a sum of exponential variables", "[samplers]") {
  const tokens text = written::plain_text(4, 60);
  std::vector<std::size_t> tenths(10);
  for (std::uint64_t key = 0; key < 5000; ++key) {
    const double p = gumbel_watermark({.key = key}).detect(text).p_value;
    ++tenths[std::min<std::size_t>(9, static_cast<std::size_t>(p * 10))];
  }
  CHECK(chi_square(tenths, law(10, 1)).p_value > 1e-4);
}

TEST_CASE("Gumbel-marked text is found, other text is not: 150 tokens", "[samplers]") {
  for (const gumbel_watermark_options& options :
       {gumbel_watermark_options{.key = 5}, gumbel_watermark_options{.key = 6, .context_width = 2, .history = 1000}}) {
    const gumbel_watermark mark(options);
    const auto detect = [&](const tokens& text) { return mark.detect(text, {.prompt_size = written::prompt}); };
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      // Power: every one of these texts at a p-value of 10^-12.
      const tokens text =
          written::text(seed, 150, [&](candidates& c, const step_context& context) { return mark(c, context); });
      CHECK(detect(text).p_value < 1e-12);
      CHECK(detect(text).z > 6);
      CHECK(gumbel_watermark({.key = options.key + 9, .context_width = options.context_width})
                .detect(text, {.prompt_size = written::prompt})
                .p_value > 1e-4);
    }
    // Level: of 200 texts at 1 % two are expected, and more than ten are not seen by chance (p < 10^-5).
    CHECK(written::false_alarms(0.01, detect) <= 10);
    CHECK(written::false_alarms(1e-5, detect) == 0);
  }
}

TEST_CASE("the Gumbel detector adds up -ln(1 - u), each n-gram once unless repeats are asked for", "[samplers]") {
  const gumbel_watermark mark({.key = 3, .context_width = 2});
  const tokens text{1, 2, 3, 1, 2, 3, 1, 2, 4};
  const auto surprise = [&](const tokens& before, token_id token) { return -std::log1p(-mark.number(before, token)); };
  const double once = surprise({1, 2}, 3) + surprise({2, 3}, 1) + surprise({3, 1}, 2) + surprise({1, 2}, 4);
  const auto found = mark.detect(text), each = mark.detect(text, {.count_repeats = true});
  CHECK(found.tokens == 4);
  CHECK(found.score == Approx(once).epsilon(1e-12));
  CHECK(found.z == Approx((once - 4) / 2).epsilon(1e-12));
  CHECK(found.p_value == Approx(decant::testing::gamma_q(4, once)).epsilon(1e-9));
  CHECK(each.tokens == 7);
  CHECK(mark.detect(text, {.prompt_size = 7}).tokens == 2);
  CHECK(mark.detect(tokens{1, 2}) == decant::watermark_evidence{});
  CHECK(mark.detect(tokens{}) == decant::watermark_evidence{});
  CHECK_THROWS_AS(mark.number(tokens{1}, 0), assertion_error);
}

TEST_CASE("Gumbel numbers stay what they are: texts marked once must be readable for ever", "[samplers]") {
  CHECK(gumbel_watermark({.key = 1}).number(tokens{1, 2, 3, 4}, 5) == 0x1.fa2513bb37c36p-2);
}

TEST_CASE("a Gumbel watermark gives no token on a bad row, and the one that is left", "[samplers]") {
  for (const tokens& text : {tokens{}, five}) {
    CHECK(pick({}, row(5, gone), {text, 0}) == no_token);
    for (std::size_t place = 0; place < 5; ++place) {
      for (const float bad : {nan_float, infinite_float}) {
        row logits{1, 2, 3, 4, 5};
        logits[place] = bad;
        CHECK(pick({}, logits, {text, 0}) == no_token);
      }
      row one(5, gone);
      one[place] = -1e30F;
      CHECK(pick({}, one, {text, 0}) == static_cast<token_id>(place));
    }
    CHECK(pick({}, {nan_float}, {text, 0}) == no_token);
  }
}

TEST_CASE("a Gumbel watermark on every size of vocabulary", "[samplers]") {
  std::vector<std::size_t> sizes{32'001, 151'937};
  for (std::size_t size = 1; size <= 70; ++size) sizes.push_back(size);
  for (const std::size_t size : sizes) {
    const token_id token = pick({.key = size}, random_row(size, size), some_past(size));
    CHECK(token >= 0);
    CHECK(static_cast<std::size_t>(token) < size);
  }
}

TEST_CASE("a Gumbel watermark refuses a width of 0", "[samplers]") {
  CHECK(complaint([] { return gumbel_watermark({.context_width = 0}); }) ==
        "gumbel_watermark: context_width = 0 must be at least 1");
  CHECK_FALSE(gumbel_watermark::make(gumbel_watermark_options{.context_width = 0}).has_value());
  CHECK(gumbel_watermark::make().has_value());
}

TEST_CASE("the Gumbel watermark marks the token of the largest sum, without looking at most of them", "[samplers]") {
  noisy_rows::each([](candidates& row, std::uint64_t seed) {
    const gumbel_watermark policy({.key = seed});
    const tokens text{1, 0, 1, 1, 0};
    const auto noise = [&](token_id id) { return -decant::math::log(-decant::math::log(policy.number(text, id))); };
    REQUIRE(policy(row, context_after(text, 0, draw_stream(seed))) == noisy_rows::noisiest(row, noise));
  });
}

TEST_CASE("a Gumbel watermark passes check_sampler", "[samplers]") {
  // Given the key it is not random, so there is no law to check; where the text is too short there is.
  const auto marked = decant::testing::check_sampler(
      gumbel_watermark({.key = 2}),
      {.permutation = false, .shift_invariant = true, .allocations = decant::testing::allocations});
  INFO(marked.text());
  CHECK(marked.ok);
  const auto plain = decant::testing::check_sampler(
      gumbel_watermark({.key = 2, .context_width = 100}),
      {.shift_invariant = true,
       .expected_law =
           [](std::span<const float> logits) {
             return reference::exact_law(std::vector<float>(logits.begin(), logits.end()));
           },
       .allocations = decant::testing::allocations});
  INFO(plain.text());
  CHECK(plain.ok);
  CHECK(gumbel_watermark().describe() == "gumbel_watermark(4)");
  CHECK(gumbel_watermark({.context_width = 2, .history = 50}).describe() == "gumbel_watermark(2, history = 50)");
}

}  // namespace gumbel_watermark_tests
