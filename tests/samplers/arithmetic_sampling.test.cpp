// SPDX-License-Identifier: MIT
#include <decant/samplers/arithmetic_sampling.hpp>

#include "processors/policies.hpp"
#include "samplers/noisy_rows.hpp"

#include <map>
#include <set>

#include <decant/chain.hpp>
#include <decant/generate.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/testing/chi_square.hpp>
#include <decant/testing/markov_model.hpp>

namespace arithmetic_sampling_tests {

using namespace policies;
using decant::arithmetic_sampling;
using decant::purpose;
using decant::testing::chi_square;
using decant::testing::markov_model;
using decant::testing::random_markov_model;

static_assert(decant::Sampler<arithmetic_sampling>);
static_assert(decant::Stateful<arithmetic_sampling>);
static_assert(!decant::LawSampler<arithmetic_sampling>);

token_id pick(arithmetic_sampling policy, const row& logits, std::uint64_t seed = 1) {
  candidates c;
  c.bind(std::span<const float>(logits));
  return policy(c, context_after({}, 0, draw_stream(seed)));
}

/// A sequence of the model, read off by the sampler.
template <class P>
tokens sequence_of(P processor, arithmetic_sampling policy, const markov_model& model, std::size_t length,
                   const draw_stream& draws = draw_stream(1)) {
  auto decoding = processor | std::move(policy);
  tokens text;
  while (text.size() < length) text.push_back(decoding.step(model.row_after(text), context_after(text, 0, draws)));
  return text;
}

tokens sequence_of(arithmetic_sampling policy, const markov_model& model, std::size_t length,
                   const draw_stream& draws = draw_stream(1)) {
  return sequence_of(decant::temperature(1), std::move(policy), model, length, draws);
}

double probability_of(const tokens& text, const markov_model& model, double t = 1) {
  double p = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto logits = model.row_after(std::span(text).first(i));
    p *= reference::exact_law(reference::temperature(reference::widened(logits), t))[static_cast<std::size_t>(text[i])];
  }
  return p;
}

/// Every sequence and the length of the interval of codes that lead to it, in the order of the codes: each border is
/// found by bisection down to neighbouring codes.
template <class F>
std::vector<std::pair<tokens, double>> intervals(F sequence) {
  std::vector<std::pair<tokens, double>> out;
  constexpr double step = 0x1p-52;
  double from = 0;
  while (from < 1) {
    const tokens here = sequence(from);
    double inside = from, outside = 1;
    while (outside - inside > step) {
      const double middle = std::floor((inside + outside) / 2 / step) * step;
      (sequence(middle) == here ? inside : outside) = middle;
    }
    out.emplace_back(here, outside - from);
    from = outside;
  }
  return out;
}

TEST_CASE("the interval of codes of a sequence is as long as its probability", "[samplers]") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const markov_model model = random_markov_model(3, 2, seed, 1, 0.2);
    double sum = 0;
    std::set<tokens> seen;
    const auto found = intervals([&](double code) { return sequence_of(arithmetic_sampling(code), model, 4); });
    for (const auto& [text, length] : found) {
      CHECK(seen.insert(text).second);
      CHECK(length == Approx(probability_of(text, model)).margin(1e-11));
      sum += length;
    }
    CHECK(sum == 1);
    // Nothing of positive probability is missing, and the codes list the sequences in lexicographic order.
    double mass = 0;
    for (const tokens& text : seen) mass += probability_of(text, model);
    CHECK(mass == Approx(1).epsilon(1e-12));
    CHECK(std::is_sorted(found.begin(), found.end()));
  }
}

TEST_CASE("the law that a chain leaves is what the code divides", "[samplers]") {
  const markov_model model = random_markov_model(4, 1, 5);
  for (const auto& [text, length] : intervals(
           [&](double code) { return sequence_of(decant::temperature(1.7), arithmetic_sampling(code), model, 3); })) {
    CHECK(length == Approx(probability_of(text, model, 1.7)).margin(1e-11));
  }
  std::map<token_id, double> cut;
  for (const auto& [text, length] : intervals([&](double code) {
         auto decoding = decant::top_k(2) | arithmetic_sampling(code);
         return tokens{decoding.step(golden, {{}, 0, draw_stream(1)})};
       })) {
    cut[text[0]] += length;
  }
  REQUIRE(cut.size() == 2);
  CHECK(cut[0] == Approx(0.560893422 / (0.560893422 + 0.206341159)).epsilon(1e-8));
}

TEST_CASE("one row of the golden law, by hand", "[samplers]") {
  // Borders at 0.5609, 0.7672, 0.8924, 0.9683, 0.9962.
  CHECK(pick(arithmetic_sampling(0), golden) == 0);
  CHECK(pick(arithmetic_sampling(0.5608), golden) == 0);
  CHECK(pick(arithmetic_sampling(0.5609), golden) == 1);
  CHECK(pick(arithmetic_sampling(0.7672), golden) == 1);
  CHECK(pick(arithmetic_sampling(0.7673), golden) == 2);
  CHECK(pick(arithmetic_sampling(0.9962), golden) == 4);
  CHECK(pick(arithmetic_sampling(0.9963), golden) == 5);
  CHECK(pick(arithmetic_sampling(std::nextafter(1.0, 0.0)), golden) == 5);
  arithmetic_sampling policy(0.7);
  candidates c;
  c.bind(std::span<const float>(golden));
  CHECK(policy(c, {{}, 0, draw_stream(1)}) == 1);
  CHECK(policy.code() == Approx(0.7));
  policy.accept(1, {});
  CHECK(policy.code() == Approx((0.7 - 0.560893422) / 0.206341159).epsilon(1e-7));
}

TEST_CASE("sequences ascend with the code", "[samplers]") {
  const markov_model model = random_markov_model(3, 1, 8);
  tokens before;
  for (int i = 0; i < 2000; ++i) {
    const tokens text = sequence_of(arithmetic_sampling(i / 2000.0), model, 7);
    CHECK(before <= text);
    before = text;
  }
}

TEST_CASE("of n samples on the lattice, floor or ceil of n p are a given sequence", "[samplers]") {
  const markov_model model = random_markov_model(3, 1, 4);
  for (const std::size_t n : {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{64}, std::size_t{300}}) {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const double shift = draw_stream(seed).uniform(purpose::code);
      std::map<tokens, std::size_t> counts;
      for (std::size_t i = 0; i < n; ++i) {
        ++counts[sequence_of(arithmetic_sampling(shift, i, n), model, 3, draw_stream(seed, i))];
      }
      for (token_id a = 0; a < 3; ++a) {
        for (token_id b = 0; b < 3; ++b) {
          for (token_id c = 0; c < 3; ++c) {
            const double expected = static_cast<double>(n) * probability_of({a, b, c}, model);
            const auto count = static_cast<double>(counts[{a, b, c}]);
            CHECK(count >= std::floor(expected - 1e-9));
            CHECK(count <= std::ceil(expected + 1e-9));
          }
        }
      }
    }
  }
}

TEST_CASE("codes of the lattice are evenly spread and wrap around", "[samplers]") {
  CHECK(arithmetic_sampling(0.25).code() == 0.25);
  CHECK(arithmetic_sampling(0.25, 1, 4).code() == 0.5);
  CHECK(arithmetic_sampling(0.25, 3, 4).code() == 0);
  CHECK(arithmetic_sampling(0.75, 3, 4).code() == 0.5);
  CHECK(arithmetic_sampling(std::nextafter(1.0, 0.0), 0, 4).code() < 1);
  for (std::size_t n = 1; n < 50; ++n) {
    for (std::size_t i = 0; i < n; ++i) {
      const double code = arithmetic_sampling(std::nextafter(1.0, 0.0), i, n).code();
      CHECK((code >= 0 && code < 1));
    }
  }
}

TEST_CASE("one sample with a random shift is ordinary sampling, over seeds", "[samplers]") {
  const markov_model model = random_markov_model(3, 1, 6);
  for (const std::size_t sample : {std::size_t{0}, std::size_t{3}}) {
    std::vector<std::size_t> counts(27);
    law expected(27);
    for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
      const double shift = draw_stream(seed).uniform(purpose::code);
      const tokens text = sequence_of(arithmetic_sampling(shift, sample, 5), model, 3, draw_stream(seed));
      ++counts[static_cast<std::size_t>(text[0] * 9 + text[1] * 3 + text[2])];
    }
    for (token_id i = 0; i < 27; ++i) {
      expected[static_cast<std::size_t>(i)] = probability_of({i / 9, i / 3 % 3, i % 3}, model);
    }
    CHECK(chi_square(counts, expected).p_value > 1e-4);
  }
}

TEST_CASE("the bits of the code decide as long as it has any, then fresh ones do", "[samplers]") {
  const markov_model coin(2, 0, {0, 0});
  const std::uint64_t bits = 0x9A5C3E1B7F206ULL;  // 52 of them
  const double code = static_cast<double>(bits) * 0x1p-52;
  std::set<tokens> endings;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const tokens text = sequence_of(arithmetic_sampling(code), coin, 72, draw_stream(seed));
    for (std::size_t i = 0; i < 52; ++i) CHECK(text[i] == static_cast<token_id>(bits >> (51 - i) & 1));
    endings.insert(tokens(text.begin() + 52, text.end()));
  }
  CHECK(endings.size() == 40);
}

TEST_CASE("the law holds long after the bits of the first code are used up", "[samplers]") {
  const markov_model model = random_markov_model(3, 1, 11);
  std::vector<std::size_t> counts(9);
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    const double shift = draw_stream(seed).uniform(purpose::code);
    const tokens text = sequence_of(arithmetic_sampling(shift), model, 82, draw_stream(seed));
    ++counts[static_cast<std::size_t>(text[80] * 3 + text[81])];
  }
  law at = reference::exact_law(model.row_after({}));
  for (int step = 1; step <= 80; ++step) {
    law next(3);
    for (token_id a = 0; a < 3; ++a) {
      const law p = reference::exact_law(model.row_after(std::span<const token_id>(&a, 1)));
      for (std::size_t b = 0; b < 3; ++b) next[b] += at[static_cast<std::size_t>(a)] * p[b];
    }
    at = next;
  }
  law pairs;
  for (token_id a = 0; a < 3; ++a) {
    for (const double p : reference::exact_law(model.row_after(std::span<const token_id>(&a, 1)))) {
      pairs.push_back(at[static_cast<std::size_t>(a)] * p);
    }
  }
  CHECK(chi_square(counts, pairs).p_value > 1e-4);
  // Fair coins one after another, over one long text: no pattern where the bits are renewed.
  const markov_model coin(2, 0, {0, 0});
  const tokens text = sequence_of(arithmetic_sampling(0.3), coin, 8000, draw_stream(2));
  std::vector<std::size_t> fours(16);
  for (std::size_t i = 0; i + 4 <= text.size(); i += 4) {
    ++fours[static_cast<std::size_t>(text[i] * 8 + text[i + 1] * 4 + text[i + 2] * 2 + text[i + 3])];
  }
  CHECK(chi_square(fours, law(16, 1)).p_value > 1e-4);
}

TEST_CASE("a very improbable token leaves a code that is new", "[samplers]") {
  // Token 1 has probability 10^-15: a handful of codes.
  const row logits{34.5, 0};
  candidates c;
  std::set<double> codes;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    arithmetic_sampling policy(std::nextafter(1.0, 0.0));
    c.bind(std::span<const float>(logits));
    CHECK(policy(c, {{}, 0, draw_stream(seed)}) == 1);
    policy.accept(1, {});
    CHECK((policy.code() >= 0 && policy.code() < 1));
    codes.insert(policy.code());
  }
  CHECK(codes.size() == 50);
  CHECK(*codes.rbegin() - *codes.begin() > 0.1);
}

TEST_CASE("rollback brings back the code exactly, and what had been picked", "[samplers]") {
  const markov_model model = random_markov_model(5, 1, 3);
  arithmetic_sampling policy(0.637);
  candidates c;
  tokens text;
  std::vector<arithmetic_sampling> stages{policy};
  const auto step = [&](arithmetic_sampling& of, tokens& so_far) {
    c.bind(model.row_after(so_far));
    const token_id token = of(c, context_after(so_far, 0, draw_stream(9)));
    so_far.push_back(token);
    return token;
  };
  for (int i = 0; i < 40; ++i) {
    const token_id token = step(policy, text);
    // Every fifth token is forced: another one than the code picked.
    if (i % 5 == 4) text.back() = (token + 1) % 5;
    policy.accept(text.back(), {});
    stages.push_back(policy);
  }
  for (std::size_t back = 1; back <= 40; ++back) {
    arithmetic_sampling undone = policy;
    undone.rollback(back);
    CHECK(undone.code() == stages[40 - back].code());
    tokens again(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(40 - back));
    // Accepting the same token again needs no new call.
    arithmetic_sampling repeated = undone;
    repeated.accept(text[40 - back], {});
    CHECK(repeated.code() == stages[41 - back].code());
    if (back >= 5 && (40 - back) % 5 == 0) {
      for (int i = 0; i < 4; ++i) {
        const token_id token = step(undone, again);
        undone.accept(token, {});
        CHECK(token == text[again.size() - 1]);
        CHECK(undone.code() == stages[again.size()].code());
      }
    }
    undone.reset();
    CHECK(undone.code() == 0.637 - std::fmod(0.637, 0x1p-52));
  }
  CHECK_THROWS_AS(policy.rollback(41), assertion_error);
}

TEST_CASE("a token that the code did not pick leaves the code alone", "[samplers]") {
  arithmetic_sampling policy(0.25);
  policy.accept(3, {});  // before any call
  CHECK(policy.code() == 0.25);
  candidates c;
  c.bind(std::span<const float>(golden));
  CHECK(policy(c, {{}, 0, draw_stream(1)}) == 0);
  policy.accept(3, {});
  CHECK(policy.code() == 0.25);
  policy.accept(0, {});  // the pick was that of an earlier step
  CHECK(policy.code() == 0.25);
  policy.rollback(3);
  CHECK(policy.code() == 0.25);
}

TEST_CASE("a copy of arithmetic_sampling is a fork, also between call and accept", "[samplers]") {
  arithmetic_sampling policy(0.7);
  candidates c;
  c.bind(std::span<const float>(golden));
  CHECK(policy(c, {{}, 0, draw_stream(1)}) == 1);
  arithmetic_sampling fork = policy;
  fork.accept(1, {});
  CHECK(policy.code() == Approx(0.7));
  policy.accept(1, {});
  CHECK(fork.code() == policy.code());
}

TEST_CASE("gone tokens have no part of the code, and a bad row gives no token", "[samplers]") {
  for (int i = 0; i < 100; ++i) {
    const token_id token = pick(arithmetic_sampling(i / 100.0), {gone, 1, gone, 1, gone});
    CHECK(token == (i < 50 ? 1 : 3));
  }
  CHECK(pick(arithmetic_sampling(0), {gone, 1, gone}) == 1);
  CHECK(pick(arithmetic_sampling(0.999), {gone, 1, gone}) == 1);
  // A weight that underflows is never taken, not even at the ends.
  CHECK(pick(arithmetic_sampling(0), {-1e6F, 0, -1e6F}) == 1);
  CHECK(pick(arithmetic_sampling(std::nextafter(1.0, 0.0)), {-1e6F, 0, -1e6F}) == 1);
  for (const double code : {0.0, 0.5, 0.999}) {
    CHECK(pick(arithmetic_sampling(code), row(5, gone)) == no_token);
    CHECK(pick(arithmetic_sampling(code), {1, nan_float, 0}) == no_token);
    CHECK(pick(arithmetic_sampling(code), {1, infinite_float, 0}) == no_token);
  }
  arithmetic_sampling policy(0.3);
  candidates c;
  const row bad(4, gone);
  c.bind(std::span<const float>(bad));
  CHECK(policy(c, {{}, 0, draw_stream(1)}) == no_token);
  policy.accept(no_token, {});
  CHECK(policy.code() == Approx(0.3));
}

TEST_CASE("arithmetic_sampling runs in a generation, whose samples are spread", "[samplers]") {
  markov_model model = random_markov_model(4, 1, 2);
  const double shift = draw_stream(77).uniform(purpose::code);
  std::vector<tokens> texts;
  const token_id prompt[] = {0};
  for (std::size_t i = 0; i < 20; ++i) {
    model.truncate(0);
    texts.push_back(decant::generate(model, prompt, decant::top_k(0) | arithmetic_sampling(shift, i, 20),
                                     {.max_new_tokens = 12, .seed = 77, .sequence = i})
                        .tokens);
  }
  const law p = reference::exact_law(model.row_after(prompt));
  for (token_id first = 0; first < 4; ++first) {
    const auto count = std::count_if(texts.begin(), texts.end(), [&](const tokens& text) { return text[0] == first; });
    CHECK(std::abs(static_cast<double>(count) - 20 * p[static_cast<std::size_t>(first)]) < 1);
  }
}

TEST_CASE("arithmetic_sampling refuses bad parameters", "[samplers]") {
  for (const double bad : {not_a_number, -infinity, infinity, -denormal, -1.0, 1.0, 2.0}) {
    check_rejects<arithmetic_sampling>(bad, "arithmetic_sampling", "shift", "must lie in [0, 1)");
  }
  for (const double good : {0.0, -0.0, denormal, 0.5, std::nextafter(1.0, 0.0)})
    check_accepts<arithmetic_sampling>(good);
  CHECK(complaint([] { return arithmetic_sampling(0.5, 3, 3); }) ==
        "arithmetic_sampling: sample = 3 must be below count");
  CHECK(complaint([] { return arithmetic_sampling(0.5, 0, 0); }) ==
        "arithmetic_sampling: sample = 0 must be below count");
  const auto made = arithmetic_sampling::make(0.5, std::size_t{4}, std::size_t{3});
  REQUIRE(!made.has_value());
  CHECK(made.error().where == "arithmetic_sampling.sample");
  CHECK(arithmetic_sampling::make(0.5, std::size_t{2}, std::size_t{3}).has_value());
  CHECK(arithmetic_sampling(0.5, 2, 3).describe() == "arithmetic_sampling(0.5, 2, 3)");
}

TEST_CASE("arithmetic_sampling on every size of vocabulary", "[samplers]") {
  std::vector<std::size_t> sizes{32'001, 151'937};
  for (std::size_t size = 1; size <= 70; ++size) sizes.push_back(size);
  for (const std::size_t size : sizes) {
    for (const double code : {0.0, 0.37, std::nextafter(1.0, 0.0)}) {
      const token_id token = pick(arithmetic_sampling(code), random_row(size, size));
      CHECK(token >= 0);
      CHECK(static_cast<std::size_t>(token) < size);
    }
  }
}

TEST_CASE("the token is the one at which a sum over the whole row goes beyond the code, and so is its share",
          "[samplers]") {
  noisy_rows::each([](candidates& row, std::uint64_t seed) {
    for (const double shift : {0.0, 0.3, 0.999, 1 - 0x1p-52, 0.618 * static_cast<double>(seed % 3) / 3}) {
      arithmetic_sampling policy(shift);
      const double code = policy.code();
      double total = 0, sum = 0, before = 0;
      row.visit_below_max([&](token_id, double below) { total += decant::math::exp(below); });
      token_id wanted = no_token;
      row.visit_below_max([&](token_id id, double below) {
        if (wanted != no_token && code * total < sum) return;
        const double weight = decant::math::exp(below);
        if (weight > 0) {
          wanted = id;
          before = sum;
          sum += weight;
        }
      });
      const token_id picked = policy(row, context_after({}, 0, draw_stream(seed)));
      REQUIRE(picked == wanted);
      const double length = sum - before;
      if (length < 0.01 * total) continue;  // else the code is given new bits
      policy.accept(picked, {});
      CHECK(std::abs(policy.code() - std::clamp((code * total - before) / length, 0.0, 1.0)) < 1e-9);
    }
  });
}

TEST_CASE("arithmetic_sampling passes check_sampler", "[samplers]") {
  for (const double code : {0.0, 0.37, 0.999}) {
    // The order of the ids is part of what a code means, and the law lies in the codes and not in the seeds.
    const auto report = decant::testing::check_sampler(
        arithmetic_sampling(code),
        {.permutation = false, .shift_invariant = true, .allocations = decant::testing::allocations});
    INFO("code " << code);
    INFO(report.text());
    CHECK(report.ok);
  }
}

}  // namespace arithmetic_sampling_tests
