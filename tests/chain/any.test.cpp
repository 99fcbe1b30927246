// SPDX-License-Identifier: MIT
#include <decant/chain/any.hpp>

#include "chain/policies.hpp"
#include "support/catch.hpp"

#include <decant/chain/compose.hpp>
#include <decant/processors.hpp>
#include <decant/samplers.hpp>

#include "math/bits.hpp"

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace any_test {

using namespace chain_policies;
using decant::any_processor;
using decant::any_sampler;
using decant::chain;
using decant::dynamic_chain;
using ids = std::vector<token_id>;
const std::vector<token_id> none;

static_assert(decant::LogitsProcessor<any_processor> && decant::LogitsProcessor<dynamic_chain>);
static_assert(decant::LawSampler<any_sampler>);
static_assert(std::copyable<any_processor> && std::copyable<any_sampler> && std::copyable<dynamic_chain>);
static_assert(!std::convertible_to<decant::greedy, any_processor> && !std::convertible_to<decant::top_k, any_sampler>);

TEST_CASE("static, dynamic and erased chains agree survivor for survivor and token for token", "[chain][any]") {
  test_bits::splitmix next(81);
  for (int round = 0; round < 40; ++round) {
    std::vector<float> logits(round % 4 == 0 ? 6000U : 200U);
    for (float& z : logits) z = static_cast<float>(next.between(-6, 6));
    const double t = next.between(0.3, 2), p = next.between(0.3, 1.1), m = next.between(0, 0.2);
    const auto k = static_cast<std::int64_t>(next.below(60));
    ids history;
    for (int i = 0; i < 20; ++i) history.push_back(static_cast<token_id>(next.below(30)));
    const auto context = decant::context_after(history, 5, decant::draw_stream(next()));

    auto fixed = decant::repetition_penalty(1.3) | decant::frequency_penalty(0.4) | decant::top_k(k) |
                 decant::temperature(t) | decant::top_p(p) | decant::min_p(m);
    dynamic_chain run_time{decant::repetition_penalty(1.3),
                           decant::frequency_penalty(0.4),
                           decant::top_k(k),
                           decant::temperature(t),
                           decant::top_p(p),
                           decant::min_p(m)};
    any_processor erased = fixed;
    chain outside(
        decant::repetition_penalty(1.3),
        dynamic_chain{decant::frequency_penalty(0.4), chain(decant::top_k(k), any_processor(decant::temperature(t)))},
        decant::top_p(p), decant::min_p(m));
    dynamic_chain inside{chain(decant::repetition_penalty(1.3), decant::frequency_penalty(0.4)),
                         dynamic_chain{decant::top_k(k), dynamic_chain{decant::temperature(t)}}};
    inside.push_back(any_processor(any_processor(decant::top_p(p))));
    inside.push_back(decant::min_p(m));

    const ids expected = left(fixed, logits, context);
    CHECK(left(run_time, logits, context) == expected);
    CHECK(left(erased, logits, context) == expected);
    CHECK(left(outside, logits, context) == expected);
    CHECK(left(inside, logits, context) == expected);
    CHECK(run_time.describe() == fixed.describe());
    CHECK(erased.describe() == fixed.describe());
    CHECK(outside.describe() == fixed.describe());
    CHECK(inside.describe() == fixed.describe());

    auto a = fixed | decant::multinomial{};
    auto b = run_time | decant::multinomial{};
    auto c = erased | any_sampler(decant::multinomial{});
    auto d = inside | any_sampler(decant::multinomial{});
    CHECK(a.law_of(logits, context) == b.law_of(logits, context));
    CHECK(a.law_of(logits, context) == c.law_of(logits, context));
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      const auto now = decant::context_after(history, 5, decant::draw_stream(seed));
      const token_id token = a.step(logits, now);
      CHECK(b.step(logits, now) == token);
      CHECK(c.step(logits, now) == token);
      CHECK(d.step(std::as_const(logits), now) == token);
    }
  }
}

TEST_CASE("copying an erased policy forks its state", "[chain][any]") {
  any_processor original = no_repeat{};
  CHECK(original.keeps_state());
  original.accept(0, {});
  any_processor fork = original;
  fork.accept(1, {});
  CHECK(left(original, known_logits, at(none)).front() == 1);
  CHECK(left(fork, known_logits, at(none)) == ids{0, 2, 3, 4, 5});
  original = fork;
  fork.rollback(1);
  CHECK(left(original, known_logits, at(none)) == ids{0, 2, 3, 4, 5});
  CHECK(left(fork, known_logits, at(none)).front() == 1);
  any_processor moved = std::move(fork);
  CHECK(left(moved, known_logits, at(none)).front() == 1);
  moved.reset();
  CHECK(left(moved, known_logits, at(none)).size() == 6);
  const any_processor& same = moved;
  moved = same;
  CHECK(left(moved, known_logits, at(none)).size() == 6);
}

TEST_CASE("copying a dynamic chain forks its state, however deep", "[chain][any]") {
  dynamic_chain original{decant::top_k(3), chain(dynamic_chain{no_repeat{}})};
  CHECK(original.keeps_state());
  original.accept(0, {});
  dynamic_chain fork = original;
  fork.reset();
  CHECK(left(original, known_logits, at(none)) == ids{1, 2});
  CHECK(left(fork, known_logits, at(none)) == ids{0, 1, 2});
  original.accept(1, {});
  original.accept(2, {});
  original.rollback(2);
  CHECK(left(original, known_logits, at(none)) == ids{1, 2});
}

TEST_CASE("policies without state accept and roll back without effect", "[chain][any]") {
  dynamic_chain stateless{decant::top_k(2)};
  CHECK_FALSE(stateless.keeps_state());
  stateless.accept(0, {});
  stateless.rollback(5);
  stateless.reset();
  CHECK(left(stateless, known_logits, at(none)) == ids{0, 1});
}

TEST_CASE("a dynamic chain can be built, read, changed and emptied", "[chain][any]") {
  dynamic_chain built;
  CHECK(built.describe() == "identity");
  CHECK(built.off());
  CHECK(built.size() == 0);
  built.push_back(decant::top_k(0));
  built.push_back([](candidates& row, const step_context&) { row.ban(0); });
  CHECK(built.size() == 2);
  CHECK(built.describe() == "function");
  CHECK_FALSE(built.off());
  built[1] = decant::top_k(1);
  CHECK(std::as_const(built)[1].describe() == "top_k(1)");
  CHECK(left(built, known_logits, at(none)) == ids{0});
  built.clear();
  CHECK(left(built, known_logits, at(none)).size() == 6);
}

TEST_CASE("a dynamic chain in braces nests, it does not dissolve", "[chain][any]") {
  const dynamic_chain inner{decant::top_k(3), decant::top_k(2)};
  const dynamic_chain outer{inner, decant::top_k(1)};
  CHECK(outer.size() == 2);
  CHECK(outer.describe() == "top_k(3) | top_k(2) | top_k(1)");
  // Alone it may nest or copy: compilers differ. The steps are the same.
  CHECK(dynamic_chain{inner}.describe() == "top_k(3) | top_k(2)");
}

TEST_CASE("an erased sampler tells whether it has a law", "[chain][any]") {
  CHECK(any_sampler(decant::multinomial{}).has_law());
  CHECK(any_sampler(decant::greedy{}).has_law());
  CHECK(any_sampler(decant::gumbel{}).has_law());
  any_sampler lawless = [](candidates& row, const step_context&) { return row.argmax(); };
  CHECK_FALSE(lawless.has_law());
  CHECK_FALSE(any_sampler(lawless).has_law());
  candidates row;
  row.bind(known_logits);
  CHECK_THROWS_AS(lawless.narrow(row, at(none)), assertion_error);
  CHECK(lawless(row, at(none)) == 0);
  any_sampler best = decant::greedy{};
  best.narrow(row, at(none));
  CHECK(survivors(row) == ids{0});
}

TEST_CASE("an erased sampler keeps and forks state", "[chain][any]") {
  any_sampler sampler = counting_argmax{};
  CHECK(sampler.keeps_state());
  CHECK_FALSE(any_sampler(decant::greedy{}).keeps_state());
  any_sampler fork = sampler;
  sampler.accept(1, {});
  fork = sampler;
  fork.rollback(1);
  sampler.reset();
  CHECK(sampler.describe() == "counting_argmax");
  CHECK_FALSE(sampler.off());
}

TEST_CASE("an erased policy can be found again by its type, to change a parameter in mid-stream", "[chain][any]") {
  any_processor processor = decant::top_k(3);
  CHECK(processor.as<decant::top_p>() == nullptr);
  REQUIRE(processor.as<decant::top_k>() != nullptr);
  *processor.as<decant::top_k>() = decant::top_k(1);
  CHECK(processor.describe() == "top_k(1)");
  const any_processor& constant = processor;
  CHECK(constant.as<decant::top_k>()->describe() == "top_k(1)");

  // The other steps keep their state.
  dynamic_chain steps{no_repeat{}, decant::top_k(2)};
  steps.accept(4, {});
  *steps[1].as<decant::top_k>() = decant::top_k(5);
  CHECK(steps[0].as<no_repeat>()->accepted() == ids{4});
  CHECK(steps.describe() == "no_repeat | top_k(5)");

  any_sampler sampler = decant::mirostat(4);
  CHECK(sampler.as<decant::mirostat>() != nullptr);
  CHECK(sampler.as<decant::greedy>() == nullptr);
}

}  // namespace any_test
