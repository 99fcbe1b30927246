// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <decant/chain/any.hpp>
#include <decant/chain/decoder.hpp>
#include <decant/core/candidates.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/context.hpp>
#include <decant/core/errors.hpp>
#include <decant/generate/limits.hpp>
#include <decant/generate/output.hpp>
#include <decant/generate/stopping.hpp>
#include <decant/math/scalar.hpp>
#include <decant/search/owned_sequence.hpp>

namespace decant {

/// The hidden states of a text, which say how much another one repeats: the greatest cosine with any of them.
///
/// Scaling all states changes nothing. A state of length 0, or with a number that is not finite, is like nothing: its
/// cosine with any other is 0. Sums in double. O(states * dim) a question.
class degeneration_penalty {
 public:
  void clear() {
    numbers_.clear();
    inverse_norms_.clear();
  }

  /// Adds the state of the next token. Misuse: a state of another size than those before.
  void add(std::span<const float> state) {
    DECANT_ASSERT(inverse_norms_.empty() || state.size() * inverse_norms_.size() == numbers_.size(),
                  "hidden states of one text have one size");
    numbers_.insert(numbers_.end(), state.begin(), state.end());
    inverse_norms_.push_back(inverse_norm(state));
  }

  /// The number of states.
  [[nodiscard]] std::size_t size() const { return inverse_norms_.size(); }

  /// In [-1, 1]; 0 of no states at all.
  [[nodiscard]] double operator()(std::span<const float> state) const {
    if (inverse_norms_.empty()) return 0;
    DECANT_ASSERT(state.size() * size() == numbers_.size(), "hidden states of one text have one size");
    const double own = inverse_norm(state);
    double greatest = -1;
    for (std::size_t j = 0; j < size(); ++j) {
      const double norms = own * inverse_norms_[j];
      greatest = std::max(greatest, norms > 0 ? dot(state, of(j)) * norms : 0);
    }
    return std::min(greatest, 1.0);
  }

 private:
  [[nodiscard]] std::span<const float> of(std::size_t j) const {
    const std::size_t dim = numbers_.size() / size();
    return std::span(numbers_).subspan(j * dim, dim);
  }

  static double dot(std::span<const float> a, std::span<const float> b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return sum;
  }

  /// 0 for what has no direction.
  static double inverse_norm(std::span<const float> state) {
    const bool finite = std::all_of(state.begin(), state.end(), [](const float& x) { return math::is_finite(x); });
    const double squares = finite ? dot(state, state) : 0;
    return squares > 0 ? 1 / std::sqrt(squares) : 0;
  }

  std::vector<float> numbers_;
  std::vector<double> inverse_norms_;
};

/// A token that contrastive search looks at, and what it thinks of it.
struct contrastive_candidate {
  token_id token = no_token;
  double probability = 0;  ///< under the processed row
  double similarity = 0;   ///< the greatest cosine of its hidden state with those of all tokens before it
  double score = 0;        ///< (1 - alpha) * probability - alpha * similarity
  double log_prob = 0;     ///< of the probability
};

/// Scores candidates and returns the place of the best, the first among equals. There must be one.
inline std::size_t choose_contrastive(std::span<contrastive_candidate> candidates, double alpha) {
  DECANT_ASSERT(!candidates.empty(), "no candidates to choose from");
  for (contrastive_candidate& c : candidates) c.score = (1 - alpha) * c.probability - alpha * c.similarity;
  const auto worse = [](const auto& a, const auto& b) { return a.score < b.score; };
  return static_cast<std::size_t>(std::max_element(candidates.begin(), candidates.end(), worse) - candidates.begin());
}

/// A step of contrastive search as seen by a callback; valid during the call.
struct contrastive_step {
  std::span<const contrastive_candidate> candidates;  ///< most probable first
  std::size_t chosen = 0;                             ///< the place of the one taken
};

/// How to search. Everything has a default that leaves the rest effective.
struct contrastive_options {
  std::size_t k = 4;   ///< how many of the most probable tokens are looked at
  double alpha = 0.6;  ///< the weight of the degeneration penalty; 0 is greedy decoding

  std::size_t max_new_tokens = 256;  ///< 0 generates nothing
  std::size_t context_length = 0;    ///< prompt and output together; 0: what the model's sequence_length() says, if any

  std::vector<token_id> end_tokens{};  ///< the output ends with any of them
  any_criterion stop{};                ///< what else ends it

  dynamic_chain processors{};  ///< run on every row before its most probable tokens are taken
  std::uint64_t seed = 0;      ///< for processors that toss coins; the search itself draws nothing
  std::uint64_t sequence = 0;  ///< names this request among those with one seed

  std::function<bool(const contrastive_step&)> on_step{};  ///< called after every token; false cancels

  /// The first rule that is broken, if one is. A search raises parameter_error for it.
  [[nodiscard]] std::optional<parameter_fault> validate() const {
    constexpr std::string_view name = "contrastive_search";
    if (k < 1) return parameter_fault{name, "k", static_cast<double>(k), "must be >= 1"};
    if (math::is_nan(alpha) || !(alpha >= 0 && alpha <= 1)) {
      return parameter_fault{name, "alpha", alpha, "must lie in [0, 1]"};
    }
    return {};
  }
};

/// What a contrastive search came to.
struct contrastive_result {
  std::vector<token_id> tokens;  ///< without the prompt; an end token stands last
  double log_prob = 0;           ///< sum of the tokens' log-probabilities, as processed
  finish_reason finish = finish_reason::none;
  token_id end_token = no_token;       ///< which end token, for finish_reason::stop_token
  row_status status = row_status::ok;  ///< why, for finish_reason::bad_row
  std::size_t model_calls = 0;         ///< passes, that of the prompt among them
};

namespace detail {

/// One contrastive search while it goes on.
template <HiddenStateModel M>
class contrastive_run {
 public:
  contrastive_run(M& model, std::span<const token_id> prompt, contrastive_options options)
      : model_(model),
        options_(std::move(options)),
        tokens_(prompt.begin(), prompt.end()),
        prompt_size_(prompt.size()),
        draws_(options_.seed, options_.sequence) {
    DECANT_ASSERT(!prompt.empty(), "a search needs a prompt of at least one token");
    raise_if(options_.validate());
    adopt_context_of(options_, model);
    if (options_.alpha == 0) options_.k = 1;  // the penalty would decide nothing
  }

  contrastive_result run() && {
    options_.stop.start();
    result_.finish = limit_reached();
    if (result_.finish == finish_reason::none) read_prompt();
    while (result_.finish == finish_reason::none && find_candidates()) {
      if (candidates_.size() == 1) {
        take_only();
      } else {
        look_ahead();
      }
    }
    result_.tokens.assign(tokens_.begin() + static_cast<std::ptrdiff_t>(prompt_size_), tokens_.end());
    return std::move(result_);
  }

 private:
  void read_prompt() {
    sequences_.emplace_back(model_);
    items_.assign(1, sequences_[0].with(tokens_));
    evaluate();
    for (std::size_t j = 0; j < prompt_size_; ++j) seen_.add(model_.hidden(0, j));
  }

  void evaluate() {
    model_.evaluate(std::span<const batch_item>(items_));
    ++result_.model_calls;
  }

  [[nodiscard]] step_context context() const { return context_after(tokens_, prompt_size_, draws_); }

  /// The most probable tokens after what is there; false if the row is bad.
  bool find_candidates() {
    const bound_row bound(row_, without_padding(model_, model_.row(current_)));
    options_.processors(row_, context());
    candidates_.clear();
    for (const entry& e : row_.descending(options_.k)) candidates_.push_back({.token = e.id});
    for (contrastive_candidate& c : candidates_) {
      c.log_prob = row_.log_probability(c.token);
      c.probability = math::exp(c.log_prob);
    }
    if (!candidates_.empty()) return true;
    result_.status = row_.status();
    result_.finish = finish_reason::bad_row;
    return false;
  }

  /// With nothing to choose from, the pass for the next row is needed only if there will be a next token.
  void take_only() {
    accept(0);
    if (result_.finish != finish_reason::none) return;
    items_.assign(1, sequences_[0].with(std::span(tokens_).last(1)));
    evaluate();
    seen_.add(model_.hidden(0, 0));
    current_ = 0;
  }

  /// One pass over all candidates. That of the chosen one has given the next row already.
  void look_ahead() {
    while (sequences_.size() < candidates_.size()) sequences_.push_back(sequences_[0].fork());
    items_.clear();
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      items_.push_back(sequences_[i].with(std::span(&candidates_[i].token, 1)));
    }
    evaluate();
    for (std::size_t i = 0; i < candidates_.size(); ++i) candidates_[i].similarity = seen_(model_.hidden(i, 0));
    current_ = choose_contrastive(candidates_, options_.alpha);
    seen_.add(model_.hidden(current_, 0));
    std::swap(sequences_[0], sequences_[current_]);
    sequences_.erase(sequences_.begin() + 1, sequences_.end());
    accept(current_);
  }

  void accept(std::size_t chosen) {
    const contrastive_candidate& c = candidates_[chosen];
    tokens_.push_back(c.token);
    result_.log_prob += c.log_prob;
    options_.processors.accept(c.token, {c.log_prob, c.log_prob});
    result_.finish = finish_after(c.token);
    const bool go_on = !options_.on_step || options_.on_step({candidates_, chosen});
    if (!go_on && result_.finish == finish_reason::none) result_.finish = finish_reason::cancelled;
  }

  [[nodiscard]] finish_reason finish_after(token_id token) {
    if (is_among(options_.end_tokens, token)) {
      result_.end_token = token;
      return finish_reason::stop_token;
    }
    if (options_.stop(context())) {
      if (options_.stop.why() == finish_reason::stop_token) result_.end_token = token;
      return options_.stop.why();
    }
    return limit_reached();
  }

  [[nodiscard]] finish_reason limit_reached() const {
    return detail::limit_reached(options_, prompt_size_, tokens_.size() - prompt_size_);
  }

  M& model_;
  contrastive_options options_;
  std::vector<token_id> tokens_;
  std::size_t prompt_size_;
  draw_stream draws_;
  contrastive_result result_;

  std::vector<owned_sequence<M>> sequences_;  // the first holds the text, the others its continuations in a lookahead
  std::size_t current_ = 0;                   // the row of the last pass that follows the text
  degeneration_penalty seen_;
  std::vector<contrastive_candidate> candidates_;
  std::vector<batch_item> items_;
  candidates row_;
};

}  // namespace detail

/// Contrastive search: of the k most probable tokens takes the one that weighs probability against repetition best.
///
/// Effect: a candidate's score is (1 - alpha) times its probability (not its logarithm) minus alpha times the greatest
/// cosine of its hidden state, after it has been fed to the model, with that of any token before it, the prompt's among
/// them. Equal scores go to the more probable, then to the lower id. Deterministic. Fewer than k candidates if fewer
/// tokens are left. Of little use with models whose hidden states all point one way: look at the similarities.
/// Complexity: one pass of k tokens for each token, whose hidden states choose it and whose rows serve the next step;
/// O(k * text * dim) for the cosines, which are kept in O(text * dim) memory.
/// Off: alpha = 0, and k = 1, are greedy decoding, one pass of one token each. Errors: parameter_error for k = 0 and
/// for alpha outside [0, 1] (options.validate() tells without exceptions); a row that cannot be decoded ends the output
/// with finish_reason::bad_row. Misuse: an empty prompt.
/// Reference: Su, Lan, Wang, Yogatama, Kong, Collier, "A contrastive framework for neural text generation", NeurIPS
/// 2022, arXiv 2202.06417.
template <HiddenStateModel M>
[[nodiscard]] contrastive_result contrastive_search(M& model, std::span<const token_id> prompt,
                                                    contrastive_options options = {}) {
  return detail::contrastive_run<M>(model, prompt, std::move(options)).run();
}

}  // namespace decant
