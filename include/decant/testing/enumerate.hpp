// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <decant/chain/decoder.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/draws.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/law.hpp>
#include <decant/generate/generate.hpp>

namespace decant::testing {

/// A distribution over any ordered results: tokens, sequences of tokens, whole generations.
template <class Result>
using result_law = std::map<Result, double>;

/// Walks the tree of all random decisions that a piece of code makes, one path a run.
///
/// Within a run equal keys get equal answers, as from the generator. Between runs the answers change so that every path
/// of positive probability is taken exactly once; an option of weight 0 is never chosen. Most people want
/// enumerate_law. Misuse: code that asks other questions when it is given the same answers (it depends on something
/// else than its decisions), one key asked with different weights in one run, no positive weight.
class path_enumerator final : public decision_hook {
 public:
  std::size_t choose(const draw_key& key, std::span<const double> weights, double total) override {
    DECANT_ASSERT(total > 0, "a decision needs a positive total");
    if (const auto known = asked_.find(key); known != asked_.end()) {
      const decision& earlier = path_[known->second];
      DECANT_ASSERT(std::ranges::equal(earlier.weights, weights), "one key asked with different weights in one run");
      return earlier.choice;
    }
    const std::size_t place = asked_.size();
    asked_.emplace(key, place);
    if (place < path_.size()) {
      const decision& before = path_[place];
      DECANT_ASSERT(before.key == key && std::ranges::equal(before.weights, weights),
                    "a replay asked another question: the code depends on more than its decisions");
    } else {
      path_.push_back({key, {weights.begin(), weights.end()}, total, 0});
      const bool possible = to_possible(path_.back());
      DECANT_ASSERT(possible, "a decision without a positive weight");
    }
    return path_[place].choice;
  }

  /// The probability of the path that the run took. Call it once the run has ended.
  [[nodiscard]] double probability() const {
    DECANT_ASSERT(asked_.size() == path_.size(),
                  "a replay asked fewer questions: the code depends on more than its decisions");
    double product = 1;
    for (const decision& d : path_) product *= d.weights[d.choice] / d.total;
    return product;
  }

  /// Prepares the run of the next path; false when all have been taken.
  bool advance() {
    asked_.clear();
    while (!path_.empty()) {
      ++path_.back().choice;
      if (to_possible(path_.back())) return true;
      path_.pop_back();
    }
    return false;
  }

 private:
  struct decision {
    draw_key key;
    std::vector<double> weights;
    double total;
    std::size_t choice;
  };

  /// Moves the choice on to a positive weight; false if there is none.
  static bool to_possible(decision& d) {
    while (d.choice < d.weights.size() && !(d.weights[d.choice] > 0)) ++d.choice;
    return d.choice < d.weights.size();
  }

  std::vector<decision> path_;             // decisions in the order in which the run meets them
  std::map<draw_key, std::size_t> asked_;  // this run's keys, and their places in path_
};

/// The exact law of what `f(decision_hook&)` returns: runs it once for every path through its random decisions.
///
/// `f` runs shipped code with the hook in its draws (draw_stream::with_hook, generate_options::hook) and must start
/// anew each time. Results compare with `<`. Cost: the number of paths; more than `limit` is misuse, as is code that
/// cannot be enumerated (see path_enumerator) and a continuous draw.
template <class F>
  requires std::invocable<F&, decision_hook&>
[[nodiscard]] auto enumerate_law(F f, std::size_t limit = 10'000'000) {
  result_law<std::decay_t<std::invoke_result_t<F&, decision_hook&>>> law;
  path_enumerator paths;
  std::size_t count = 0;
  do {
    ++count;
    DECANT_ASSERT(count <= limit, "more paths than the limit");
    auto result = f(static_cast<decision_hook&>(paths));
    law[std::move(result)] += paths.probability();
  } while (paths.advance());
  return law;
}

/// The exact law of the outputs that `generate` gives: `length` tokens, or fewer where the row turned bad.
template <Model M, Decoder D>
[[nodiscard]] result_law<std::vector<token_id>> sequence_law(M& model, std::span<const token_id> prompt,
                                                             const D& decoder, std::size_t length) {
  return enumerate_law([&](decision_hook& hook) {
    generate_options options;
    options.max_new_tokens = length;
    options.seed = 0;
    options.hook = &hook;
    return generate(model, prompt, decoder, options).tokens;
  });
}

/// A law over tokens in the form that enumerate_law gives.
[[nodiscard]] inline result_law<token_id> as_result_law(const law& from) {
  result_law<token_id> out;
  for (std::size_t i = 0; i < from.size(); ++i) out[from.ids[i]] = from.weights[i] / from.total;
  return out;
}

namespace detail {

/// Calls f(a's probability, b's probability) for every result of either law.
template <class Result, class F>
void for_both(const result_law<Result>& a, const result_law<Result>& b, F f) {
  for (const auto& [result, probability] : a) {
    const auto other = b.find(result);
    f(probability, other == b.end() ? 0.0 : other->second);
  }
  for (const auto& [result, probability] : b) {
    if (!a.contains(result)) f(0.0, probability);
  }
}

}  // namespace detail

/// The largest difference between the probabilities that two laws give to one result.
template <class Result>
[[nodiscard]] double distance(const result_law<Result>& a, const result_law<Result>& b) {
  double largest = 0;
  detail::for_both(a, b, [&](double p, double q) { largest = std::max(largest, std::abs(p - q)); });
  return largest;
}

/// Half the sum of the differences: the largest difference between the probabilities of one set of results.
template <class Result>
[[nodiscard]] double total_variation(const result_law<Result>& a, const result_law<Result>& b) {
  double sum = 0;
  detail::for_both(a, b, [&](double p, double q) { sum += std::abs(p - q); });
  return sum / 2;
}

}  // namespace decant::testing
