// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <vector>

#include <decant/core/token.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/verdict.hpp>

#include "support/catch.hpp"
#include "support/rational.hpp"

// Proofs by enumeration: the shipped rules over exact fractions, every decision branching. No copy of a rule is here.

namespace exact {

using decant::no_node;
using decant::no_parent;
using decant::proposal;
using decant::token_id;
using test_support::rational;
using tokens = std::vector<token_id>;

/// decant::law with fractions.
struct law {
  std::vector<token_id> ids;
  std::vector<rational> weights;
  rational total;

  void clear() {
    ids.clear();
    weights.clear();
    total = 0;
  }
};

/// The law of whole weights, those of 0 left out.
inline law law_of(std::span<const int> weights) {
  law out;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    out.ids.push_back(static_cast<token_id>(i));
    out.weights.push_back(weights[i]);
    out.total += weights[i];
  }
  return out;
}
inline law law_of(std::initializer_list<int> weights) { return law_of(std::span(weights.begin(), weights.size())); }

using draft = decant::basic_draft<law>;
using verdict = decant::basic_verdict<law>;

/// Makes all decisions in every possible way, one a run: see for_each_path.
class oracle {
 public:
  bool chance(const rational& n, const rational& d, std::int32_t node) {
    REQUIRE(asked_.insert(node).second);  // a second question of one key would get the same answer from a stream
    if (!(n > rational(0))) return false;
    if (n >= d) return true;
    return choose({n / d, rational(1) - n / d}) == 0;
  }
  std::size_t pick(std::size_t count, std::int32_t) {
    return choose(std::vector<rational>(count, rational(1, static_cast<int>(count))));
  }
  token_id draw(const law& from) {
    std::vector<rational> chances;
    for (const rational& weight : from.weights) chances.push_back(weight / from.total);
    return from.ids[choose(chances)];
  }

  [[nodiscard]] rational probability() const {
    rational product(1);
    for (const decision& d : path_) product = product * d.chances[d.choice];
    return product;
  }

  bool advance() {
    asked_.clear();
    place_ = 0;
    while (!path_.empty()) {
      if (++path_.back().choice < path_.back().chances.size()) return true;
      path_.pop_back();
    }
    return false;
  }

 private:
  struct decision {
    std::vector<rational> chances;
    std::size_t choice = 0;
  };

  std::size_t choose(std::vector<rational> chances) {
    if (place_ == path_.size()) path_.push_back({std::move(chances), 0});
    return path_[place_++].choice;
  }

  std::vector<decision> path_;
  std::size_t place_ = 0;
  std::set<std::int32_t> asked_;
};

/// A model: the law of what follows some tokens.
using model = std::function<law(const tokens&)>;

/// The probability that a model goes on with these tokens.
inline rational probability(const model& m, const tokens& text) {
  rational product(1);
  tokens before;
  for (const token_id token : text) {
    product = product * decant::probability_of(m(before), token);
    before.push_back(token);
  }
  return product;
}

/// What to draft: `children[d]` for every node of depth d.
struct shape {
  std::vector<std::size_t> children;
  proposal mode = proposal::with_replacement;
};

/// Drafts below a node as the shape says: deterministic children are the most probable ones of q.
inline void grow(draft& out, std::int32_t node, const tokens& before, const model& q, const shape& wanted,
                 oracle& decide) {
  if (before.size() == wanted.children.size()) return;
  law left = q(before);
  out.children_law(node) = left;
  std::vector<std::int32_t> made;
  for (std::size_t i = 0; i < wanted.children[before.size()] && !left.ids.empty(); ++i) {
    token_id token = 0;
    if (wanted.mode == proposal::deterministic) {
      const auto best = std::max_element(left.weights.begin(), left.weights.end());
      token = left.ids[static_cast<std::size_t>(best - left.weights.begin())];
    } else {
      token = decide.draw(left);
    }
    made.push_back(out.add(token, node));
    if (wanted.mode != proposal::with_replacement) decant::remove_token(left, token);
  }
  for (const std::int32_t child : made) {
    tokens longer = before;
    longer.push_back(out.token(child));
    grow(out, child, longer, q, wanted, decide);
  }
}

/// What a round came to: the law of its output, and the mean number of drafted tokens accepted.
struct round_law {
  std::map<tokens, rational> outputs;
  rational accepted;
  std::size_t paths = 0;
};

/// Every way that drafting and a rule can go.
template <class Rule>
round_law round_of(const Rule& rule, const model& p, const model& q, const shape& wanted) {
  round_law out;
  oracle decide;
  verdict found;
  do {
    ++out.paths;
    draft drafted;
    drafted.clear(wanted.mode);
    grow(drafted, no_parent, {}, q, wanted, decide);
    std::map<std::int32_t, law> laws;
    const auto text_to = [&](std::int32_t node) {
      std::vector<std::size_t> path;
      drafted.path_to(node, path);
      tokens text;
      for (const std::size_t n : path) text.push_back(drafted.token(static_cast<std::int32_t>(n)));
      return text;
    };
    const auto target = [&](std::int32_t node) -> const law& {
      const auto known = laws.find(node);
      return known != laws.end() ? known->second : laws.emplace(node, p(text_to(node))).first->second;
    };
    rule(drafted, target, decide, found);
    tokens text = text_to(found.path.empty() ? no_parent : static_cast<std::int32_t>(found.path.back()));
    text.push_back(decide.draw(*found.next));
    const rational chance = decide.probability();
    out.outputs[text] += chance;
    out.accepted += chance * rational(static_cast<int>(found.path.size()));
  } while (decide.advance());
  return out;
}

/// The law of the first `length` tokens, shorter outputs continued by the model.
inline std::map<tokens, rational> complete(const std::map<tokens, rational>& outputs, const model& p,
                                           std::size_t length) {
  std::map<tokens, rational> out;
  for (const auto& [text, chance] : outputs) {
    if (text.size() >= length) {
      out[tokens(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length))] += chance;
      continue;
    }
    const law next = p(text);
    std::map<tokens, rational> longer;
    for (std::size_t i = 0; i < next.ids.size(); ++i) {
      tokens more = text;
      more.push_back(next.ids[i]);
      longer[more] = chance * (next.weights[i] / next.total);
    }
    for (const auto& [more, part] : complete(longer, p, length)) out[more] += part;
  }
  return out;
}

/// The law of a model's first `length` tokens.
inline std::map<tokens, rational> law_of(const model& p, std::size_t length) {
  return complete({{tokens{}, rational(1)}}, p, length);
}

/// Whether a round leaves the model's law as it is: equal, without tolerance.
template <class Rule>
bool lossless(const Rule& rule, const model& p, const model& q, const shape& wanted) {
  const std::size_t length = wanted.children.size() + 1;
  return complete(round_of(rule, p, q, wanted).outputs, p, length) == law_of(p, length);
}

/// A model with whole weights below `limit` over n tokens, each context having its own: some of them 0.
inline model random_model(std::size_t n, std::uint32_t seed, int limit = 5) {
  return [=](const tokens& before) {
    std::uint32_t state = seed * 2654435761U + 1;
    const auto stir = [&](std::uint32_t x) {
      state = (state ^ x) * 2246822519U;
      state ^= state >> 13;
    };
    for (const token_id token : before) stir(static_cast<std::uint32_t>(token) + 7);
    std::vector<int> weights;
    for (std::size_t i = 0; i < n; ++i) {
      stir(static_cast<std::uint32_t>(i) + 101);
      weights.push_back(static_cast<int>((state >> 7) % static_cast<std::uint32_t>(limit)));
    }
    if (std::ranges::all_of(weights, [](int w) { return w == 0; })) weights[seed % n] = 1;
    return law_of(weights);
  };
}

/// One law whatever came before.
inline model constant_model(law always) {
  return [=](const tokens&) { return always; };
}

}  // namespace exact
