// SPDX-License-Identifier: MIT
#include <decant/samplers/mirostat_v1.hpp>

#include "processors/policies.hpp"

#include <set>

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>

namespace mirostat_v1_tests {

using namespace policies;
using decant::mirostat_surprise;
using decant::mirostat_v1;
using decant::step_record;
using decant::detail::mirostat_count;
using decant::detail::zipf_exponent;

static_assert(decant::LawSampler<mirostat_v1>);
static_assert(decant::Stateful<mirostat_v1>);

constexpr double ln2 = 0.6931471805599453;
constexpr auto original = mirostat_surprise::original;
constexpr auto llama_cpp = mirostat_surprise::llama_cpp;

auto narrowing(mirostat_v1 policy) {
  return [policy](candidates& c, const step_context& context) { policy.narrow(c, context); };
}

mirostat_v1 fixed(double mu, mirostat_surprise observed, std::size_t m = 100) {
  return mirostat_v1(mu / 2, 0, observed, m);
}

step_record bits(double before, double after) { return {-before * ln2, -after * ln2}; }

token_id pick(mirostat_v1 policy, const row& logits, std::uint64_t seed) {
  candidates c;
  c.bind(std::span<const float>(logits));
  return policy(c, context_after({}, 0, draw_stream(seed)));
}

double exponent_of(const row& logits, std::size_t m = 100) {
  candidates c;
  c.bind(std::span<const float>(logits));
  return zipf_exponent(c.descending(m));
}

row zipf_row(std::size_t size, double s) {
  row out;
  for (std::size_t i = 0; i < size; ++i) out.push_back(static_cast<float>(-s * std::log(static_cast<double>(i + 1))));
  return out;
}

TEST_CASE("mirostat_v1 has the golden numbers of methods.md N", "[samplers]") {
  CHECK(exponent_of(golden) == Approx(2.007657016368).epsilon(1e-9));
  CHECK(mirostat_count(exponent_of(golden), 2, 6) == Approx(2.189691177396).epsilon(1e-9));
}

TEST_CASE("the number of tokens is that of the formula, computed independently", "[samplers]") {
  const struct {
    double s, mu, n, k;
  } cases[] = {{2.00765701636808, 0, 6, 1.097743750079287},
               {2.00765701636808, 3, 6, 3.0926004605211124},
               {2.00765701636808, 4, 6, 4.367820315095566},
               {0.5, 3, 10, 3.42213438426405},
               {1.3, 6, 1000, 10.767253178536425},
               {0.9, 10, 32000, 87.95098913292144},
               {1.000001, 5, 100, 6.948714240044836},
               {3, 10, 50, 12.700902095202292},
               {0.05, 4, 20, 0.273536432251811}};
  for (const auto& c : cases) CHECK(mirostat_count(c.s, c.mu, c.n) == Approx(c.k).epsilon(1e-9));
}

TEST_CASE("on an exactly Zipf row the exponent is found", "[samplers]") {
  for (const double s : {0.3, 0.9, 1.0, 1.7, 4.0}) {
    for (const std::size_t size : {std::size_t{2}, std::size_t{5}, std::size_t{100}, std::size_t{3000}}) {
      CHECK(exponent_of(zipf_row(size, s)) == Approx(s).epsilon(1e-5));
    }
  }
  // In double, without the rounding of the row, from entries that float holds.
  std::vector<decant::entry> exact{{0, 0}, {1, static_cast<float>(-std::log(2.0))}};
  CHECK(zipf_exponent(exact) == Approx(static_cast<double>(-exact[1].logit) / std::log(2.0)).epsilon(1e-14));
}

TEST_CASE("only the m most probable tokens are fitted, or all if there are fewer", "[samplers]") {
  row bent = zipf_row(50, 1.5);
  for (std::size_t i = 10; i < 50; ++i) bent[i] -= 5;
  CHECK(exponent_of(bent, 10) == Approx(1.5).epsilon(1e-5));
  CHECK(exponent_of(bent, 100) > 1.6);
  CHECK(survivors(narrowing(fixed(7, llama_cpp, 10)), bent) != survivors(narrowing(fixed(7, llama_cpp, 100)), bent));
  CHECK(survivors(narrowing(fixed(7, llama_cpp, 50)), bent) == survivors(narrowing(fixed(7, llama_cpp, 100)), bent));
  // Ids in any order, gone ones not counted.
  const row shuffled{bent[2], gone, bent[0], bent[1], gone};
  CHECK(exponent_of(shuffled) == exponent_of({bent[0], bent[1], bent[2]}));
}

TEST_CASE("s = 1 is the limit, and there is no step on the way to it", "[samplers]") {
  for (const double n : {2.0, 100.0, 151936.0}) {
    for (const double mu : {1.0, 3.0}) {
      const double at_one = std::exp2(mu) / std::log(n);
      CHECK(mirostat_count(1, mu, n) == Approx(std::min(at_one, n)).epsilon(1e-12));
      double before = mirostat_count(1 - 1e-3, mu, n);
      for (double s = 1 - 1e-3; s < 1 + 1e-3; s += 1e-5) {
        const double k = mirostat_count(s, mu, n);
        CHECK(k == Approx(before).epsilon(1e-3));
        before = k;
      }
      for (const double off : {1e-15, 1e-12, 1e-9, 1e-7}) {
        CHECK(mirostat_count(1 + off, mu, n) == Approx(mirostat_count(1, mu, n)).epsilon(1e-5));
        CHECK(mirostat_count(1 - off, mu, n) == Approx(mirostat_count(1, mu, n)).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("what the count comes to at the ends of its range", "[samplers]") {
  for (const double s : {0.0, 1e-300, 1e-9, 0.1, 1.0, 3.0, 1e30}) {
    for (const double mu : {-1e200, -40.0, 0.0, 5.0, 2000.0, 1e200}) {
      for (const double n : {2.0, 3.0, 1e6}) {
        const double k = mirostat_count(s, mu, n);
        INFO("s = " << s << ", mu = " << mu << ", n = " << n);
        CHECK(k >= 0);
        CHECK(k <= n * (1 + 1e-12));
      }
    }
  }
  CHECK(mirostat_count(0.8, 1e200, 1000) == 1000);
  CHECK(mirostat_count(0.8, -1e200, 1000) == 0);
}

TEST_CASE("the count grows with mu", "[samplers]") {
  for (const double s : {0.2, 0.7, 1.0, 1.4, 5.0}) {
    double before = 0;
    for (double mu = -5; mu < 30; mu += 0.25) {
      const double k = mirostat_count(s, mu, 5000);
      CHECK(k >= before);
      before = k;
    }
  }
}

TEST_CASE("a flat row is kept whole or to one token, never by accident", "[samplers]") {
  for (const std::size_t size : {std::size_t{2}, std::size_t{8}, std::size_t{9}, std::size_t{1024}}) {
    const row flat(size, -3.0F);
    const double border = std::log2(static_cast<double>(size - 1));
    CHECK(survivors(narrowing(fixed(border + 0.01, llama_cpp)), flat).size() == size);
    CHECK(survivors(narrowing(fixed(border + 0.01, original)), flat).size() == size);
    if (border > 0.01) {
      CHECK(survivors(narrowing(fixed(border - 0.01, llama_cpp)), flat) == tokens{0});
      CHECK(survivors(narrowing(fixed(border - 0.01, original)), flat) == tokens{0});
    }
  }
}

TEST_CASE("the two conventions turn k into a number of tokens differently", "[samplers]") {
  // k is 1.098, 1.550, 2.190, 3.093, 4.368, 8.713 for mu = 0, 1, 2, 3, 4, 6.
  const std::size_t rounded[] = {2, 3, 3, 4, 5, 6}, truncated[] = {1, 1, 2, 3, 4, 6};
  const double mu[] = {0, 1, 2, 3, 4, 6};
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(survivors(narrowing(fixed(mu[i], original)), golden).size() == rounded[i]);
    CHECK(survivors(narrowing(fixed(mu[i], llama_cpp)), golden).size() == truncated[i]);
  }
}

TEST_CASE("mirostat_v1 draws from the k largest, law by enumeration", "[samplers]") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    row logits = random_row(50, seed);
    logits[9] = gone;
    for (const double mu : {1.0, 3.0, 5.0}) {
      const double k = mirostat_count(exponent_of(logits), mu, 49);
      for (const auto observed : {original, llama_cpp}) {
        const double wanted = observed == original ? std::floor(k + 0.5) + 1 : std::floor(k);
        const auto count = static_cast<std::size_t>(std::max(1.0, std::min(wanted, 49.0)));
        const law expected = reference::exact_law(reference::top_k(reference::widened(logits), count));
        const mirostat_v1 policy = fixed(mu, observed);
        CHECK(difference(law_after(narrowing(policy), logits), expected) < of_float);
        law drawn(logits.size());
        for (const auto& [token, p] : decant::testing::enumerate_law([&](decant::decision_hook& hook) {
               candidates c;
               c.bind(std::span<const float>(logits));
               return policy(c, context_after({}, 0, draw_stream(1).with_hook(&hook)));
             })) {
          drawn[static_cast<std::size_t>(token)] = p;
        }
        CHECK(difference(drawn, expected) < of_float);
      }
    }
  }
}

TEST_CASE("ties at the last place go to the lower id", "[samplers]") {
  const row tied{1, 3, 1, gone, 1, 1};
  std::set<std::size_t> seen;
  for (double mu = 0; mu < 6; mu += 0.05) {
    const auto kept = survivors(narrowing(fixed(mu, llama_cpp)), tied);
    seen.insert(kept.size());
    const tokens ranked{1, 0, 2, 4, 5};
    tokens first(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(kept.size()));
    std::sort(first.begin(), first.end());
    CHECK(kept == first);
  }
  CHECK(seen == std::set<std::size_t>{1, 2, 3, 4, 5});
}

TEST_CASE("mu of mirostat_v1 after fixed steps is that of the reference", "[samplers]") {
  const law p = reference::exact_law(golden);
  const auto follow = [&](mirostat_v1 policy, const tokens& forced, const law& expected) {
    for (std::size_t i = 0; i < forced.size(); ++i) {
      double mass = 0;
      for (const token_id id : survivors(narrowing(policy), golden)) mass += p[static_cast<std::size_t>(id)];
      const double chosen = p[static_cast<std::size_t>(forced[i])];
      policy.accept(forced[i], {std::log(chosen), std::log(chosen / mass)});
      CHECK(policy.mu() == Approx(expected[i]).epsilon(1e-9));
    }
  };
  follow(mirostat_v1(1, 0.5), {0, 2, 1, 0, 1},
         {2.082899284969295, 1.0837772892718673, 0.44532905379668053, 0.5282283387659754, -0.1102198967092114});
  follow(mirostat_v1(1, 0.5, llama_cpp), {0, 1, 0, 0, 1},
         {2.274029458458476, 1.8267113964724704, 2.1007408549309465, 2.3747703133894227, 1.927452251403417});
}

TEST_CASE("the mean surprise under mirostat_v1 settles at tau", "[samplers]") {
  const row logits = zipf_row(400, 1.1);
  const law p = reference::exact_law(logits);
  for (const double tau : {3.0, 4.0}) {  // the most probable token alone has 2.4 bits
    auto decoding = decant::temperature(1) | mirostat_v1(tau, 0.1);
    double sum = 0;
    constexpr std::size_t steps = 4000;
    for (std::size_t t = 0; t < steps; ++t) {
      sum -= std::log2(p[static_cast<std::size_t>(decoding.step(logits, {{}, 0, draw_stream(5).at(t)}))]);
    }
    CHECK(sum / steps == Approx(tau).margin(0.05));
  }
}

TEST_CASE("a high mu draws from all, bit for bit, a low one greedily", "[samplers]") {
  const row logits = random_row(500, 4);
  const auto best = static_cast<token_id>(reference::descending(reference::widened(logits)).front());
  candidates c;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    c.bind(std::span<const float>(logits));
    const token_id plain = decant::multinomial{}(c, context_after({}, 0, draw_stream(seed)));
    CHECK(pick(fixed(1000, original), logits, seed) == plain);
    CHECK(pick(fixed(1000, llama_cpp), logits, seed) == plain);
    CHECK(pick(fixed(0, llama_cpp), logits, seed) == best);
  }
}

TEST_CASE("rollback of mirostat_v1 is exact", "[samplers]") {
  mirostat_v1 policy(2.7, 0.3);
  std::vector<mirostat_v1> stages{policy};
  for (int i = 0; i < 20; ++i) {
    policy.accept(i, i % 7 == 3 ? step_record{-infinity, -infinity} : bits(0.37 * i, 0.21 * i));
    stages.push_back(policy);
  }
  for (std::size_t back = 0; back <= 20; ++back) {
    mirostat_v1 undone = policy;
    undone.rollback(back);
    CHECK(undone == stages[20 - back]);
    CHECK(undone.mu() == stages[20 - back].mu());
    undone.reset();
    CHECK(undone == stages[0]);
  }
  CHECK_THROWS_AS(policy.rollback(21), assertion_error);
}

TEST_CASE("mirostat_v1 refuses bad parameters", "[samplers]") {
  for (const double bad : {not_a_number, -infinity, infinity, -1.0, -denormal, 1000001.0}) {
    check_rejects<mirostat_v1>(bad, "mirostat_v1", "tau", "must lie in [0, 1000000]");
    CHECK(complaint([&] { return mirostat_v1(5, bad); }) ==
          "mirostat_v1: eta = " + decant::detail::number_text(bad) + " must lie in [0, 1000000]");
    CHECK(!mirostat_v1::make(5.0, bad).has_value());
  }
  for (const double good : {0.0, -0.0, denormal, 3.0, 1e6}) check_accepts<mirostat_v1>(good);
  for (const std::size_t bad : {std::size_t{0}, std::size_t{1}}) {
    const std::string text = "mirostat_v1: m = " + std::to_string(bad) + " must be at least 2";
    CHECK(complaint([&] { return mirostat_v1(5, 0.1, original, bad); }) == text);
    const auto made = mirostat_v1::make(5.0, 0.1, original, bad);
    REQUIRE(!made.has_value());
    CHECK(made.error().message == text);
    CHECK(made.error().where == "mirostat_v1.m");
  }
  CHECK(mirostat_v1::make(5.0, 0.1, original, std::size_t{2}).has_value());
  CHECK(mirostat_v1().describe() == "mirostat_v1(5, 0.1)");
  CHECK(mirostat_v1(3, 1, llama_cpp).describe() == "mirostat_v1(3, 1, llama_cpp)");
}

TEST_CASE("mirostat_v1 on all sizes and on bad rows", "[samplers]") {
  for (const double mu : {0.0, 3.0, 10.0}) {
    check_sizes(narrowing(fixed(mu, original)));
    check_sizes(narrowing(fixed(mu, llama_cpp)));
    check_bad_rows(narrowing(fixed(mu, original)));
    CHECK(pick(fixed(mu, original), row(5, gone), 1) == no_token);
    CHECK(pick(fixed(mu, original), {1, nan_float, 0}, 1) == no_token);
    CHECK(pick(fixed(mu, original), {gone, 4, gone}, 1) == 1);
  }
}

TEST_CASE("mirostat_v1 passes check_sampler", "[samplers]") {
  for (const auto observed : {original, llama_cpp}) {
    for (const double tau : {0.0, 2.0, 5.0}) {
      const mirostat_v1 policy(tau, 0.3, observed);
      const auto report = decant::testing::check_sampler(
          policy, {.shift_invariant = true, .discrete = true, .allocations = decant::testing::allocations});
      INFO(policy.describe());
      INFO(report.text());
      CHECK(report.ok);
    }
  }
}

}  // namespace mirostat_v1_tests
