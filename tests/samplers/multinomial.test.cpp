// SPDX-License-Identifier: MIT
#include <decant/samplers/multinomial.hpp>

#include "processors/policies.hpp"

#include <set>

#include <decant/chain.hpp>
#include <decant/processors.hpp>
#include <decant/testing/chi_square.hpp>
#include <decant/testing/markov_model.hpp>

namespace multinomial_tests {

using namespace policies;
using decant::chain;
using decant::multinomial;
using decant::testing::chi_square;

static_assert(decant::LawSampler<multinomial>);

const auto nothing = [](candidates&, const step_context&) {};

token_id pick(const row& logits, std::uint64_t seed) {
  candidates c;
  c.bind(std::span<const float>(logits));
  return multinomial{}(c, context_after({}, 0, draw_stream(seed)));
}

std::vector<std::size_t> counts_of(const row& logits, std::size_t draws) {
  std::vector<std::size_t> counts(logits.size());
  candidates c;
  for (std::uint64_t seed = 0; seed < draws; ++seed) {
    c.bind(std::span<const float>(logits));
    ++counts[static_cast<std::size_t>(multinomial{}(c, context_after({}, 0, draw_stream(seed))))];
  }
  return counts;
}

TEST_CASE("multinomial draws the golden law, by enumeration", "[samplers]") {
  const law expected{0.560893422, 0.206341159, 0.125152239, 0.075908670, 0.027925239, 0.003779270};
  CHECK(difference(enumerated_law(nothing, golden), expected) < of_float);
  CHECK(difference(enumerated_law(nothing, golden), law_after(nothing, golden)) < 1e-14);
}

TEST_CASE("multinomial draws softmax, by enumeration", "[samplers]") {
  for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{63}, std::size_t{64}, std::size_t{65},
                                 std::size_t{200}, std::size_t{4200}}) {
    row logits = random_row(size, size);
    if (size > 3) logits[2] = gone;
    CHECK(difference(enumerated_law(nothing, logits), reference::exact_law(logits)) < of_float);
  }
}

TEST_CASE("the law of a chain is that of its steps in order, by enumeration", "[samplers]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const row logits = random_row(40, seed);
    const past before = some_past(40);
    const auto z = reference::repetition_penalty(reference::widened(logits), before.text, 1.3);
    const auto output = std::span<const token_id>(before.text).subspan(before.prompt);
    const auto penalised = reference::no_repeat_ngram(reference::count_penalty(z, output, 0.2, 0.4), before.text, 2);
    const law hf = reference::exact_law(
        reference::min_p(reference::top_p(reference::top_k(reference::temperature(penalised, 0.8), 20), 0.95), 0.05));
    const auto hf_chain = chain(decant::repetition_penalty(1.3), decant::frequency_penalty(0.2),
                                decant::presence_penalty(0.4), decant::no_repeat_ngram(2), decant::temperature(0.8),
                                decant::top_k(20), decant::top_p(0.95), decant::min_p(0.05));
    CHECK(difference(enumerated_law(hf_chain, logits, before), hf) < of_float);
    const law last = reference::exact_law(
        reference::temperature(reference::min_p(reference::top_p(reference::top_k(penalised, 20), 0.95), 0.05), 0.8));
    const auto temperature_last = chain(decant::repetition_penalty(1.3), decant::frequency_penalty(0.2),
                                        decant::presence_penalty(0.4), decant::no_repeat_ngram(2), decant::top_k(20),
                                        decant::top_p(0.95), decant::min_p(0.05), decant::temperature(0.8));
    CHECK(difference(enumerated_law(temperature_last, logits, before), last) < of_float);
  }
}

TEST_CASE("real draws follow the law, over seeds, positions and sequences", "[samplers]") {
  for (const std::size_t size : {std::size_t{2}, std::size_t{6}, std::size_t{100}, std::size_t{300}}) {
    const row logits = random_row(size, 40 + size);
    const law expected = reference::exact_law(logits);
    CHECK(chi_square(counts_of(logits, 20'000), expected).p_value > 1e-4);
    std::vector<std::size_t> positions(size), sequences(size);
    candidates c;
    for (std::size_t i = 0; i < 20'000; ++i) {
      c.bind(std::span<const float>(logits));
      ++positions[static_cast<std::size_t>(c.draw(draw_stream(5).at(i)))];
      c.bind(std::span<const float>(logits));
      ++sequences[static_cast<std::size_t>(c.draw(draw_stream(5, i)))];
    }
    CHECK(chi_square(positions, expected).p_value > 1e-4);
    CHECK(chi_square(sequences, expected).p_value > 1e-4);
  }
}

TEST_CASE("real draws follow the law where they are drawn by rejection, and where a bound is left", "[samplers]") {
  for (const std::size_t narrowed : {std::size_t{0}, std::size_t{4500}, std::size_t{3000}}) {
    const row logits = random_row(5000, 77);
    const auto k = static_cast<std::int64_t>(narrowed);
    const law expected = narrowed == 0 ? reference::exact_law(logits)
                                       : reference::exact_law(reference::top_k(reference::widened(logits), narrowed));
    std::vector<std::size_t> counts(logits.size());
    candidates c;
    const decant::top_k cut(k);
    for (std::uint64_t seed = 0; seed < 800; ++seed) {
      c.bind(std::span<const float>(logits));
      const step_context context = context_after({}, 0, draw_stream(seed));
      cut(c, context);
      ++counts[static_cast<std::size_t>(multinomial{}(c, context))];
    }
    CHECK(chi_square(counts, expected).p_value > 1e-4);
  }
}

TEST_CASE("many more real draws follow the law", "[samplers][long]") {
  for (const std::size_t size : {std::size_t{6}, std::size_t{300}, std::size_t{5000}}) {
    const row logits = random_row(size, 90 + size);
    CHECK(chi_square(counts_of(logits, size > 1000 ? 60'000 : 400'000), reference::exact_law(logits)).p_value > 1e-4);
  }
}

TEST_CASE("equal large logits are uniform (ollama PR9631, tensorflow#2774)", "[samplers]") {
  for (const float level : {1000.0F, -1000.0F, 3e38F, -3e38F}) {
    const row logits(7, level);
    CHECK(difference(enumerated_law(nothing, logits), law(7, 1.0 / 7)) < 1e-12);
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const token_id token = pick(logits, seed);
      CHECK(token >= 0);
      CHECK(token < 7);
    }
  }
}

TEST_CASE("logits far from 0 give the law of shifted ones (MNN: a maximum that starts at FLT_MIN)", "[samplers]") {
  row low = golden;
  for (float& z : low) z -= 256;
  CHECK(difference(enumerated_law(nothing, low), reference::exact_law(golden)) < of_float);
}

TEST_CASE("a token of probability 0 is never drawn, one of 10^-30 hardly", "[samplers]") {
  const row logits{0, gone, -70, gone, 0};
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    const token_id token = pick(logits, seed);
    CHECK((token == 0 || token == 4));
  }
  CHECK(law_after(nothing, logits)[2] > 0);
}

TEST_CASE("a one-hot row gives its token whatever the number (FlashInfer#384)", "[samplers]") {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) CHECK(pick(logs({0, 1, 0}), seed) == 1);
}

TEST_CASE("the same flat row draws anew at each position, and each alone can be repeated (TensorRT-Edge-LLM#211)",
          "[samplers]") {
  const row logits(50, 0.0F);
  candidates c;
  const auto at = [&](std::size_t position) {
    c.bind(std::span<const float>(logits));
    return c.draw(draw_stream(42).at(position));
  };
  tokens all;
  std::vector<std::size_t> counts(50);
  for (std::size_t t = 0; t < 1000; ++t) {
    all.push_back(at(t));
    ++counts[static_cast<std::size_t>(all.back())];
  }
  CHECK(chi_square(counts, law(50, 0.02)).p_value > 1e-4);
  CHECK(at(777) == all[777]);
  CHECK(at(3) == all[3]);
}

TEST_CASE("a coin is fair over positions, and seeds name it (ctransformers: a generator rebuilt per token)",
          "[samplers]") {
  std::size_t heads = 0;
  const row coin(2, 0.0F);
  candidates c;
  for (std::size_t t = 0; t < 1000; ++t) {
    c.bind(std::span<const float>(coin));
    heads += c.draw(draw_stream(1).at(t)) == 0;
  }
  CHECK(std::abs(decant::testing::z_score(heads, 1000, 0.5)) < 4);
  for (std::uint64_t seed = 0; seed < 50; ++seed) CHECK(pick(golden, seed) == pick(golden, seed));
}

TEST_CASE("sequences of one seed differ (TRT-LLM#19487)", "[samplers]") {
  const row logits(40, 0.0F);
  std::set<tokens> seen;
  candidates c;
  for (std::uint64_t sequence = 0; sequence < 50; ++sequence) {
    tokens text;
    for (std::size_t t = 0; t < 16; ++t) {
      c.bind(std::span<const float>(logits));
      text.push_back(c.draw(draw_stream(9, sequence).at(t)));
    }
    CHECK(seen.insert(text).second);
  }
}

TEST_CASE("a row draws the same alone and between others (vllm#51226, TGI#326)", "[samplers]") {
  const row a = random_row(300, 1), b = random_row(5000, 2), d = random_row(7, 3);
  candidates shared;
  const auto draw = [](candidates& c, const row& logits, std::uint64_t seed) {
    c.bind(std::span<const float>(logits));
    return c.draw(draw_stream(seed).at(3));
  };
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const token_id alone = pick(a, seed);
    static_cast<void>(alone);
    candidates fresh;
    const token_id expected = draw(fresh, a, seed);
    static_cast<void>(draw(shared, b, seed));
    CHECK(draw(shared, a, seed) == expected);
    static_cast<void>(draw(shared, d, seed + 1));
    CHECK(draw(shared, a, seed) == expected);
  }
}

TEST_CASE("multinomial gives no token on a bad row", "[samplers]") {
  CHECK(pick(row(5, gone), 1) == no_token);
  for (std::size_t place = 0; place < 5; ++place) {
    for (const float bad : {nan_float, infinite_float}) {
      row logits{1, 2, 3, 4, 5};
      logits[place] = bad;
      CHECK(pick(logits, place) == no_token);
    }
  }
}

TEST_CASE("multinomial takes the one token that is left", "[samplers]") {
  for (std::size_t place = 0; place < 70; ++place) {
    row logits(70, gone);
    logits[place] = -1e30F;
    CHECK(pick(logits, place) == static_cast<token_id>(place));
  }
}

TEST_CASE("multinomial on every size of vocabulary", "[samplers]") {
  check_sizes(nothing);
  check_bad_rows(nothing);
}

TEST_CASE("multinomial passes check_sampler", "[samplers]") {
  const auto report = decant::testing::check_sampler(
      multinomial{}, {.shift_invariant = true, .discrete = true, .allocations = decant::testing::allocations});
  INFO(report.text());
  CHECK(report.ok);
  CHECK(multinomial{}.describe() == "multinomial");
}

}  // namespace multinomial_tests
