// SPDX-License-Identifier: MIT
#include <decant/chain/chain.hpp>

#include "chain/policies.hpp"
#include "support/catch.hpp"

#include <decant/processors.hpp>

#include <cmath>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace chain_test {

using namespace chain_policies;
using ids = std::vector<token_id>;
const std::vector<token_id> none;

TEST_CASE("order is meaning: temperature before or after top_p", "[chain]") {
  const std::vector<float> logits{3, 2, 1};
  decant::chain temperature_first(decant::temperature(0.5), decant::top_p(0.8));
  decant::chain temperature_last(decant::top_p(0.8), decant::temperature(0.5));
  CHECK(left(temperature_first, logits, at(none)) == ids{0});
  CHECK(left(temperature_last, logits, at(none)) == ids{0, 1});
  // Kimi-Audio PR161: at T = 2 they differ the other way round.
  const std::vector<float> two{2, 1, 0};
  decant::chain hot_first(decant::temperature(2), decant::top_p(0.6));
  decant::chain hot_last(decant::top_p(0.6), decant::temperature(2));
  CHECK(left(hot_first, two, at(none)) == ids{0, 1});
  CHECK(left(hot_last, two, at(none)) == ids{0});
}

TEST_CASE("order is meaning: T = 5 and min_p = 0.1 (llama.cpp#4091)", "[chain]") {
  decant::chain hot_first(decant::temperature(5), decant::min_p(0.1));
  decant::chain hot_last(decant::min_p(0.1), decant::temperature(5));
  CHECK(left(hot_first, known_logits, at(none)) == ids{0, 1, 2, 3, 4, 5});
  CHECK(left(hot_last, known_logits, at(none)) == ids{0, 1, 2, 3});
}

TEST_CASE("what does not depend on temperature commutes with it", "[chain]") {
  for (const double t : {0.3, 0.9, 4.0}) {
    decant::chain a(decant::temperature(t), decant::top_k(3));
    decant::chain b(decant::top_k(3), decant::temperature(t));
    CHECK(left(a, known_logits, at(none)) == left(b, known_logits, at(none)));
  }
}

TEST_CASE("filters act on what they receive (mlx-lm PR388)", "[chain]") {
  std::vector<float> logits;
  for (const double p : {.4, .3, .2, .1}) logits.push_back(static_cast<float>(std::log(p)));
  decant::chain narrow(decant::top_k(2), decant::top_p(.5));
  decant::chain single(decant::top_k(1), decant::top_p(.8));
  CHECK(left(narrow, logits, at(none)) == ids{0});
  CHECK(left(single, logits, at(none)) == ids{0});
}

TEST_CASE("an empty chain is the identity", "[chain]") {
  decant::chain<> empty;
  CHECK(left(empty, known_logits, at(none)).size() == 6);
  CHECK(empty.describe() == "identity");
  CHECK(empty.off());
  CHECK_FALSE(empty.keeps_state());
}

TEST_CASE("a chain leaves the argmax alone if all of its steps do", "[chain]") {
  CHECK(decant::argmax_invariant_v<decant::chain<decant::top_k, decant::top_p>>);
  CHECK(decant::argmax_invariant_v<decant::chain<>>);
  CHECK(!decant::argmax_invariant_v<decant::chain<decant::top_k, decant::typical>>);
  CHECK(!decant::argmax_invariant_v<decant::chain<decant::typical, decant::top_k>>);
  CHECK(!decant::is_argmax_invariant(decant::chain(decant::top_k(2), decant::typical(0.5))));
  CHECK(!decant::is_argmax_invariant(decant::chain(decant::typical(0.5), decant::top_k(2))));
}

TEST_CASE("a chain prints the steps that are not off", "[chain]") {
  CHECK(decant::chain(decant::top_k(40), decant::top_p(0.95), decant::temperature(0.8)).describe() ==
        "top_k(40) | top_p(0.95) | temperature(0.8)");
  CHECK(decant::chain(decant::top_k(0), decant::top_p(0.95), decant::temperature(1)).describe() == "top_p(0.95)");
  decant::chain off(decant::top_k(0), decant::top_p(1), decant::temperature(1));
  CHECK(off.describe() == "identity");
  CHECK(off.off());
  CHECK(decant::chain(decant::chain(decant::top_k(2), decant::top_k(0)), decant::min_p(0.5)).describe() ==
        "top_k(2) | min_p(0.5)");
}

TEST_CASE("steps at their off value change nothing, bit for bit (llama.cpp#13171, FlashInfer #708)", "[chain]") {
  decant::chain off(decant::top_k(0), decant::top_k(-1), decant::top_p(1), decant::min_p(0), decant::temperature(1),
                    decant::repetition_penalty(1), decant::frequency_penalty(0), decant::presence_penalty(0),
                    decant::no_repeat_ngram(0));
  candidates touched, plain;
  touched.bind(known_logits);
  plain.bind(known_logits);
  const ids history{0, 1, 0, 1};
  off(touched, at(history));
  CHECK(touched.probabilities() == plain.probabilities());
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    CHECK(touched.draw(decant::draw_stream(seed)) == plain.draw(decant::draw_stream(seed)));
}

TEST_CASE("lambdas are steps, and a chain nests in a chain", "[chain]") {
  const auto ban = [](token_id id) { return [id](candidates& row, const step_context&) { row.ban(id); }; };
  decant::chain lambdas(ban(0), ban(2));
  CHECK(left(lambdas, known_logits, at(none)) == ids{1, 3, 4, 5});
  decant::chain nested(lambdas, decant::chain(decant::top_k(2), decant::chain<>{}));
  CHECK(left(nested, known_logits, at(none)) == ids{1, 3});
}

TEST_CASE("copying a chain forks its state", "[chain]") {
  decant::chain original(decant::top_k(3), no_repeat{});
  original.accept(0, {});
  auto fork = original;
  fork.accept(1, {});
  CHECK(left(original, known_logits, at(none)) == ids{1, 2});
  CHECK(left(fork, known_logits, at(none)) == ids{0, 2});
  fork.rollback(1);
  CHECK(left(fork, known_logits, at(none)) == ids{1, 2});
  fork.reset();
  CHECK(left(fork, known_logits, at(none)) == ids{0, 1, 2});
  CHECK(left(original, known_logits, at(none)) == ids{1, 2});
}

TEST_CASE("only a chain with state is stateful", "[chain]") {
  STATIC_REQUIRE(decant::Stateful<decant::chain<decant::top_k, no_repeat>>);
  STATIC_REQUIRE_FALSE(decant::Stateful<decant::chain<decant::top_k, decant::top_p>>);
  STATIC_REQUIRE_FALSE(decant::Stateful<decant::chain<>>);
  STATIC_REQUIRE(decant::Stateful<decant::chain<decant::chain<no_repeat>>>);
  STATIC_REQUIRE(decant::LogitsProcessor<decant::chain<>>);
}

TEST_CASE("the parts can be read and changed in mid-stream", "[chain]") {
  decant::chain parts(decant::top_k(3), no_repeat{});
  std::get<0>(parts.processors()) = decant::top_k(1);
  CHECK(left(parts, known_logits, at(none)) == ids{0});
  CHECK(std::get<1>(std::as_const(parts).processors()).accepted().empty());
}

TEST_CASE("on a bad row every step does nothing", "[chain]") {
  const std::vector<float> bad{1, decant::math::to_float(decant::float16{0x7E00}), 2},
      empty{decant::gone, decant::gone, decant::gone};
  decant::chain all(decant::top_k(1), decant::top_p(0.1), decant::min_p(1), decant::temperature(0),
                    decant::repetition_penalty(2), decant::frequency_penalty(1), decant::presence_penalty(1),
                    decant::no_repeat_ngram(1));
  const ids history{0, 2};
  candidates row;
  row.bind(bad);
  all(row, at(history));
  CHECK(row.status() == decant::row_status::not_finite);
  row.bind(empty);
  all(row, at(history));
  CHECK(row.status() == decant::row_status::empty);
}

TEST_CASE("all tokens banned is an empty row, not token 0 (OpenNMT-py#745)", "[chain]") {
  decant::chain bans(decant::no_repeat_ngram(1), decant::top_k(1));
  const ids history{0, 1, 2, 3, 4, 5};
  candidates row;
  row.bind(known_logits);
  bans(row, at(history));
  CHECK(row.status() == decant::row_status::empty);
  CHECK(row.draw(decant::draw_stream(1)) == decant::no_token);
}

}  // namespace chain_test
