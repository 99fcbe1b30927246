// SPDX-License-Identifier: MIT
#include <decant/speculative/suffix_automaton.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "math/bits.hpp"
#include "support/catch.hpp"

namespace suffix_automaton_tests {

using decant::suffix_automaton;
using decant::token_id;
using tokens = std::vector<token_id>;

/// Few different tokens, and runs that come again.
tokens random_text(std::size_t size, std::uint64_t alphabet, std::uint64_t seed) {
  test_bits::splitmix next(seed);
  tokens text;
  while (text.size() < size) {
    if (text.size() > 4 && next.below(4) == 0) {
      const std::size_t from = next.below(text.size() - 3);
      for (std::size_t i = 0; i < 3 && text.size() < size; ++i) text.push_back(text[from + i]);
    } else {
      text.push_back(static_cast<token_id>(next.below(alphabet)));
    }
  }
  return text;
}

/// Every substring, and where it ends.
std::map<tokens, std::vector<std::size_t>> naive_ends(const tokens& text) {
  std::map<tokens, std::vector<std::size_t>> ends;
  for (std::size_t end = 1; end <= text.size(); ++end) {
    for (std::size_t begin = 0; begin < end; ++begin) {
      ends[{text.begin() + static_cast<std::ptrdiff_t>(begin), text.begin() + static_cast<std::ptrdiff_t>(end)}]
          .push_back(end);
    }
  }
  return ends;
}

void check_against_search(const suffix_automaton& automaton, const tokens& text) {
  const auto all = naive_ends(text);
  for (const auto& [substring, ends] : all) {
    const auto s = automaton.find(substring);
    REQUIRE(s != suffix_automaton::none);
    CHECK(automaton.count(s) == ends.size());
    CHECK(automaton.first_end(s) == ends.front());
    CHECK(automaton.ends(s) == ends);
    CHECK(automaton.length(s) >= substring.size());
    CHECK(automaton.length(automaton.link(s)) < substring.size());
    for (token_id token = -1; token < 5; ++token) {
      tokens longer = substring;
      longer.push_back(token);
      CHECK((automaton.find(s, token) != suffix_automaton::none) == all.contains(longer));
    }
    std::set<token_id> next, naive_next;
    automaton.visit_next(s, [&](token_id token, suffix_automaton::state) { next.insert(token); });
    for (const std::size_t end : ends) {
      if (end < text.size()) naive_next.insert(text[end]);
    }
    CHECK(next == naive_next);
  }
}

/// What can be asked, by substrings alone: two automata of one text must answer alike.
bool alike(const suffix_automaton& a, const suffix_automaton& b) {
  if (a.size() != b.size() || a.state_count() != b.state_count() || a.edge_count() != b.edge_count()) return false;
  std::vector<std::pair<suffix_automaton::state, suffix_automaton::state>> open{{a.root, b.root}};
  std::set<suffix_automaton::state> seen;
  while (!open.empty()) {
    const auto [s, t] = open.back();
    open.pop_back();
    if (!seen.insert(s).second) continue;
    if (a.count(s) != b.count(t) || a.length(s) != b.length(t) || a.first_end(s) != b.first_end(t)) return false;
    std::map<token_id, suffix_automaton::state> from_a, from_b;
    a.visit_next(s, [&](token_id token, suffix_automaton::state to) { from_a[token] = to; });
    b.visit_next(t, [&](token_id token, suffix_automaton::state to) { from_b[token] = to; });
    if (from_a.size() != from_b.size()) return false;
    for (const auto& [token, to] : from_a) {
      if (!from_b.contains(token)) return false;
      open.emplace_back(to, from_b[token]);
    }
  }
  return seen.size() == a.state_count();
}

TEST_CASE("a suffix automaton knows every substring, its places and its counts", "[speculative][suffix_automaton]") {
  for (const std::uint64_t alphabet : {1U, 2U, 3U, 5U}) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const tokens text = random_text(24 + seed, alphabet, seed);
      check_against_search(suffix_automaton(text), text);
    }
  }
}

TEST_CASE("its memory is linear in the text", "[speculative][suffix_automaton]") {
  std::vector<tokens> texts{tokens(2000, 7), random_text(2000, 2, 1), random_text(2000, 50, 2)};
  tokens worst{0};  // abbb...: the most states
  worst.resize(2000, 1);
  texts.push_back(worst);
  worst.push_back(2);  // abbb...c: the most edges
  texts.push_back(worst);
  for (const tokens& text : texts) {
    const suffix_automaton automaton(text);
    CHECK(automaton.state_count() <= 2 * text.size());
    CHECK(automaton.edge_count() <= 3 * text.size());
  }
}

TEST_CASE("taking tokens back leaves no trace", "[speculative][suffix_automaton]") {
  for (const std::uint64_t alphabet : {1U, 2U, 4U}) {
    const tokens text = random_text(60, alphabet, 9);
    for (std::size_t kept = 0; kept <= 60; kept += 5) {
      suffix_automaton automaton(text);
      automaton.rollback(60 - kept);
      CHECK(alike(automaton, suffix_automaton(std::span(text).first(kept))));
      const tokens other = random_text(30, alphabet + 1, kept);
      automaton.append(other);
      tokens joined(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(kept));
      joined.insert(joined.end(), other.begin(), other.end());
      CHECK(alike(automaton, suffix_automaton(joined)));
      automaton.rollback(automaton.size());
      CHECK(automaton.state_count() == 1);
      CHECK(automaton.edge_count() == 0);
    }
  }
}

TEST_CASE("it follows a text that changes", "[speculative][suffix_automaton]") {
  suffix_automaton automaton;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const tokens text = random_text(10 + seed, 2, seed / 2);
    automaton.follow_text(text);
    CHECK(tokens(automaton.tokens().begin(), automaton.tokens().end()) == text);
    CHECK(alike(automaton, suffix_automaton(text)));
  }
  automaton.follow_text({});
  CHECK(automaton.size() == 0);
}

TEST_CASE("a match is the longest suffix that occurs", "[speculative][suffix_automaton]") {
  const tokens text = random_text(40, 3, 3), other = random_text(60, 4, 4);
  const suffix_automaton automaton(text);
  suffix_automaton::match match;
  for (std::size_t end = 1; end <= other.size(); ++end) {
    match = automaton.follow(match, other[end - 1]);
    std::size_t longest = 0;
    for (std::size_t length = 1; length <= end; ++length) {
      const auto suffix = std::span(other).first(end).last(length);
      if (std::ranges::search(text, suffix).size() == length) longest = length;
    }
    CHECK(match.length == longest);
    CHECK(match.at == automaton.find(std::span(other).first(end).last(longest)));
  }
}

TEST_CASE("the empty substring, and what is not there", "[speculative][suffix_automaton]") {
  suffix_automaton automaton;
  CHECK(automaton.whole() == suffix_automaton::root);
  CHECK(automaton.count(suffix_automaton::root) == 0);
  CHECK(automaton.find(tokens{1}) == suffix_automaton::none);
  CHECK(automaton.find(tokens{}) == suffix_automaton::root);
  automaton.append(tokens{1, 2, decant::no_token, 1, 2});
  CHECK(automaton.count(suffix_automaton::root) == 5);
  CHECK(automaton.count(automaton.find(tokens{1, 2})) == 2);
  CHECK(automaton.find(tokens{2, 1}) == suffix_automaton::none);
  CHECK(automaton.ends(suffix_automaton::root).empty());
  CHECK_THROWS_AS(automaton.count(99), assertion_error);
  CHECK_THROWS_AS(automaton.rollback(6), assertion_error);
}

}  // namespace suffix_automaton_tests
