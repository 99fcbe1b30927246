// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <decant/chain/steps.hpp>
#include <decant/core/candidates.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/law.hpp>

namespace decant {

/// What became of one token on its way through a chain.
struct explanation {
  bool survives = false;       ///< whether it can be drawn
  std::string step;            ///< the step that removed it; "row" if it came as -inf, empty if it survives
  std::size_t step_index = 0;  ///< that step's place, counting steps that are off too
  float logit = gone;          ///< as it stood before that step, or at the end
  double probability = 0;      ///< the same
  std::size_t rank = 0;        ///< its place in descending order then, from 1; 0 if it came as -inf
  std::size_t tokens_before = 0, tokens_after = 0;  ///< how many were left before and after that step
  std::string reason;                               ///< all of this as a sentence
};

/// What one step did to a row.
struct step_effect {
  std::string step;         ///< as describe() gives it
  std::size_t removed = 0;  ///< how many tokens it removed
  bool idle = false;        ///< whether it changed nothing: neither which tokens are left nor their law
};

namespace detail {

/// The effects, with the row bound; `steps` are run one by one.
inline std::vector<step_effect> effects_of_steps(candidates& row, const step_context& context,
                                                 const std::vector<chain_step>& steps) {
  std::vector<step_effect> effects;
  law before = row.probabilities();
  std::size_t size = row.size();
  for (const chain_step& step : steps) {
    step.apply(step.processor, row, context);
    law after = row.probabilities();
    const std::size_t left = row.size();
    effects.push_back({step.name, size > left ? size - left : 0, left == size && after == before});
    before = std::move(after);
    size = left;
  }
  return effects;
}

inline void measure(candidates& row, token_id id, explanation& out) {
  out.logit = row.logit(id);
  out.tokens_before = out.tokens_after = row.size();
  if (row.status() != row_status::ok || is_gone(out.logit)) return;
  out.probability = math::exp(row.log_probability(id));
  out.rank = row.rank(id);
}

inline std::string standing(const explanation& e) {
  return "logit " + number_text(e.logit) + ", probability " + number_text(std::round(e.probability * 1e6) / 1e6) +
         ", rank " + number_text(e.rank) + " of " + number_text(e.tokens_before);
}

/// Explains with the row bound; `steps` are run one by one.
inline explanation explain_steps(candidates& row, const step_context& context, token_id id,
                                 const std::vector<chain_step>& steps) {
  explanation out;
  if (is_gone(row.logit(id))) {
    out.step = "row";
    out.reason = "the row itself holds -inf at this token";
    return out;
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    explanation before;
    measure(row, id, before);
    steps[i].apply(steps[i].processor, row, context);
    if (!is_gone(row.logit(id))) continue;
    out = before;
    out.step = steps[i].name;
    out.step_index = i;
    out.tokens_after = row.size();
    out.reason = out.step + " removed it: " + standing(before) + "; ";
    if (row.status() != row_status::ok)
      return out.reason += std::string("the row is now ") + to_string(row.status()), out;
    const entry last = row.descending(out.tokens_after).back();
    out.reason += number_text(out.tokens_after) + " left, down to logit " + number_text(last.logit) + " of token " +
                  number_text(last.id);
    return out;
  }
  measure(row, id, out);
  if (row.status() != row_status::ok) {
    out.reason = std::string("nothing can be drawn: the row is ") + to_string(row.status());
    return out;
  }
  out.survives = true;
  out.reason = "it survives: " + standing(out);
  return out;
}

}  // namespace detail

/// Says what every step of a processor does to a row: which ones remove tokens, and which are idle, because an earlier
/// step has left them nothing to do. Draws nothing and changes neither the row nor any state. For people: two laws a
/// step.
template <class Row, LogitsProcessor P>
[[nodiscard]] std::vector<step_effect> effects(Row&& logits, const step_context& context, P processor) {
  std::vector<chain_step> steps;
  list_steps(processor, steps);
  candidates row;
  row.bind(logits);
  return detail::effects_of_steps(row, context, steps);
}

/// Says which step of a processor removes a token from a row, and why. Draws nothing and changes neither the row nor
/// any state. For people: one full measurement a step.
template <class Row, LogitsProcessor P>
[[nodiscard]] explanation explain(Row&& logits, const step_context& context, token_id id, P processor) {
  std::vector<chain_step> steps;
  list_steps(processor, steps);
  candidates row;
  row.bind(logits);
  return detail::explain_steps(row, context, id, steps);
}

}  // namespace decant
