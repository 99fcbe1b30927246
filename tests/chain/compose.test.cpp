// SPDX-License-Identifier: MIT
#include <decant/chain/compose.hpp>

#include "chain/policies.hpp"
#include "support/catch.hpp"

#include <decant/chain/any.hpp>
#include <decant/processors.hpp>
#include <decant/samplers.hpp>

#include <type_traits>
#include <vector>

namespace compose_test {

using namespace chain_policies;
using decant::chain;
using decant::decoder;
using decant::dynamic_chain;
using decant::greedy;
using decant::min_p;
using decant::multinomial;
using decant::temperature;
using decant::top_k;
using decant::top_p;

template <class T, class U>
constexpr bool same = std::is_same_v<T, U>;

TEST_CASE("processors in a row make one flat chain, a sampler makes a decoder", "[chain][compose]") {
  auto two = top_k(3) | top_p(0.5);
  STATIC_REQUIRE(same<decltype(two), chain<top_k, top_p>>);
  auto three = two | min_p(0.1);
  STATIC_REQUIRE(same<decltype(three), chain<top_k, top_p, min_p>>);
  auto four = temperature(2) | three;
  STATIC_REQUIRE(same<decltype(four), chain<temperature, top_k, top_p, min_p>>);
  auto both = two | two;
  STATIC_REQUIRE(same<decltype(both), chain<top_k, top_p, top_k, top_p>>);
  auto whole = four | multinomial{};
  STATIC_REQUIRE(same<decltype(whole), decoder<chain<temperature, top_k, top_p, min_p>, multinomial>>);
  auto single = top_k(3) | greedy{};
  STATIC_REQUIRE(same<decltype(single), decoder<top_k, greedy>>);
  CHECK(four.describe() == "temperature(2) | top_k(3) | top_p(0.5) | min_p(0.1)");
  CHECK(whole.describe() == "temperature(2) | top_k(3) | top_p(0.5) | min_p(0.1) | multinomial");
}

TEST_CASE("a decoder whose steps are all off prints its sampler alone", "[chain][compose]") {
  CHECK((top_k(0) | temperature(1) | greedy{}).describe() == "greedy");
  CHECK((top_k(0) | greedy{}).describe() == "greedy");
  CHECK(decant::decode_with(multinomial{}).describe() == "multinomial");
}

TEST_CASE("one lambda beside a policy of decant needs no help", "[chain][compose]") {
  const auto ban_first = [](candidates& row, const step_context&) { row.ban(0); };
  auto after = top_k(2) | ban_first;
  auto before = ban_first | top_k(2);
  const std::vector<token_id> none;
  CHECK(left(after, known_logits, at(none)) == std::vector<token_id>{1});
  CHECK(left(before, known_logits, at(none)) == std::vector<token_id>{1, 2});
  auto decoding = ban_first | greedy{};
  CHECK(decoding.step(known_logits, at(none)) == 1);
  auto with_sampler =
      top_k(2) | [](candidates& row, const step_context&) -> token_id { return row.descending(2)[1].id; };
  CHECK(with_sampler.step(known_logits, at(none)) == 1);
}

TEST_CASE("two lambdas: chain and decode_with", "[chain][compose]") {
  const auto ban_first = [](candidates& row, const step_context&) { row.ban(0); };
  const auto argmax = [](candidates& row, const step_context&) { return row.argmax(); };
  const std::vector<token_id> none;
  auto decoding = decant::decode_with(ban_first, argmax);
  CHECK(decoding.step(known_logits, at(none)) == 1);
  CHECK(decoding.describe() == "function | function");
  auto plain = decant::decode_with(argmax);
  CHECK(plain.step(known_logits, at(none)) == 0);
  auto composed = chain(ban_first, ban_first) | argmax;
  CHECK(composed.step(known_logits, at(none)) == 1);
}

TEST_CASE("lvalues are copied: the pieces can be used again", "[chain][compose]") {
  no_repeat memory;
  auto first = memory | greedy{};
  memory.accept(0, {});
  auto second = memory | greedy{};
  const std::vector<token_id> none;
  CHECK(first.step(known_logits, at(none)) == 0);
  CHECK(second.step(known_logits, at(none)) == 1);
  CHECK(memory.accepted().size() == 1);
}

TEST_CASE("chains known at run time compose with |", "[chain][compose]") {
  dynamic_chain run_time{top_k(3)};
  run_time.push_back(top_k(2));
  auto mixed = temperature(0.5) | run_time;
  STATIC_REQUIRE(same<decltype(mixed), chain<temperature, dynamic_chain>>);
  auto decoding = run_time | decant::any_sampler(greedy{});
  const std::vector<token_id> none;
  CHECK(decoding.step(known_logits, at(none)) == 0);
  CHECK(decoding.describe() == "top_k(3) | top_k(2) | greedy");
}

}  // namespace compose_test
