// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <decant/core/context.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/math/scalar.hpp>

namespace decant {

/// What a dissimilarity may look at: a hypothesis about to be extended, and what the groups before its own did.
struct diversity_step {
  std::size_t group = 0;               ///< from 1: the first group is never compared
  std::span<const token_id> chosen{};  ///< the tokens with which the groups before go on from this step
  step_context context{};              ///< the hypothesis
};

/// A token, and what is added to its rank; negative for one that is too like the others.
struct token_dissimilarity {
  token_id token = no_token;
  double amount = 0;
};

/// Appends the tokens whose rank changes, none of them twice; those not listed stay as they are.
using dissimilarity = std::function<void(const diversity_step&, std::vector<token_dissimilarity>&)>;

/// Hamming dissimilarity: minus the number of hypotheses of earlier groups that chose the token at this step.
inline void hamming_dissimilarity(const diversity_step& step, std::vector<token_dissimilarity>& out) {
  const std::size_t begin = out.size();
  for (const token_id token : step.chosen) {
    const auto known = std::find_if(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(),
                                    [&](const token_dissimilarity& listed) { return listed.token == token; });
    if (known == out.end()) {
      out.push_back({token, -1});
    } else {
      known->amount -= 1;
    }
  }
}

/// What a diversity penalty is part of.
enum class penalty : std::uint8_t {
  ranks_only,  ///< it decides who goes on from this step, and scores are log-probabilities
  in_score,    ///< it stays in the running score, as in Hugging Face's group beam search
};

/// Beams in groups that are to differ: each group ranks a token lower the more it is like what the groups before it
/// chose at the same step.
///
/// The first group is never penalised. Off: one group; with strength 0 all groups are the same.
/// Reference: Vijayakumar et al., "Diverse beam search", AAAI 2018, arXiv 1610.02424.
struct diversity_options {
  std::size_t groups = 1;  ///< must divide the width
  double strength = 0;     ///< what a dissimilarity is multiplied by; >= 0
  dissimilarity measure = hamming_dissimilarity;
  penalty counts = penalty::ranks_only;
  /// What a group that has ended is taken to choose at every step from then on, once for each of its hypotheses: the
  /// padding token for Hugging Face's results. Absent: nothing.
  std::optional<token_id> ended_choice{};

  [[nodiscard]] std::optional<parameter_fault> validate(std::size_t width) const {
    constexpr std::string_view policy = "diverse_beam_search";
    if (groups == 0 || width % groups != 0) {
      return parameter_fault{policy, "groups", static_cast<double>(groups), "must divide the width"};
    }
    if (!(strength >= 0) || !math::is_finite(strength)) {
      return parameter_fault{policy, "strength", strength, "must be a finite number >= 0"};
    }
    return {};
  }
};

}  // namespace decant
