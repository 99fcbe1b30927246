// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <decant/chain/any.hpp>
#include <decant/core/draws.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/generate/stopping.hpp>
#include <decant/samplers/multinomial.hpp>
#include <decant/search/any_constraint.hpp>
#include <decant/search/coverage.hpp>
#include <decant/search/diversity.hpp>
#include <decant/search/hypothesis_links.hpp>
#include <decant/search/length_penalty.hpp>

namespace decant {

/// When a search stops looking for something better. All but first_n with a `patience` need as many finished hypotheses
/// as the search is wide.
enum class early_stopping : std::uint8_t {
  first_n,               ///< as soon as that many have finished (and `patience` times as many, if it is set)
  heuristic,             ///< when the best live one, scored as if it ended now, does not beat the worst finished one
  heuristic_with_ended,  ///< as heuristic, but for the best continuation of the step, which may have ended: as Hugging
                         ///< Face did before 4.50, and in its group beam search
  exact,  ///< when no live one can still beat the worst finished one, at whatever length it ends: as long
          ///< as no step adds to a log-probability, which raised logits without `renormalise` may do
};

/// What became of a continuation that was among the best of its step.
enum class candidate_fate : std::uint8_t {
  live,         ///< it goes on
  finished,     ///< it ended and is kept
  outranked,    ///< it would go on, but enough better ones do
  ended_low,    ///< it ended, but as many better ones as the search is wide came before it
  not_kept,     ///< it ended, and worse than all that are kept
  unfulfilled,  ///< it had to end here, and the constraint does not allow that
};

/// A candidate fate in words.
constexpr const char* to_string(candidate_fate fate) noexcept {
  switch (fate) {
    case candidate_fate::live: return "live";
    case candidate_fate::finished: return "finished";
    case candidate_fate::outranked: return "outranked";
    case candidate_fate::ended_low: return "ended too low";
    case candidate_fate::not_kept: return "not kept";
    case candidate_fate::unfulfilled: return "constraint not fulfilled";
  }
  return "unknown";
}

/// One of the best continuations of a step, and what became of it.
struct beam_candidate {
  std::size_t step = 0;  ///< from 0
  std::size_t group = 0;
  std::size_t rank = 0;                ///< among the candidates of its group, from 0
  hypothesis_link parent = root_link;  ///< the hypothesis that it continues
  hypothesis_link node = no_link;      ///< what it is called if it is live or finished
  token_id token = no_token;
  double token_log_prob = 0;  ///< of this token, as processed
  double log_prob = 0;        ///< of all its tokens
  double diversity = 0;       ///< what dissimilarity has added so far
  candidate_fate fate = candidate_fate::live;
};

/// A step of a search as seen by a stream.
struct beam_step {
  std::span<const token_id> tokens;  ///< what has become common to all that may still be the result; final
  std::size_t step = 0;              ///< from 0
  std::size_t live = 0;              ///< hypotheses that go on
  std::size_t finished = 0;          ///< hypotheses that ended so far
};

/// Tokens drawn rather than taken from the top: beam sampling.
///
/// From every live hypothesis `draws` different tokens are drawn, one after another without replacement, from the law
/// that the sampler makes of its processed row; the first step, where there is one hypothesis, draws as many as all
/// would. All that are drawn then compete by score, as ever. With a width and one draw of 1 this is ancestral sampling.
/// The draws of the hypothesis of rank r at step t come from the stream's child t, with index r.
struct beam_sampling {
  any_sampler sampler = multinomial{};  ///< needs a law; what it leaves of the row must stand as it stood
  std::size_t draws = 2;
};

/// How to search. Everything has a default that leaves the rest effective.
struct beam_options {
  std::size_t width = 4;             ///< live hypotheses, and finished ones kept
  std::size_t n_best = 1;            ///< how many to return at most; 1 .. width
  std::size_t max_new_tokens = 256;  ///< at least 1
  std::size_t min_new_tokens = 0;    ///< so many tokens come before an end token
  std::size_t context_length = 0;    ///< prompt and output together; 0: what the model's sequence_length() says, if any

  std::vector<token_id> end_tokens{};  ///< a hypothesis ends with any of them
  any_criterion stop{};  ///< what else ends a hypothesis; asked of every candidate, so it may keep no state

  decant::length_penalty length_penalty{};
  coverage_options coverage{};
  decant::early_stopping early_stopping = decant::early_stopping::heuristic;
  double patience = 1;  ///< for first_n; > 0, and infinite runs to the maximum length

  /// Run on the log-probabilities of every row, with the hypothesis as context. They may keep no state.
  dynamic_chain processors{};
  /// Whether log-probabilities come from sums of exponentials in double; else, above 4,096 tokens, they are within
  /// 4e-6, which takes a tenth of the time.
  bool exact_sums = false;
  bool renormalise = false;  ///< whether what they, and a constraint, leave is made a distribution again

  diversity_options diversity{};
  std::optional<beam_sampling> sampling{};
  any_constraint constraint{};  ///< starts at the first new token

  std::uint64_t seed = 0;         ///< of sampling, and of processors that toss coins
  std::uint64_t sequence = 0;     ///< names this request among those with one seed
  decision_hook* hook = nullptr;  ///< for tests: makes the random decisions

  std::function<bool(const beam_step&)> on_step{};            ///< called after every step; false cancels
  std::function<void(const beam_candidate&)> on_candidate{};  ///< called with the best candidates of every step

  /// The first rule that is broken, if one is. A search raises parameter_error for it.
  [[nodiscard]] std::optional<parameter_fault> validate() const {
    const auto fault = [](std::string_view parameter, double value, std::string_view rule) {
      return parameter_fault{"beam_search", parameter, value, rule};
    };
    if (width < 1) return fault("width", static_cast<double>(width), "must be >= 1");
    if (n_best < 1 || n_best > width) return fault("n_best", static_cast<double>(n_best), "must lie in [1, width]");
    if (max_new_tokens < 1) return fault("max_new_tokens", static_cast<double>(max_new_tokens), "must be >= 1");
    if (min_new_tokens > max_new_tokens) {
      return fault("min_new_tokens", static_cast<double>(min_new_tokens), "must be <= max_new_tokens");
    }
    if (!(patience > 0) || math::is_nan(patience)) return fault("patience", patience, "must be > 0");
    if (sampling && sampling->draws < 1) return fault("draws", static_cast<double>(sampling->draws), "must be >= 1");
    if (const auto broken = coverage.validate()) return broken;
    return diversity.validate(width);
  }
};

/// Why a search ended.
enum class search_end : std::uint8_t {
  none,       ///< it has not
  enough,     ///< first_n: enough have finished
  settled,    ///< the finished ones will not be beaten (heuristic, exact)
  length,     ///< what is left has the maximum length, or fills the context
  exhausted,  ///< nothing can be continued
  cancelled,  ///< the callback said so
};

/// A search end in words.
constexpr const char* to_string(search_end end) noexcept {
  switch (end) {
    case search_end::none: return "not ended";
    case search_end::enough: return "enough finished";
    case search_end::settled: return "settled";
    case search_end::length: return "length";
    case search_end::exhausted: return "exhausted";
    case search_end::cancelled: return "cancelled";
  }
  return "unknown";
}

/// An output of a search.
struct hypothesis {
  std::vector<token_id> tokens;  ///< without the prompt; an end token stands last
  double log_prob = 0;           ///< sum of the tokens' log-probabilities, as processed
  double score = 0;              ///< what results are ordered by: with length and coverage
  double diversity = 0;          ///< what dissimilarity has added on the way; in the score only with penalty::in_score
  double coverage = 0;           ///< the score's part for coverage
  finish_reason finish = finish_reason::none;
  token_id end_token = no_token;  ///< which end token, for finish_reason::stop_token
  std::size_t group = 0;
};

/// What a search came to.
struct beam_result {
  std::vector<hypothesis> hypotheses;  ///< best first; fewer than asked for, or none, if no more were found
  search_end end = search_end::none;   ///< of groups, why the last one ended
  /// not_finite if the model gave such a row to any hypothesis, which then ended without a result; empty if there is no
  /// result because nothing could be continued; else ok.
  row_status status = row_status::ok;
  std::size_t steps = 0;

  /// The best, if there is one.
  [[nodiscard]] const hypothesis* best() const { return hypotheses.empty() ? nullptr : &hypotheses.front(); }
};

}  // namespace decant
