// SPDX-License-Identifier: MIT
#pragma once

// Every policy of include/decant/processors twice: a random library step, and its definition on the eager row. To add a
// policy, write its function in one of the files below and name it here: the name is that of its header.

#include "eager_bans.hpp"
#include "eager_penalties.hpp"
#include "eager_truncations.hpp"
#include "eager_verbs.hpp"
#include "eager_watermarks.hpp"

namespace eager {

inline constexpr std::array policies{
    kind{"allowed_tokens", make_allowed_tokens},
    kind{"bad_words", make_bad_words},
    kind{"confidence_increment", make_confidence_increment},
    kind{"dry", make_dry},
    kind{"dynamic_temperature", make_dynamic_temperature},
    kind{"edt", make_edt},
    kind{"encoder_no_repeat_ngram", make_encoder_no_repeat_ngram},
    kind{"encoder_repetition_penalty", make_encoder_repetition_penalty},
    kind{"epsilon_cutoff", make_epsilon_cutoff},
    kind{"eta_cutoff", make_eta_cutoff},
    kind{"exponential_decay_length", make_exponential_decay_length},
    kind{"forced_bos", make_forced_bos},
    kind{"forced_eos", make_forced_eos},
    kind{"frequency_penalty", make_frequency_penalty},
    kind{"green_list_watermark", make_green_list_watermark},
    kind{"logit_bias", make_logit_bias},
    kind{"min_length", make_min_length},
    kind{"min_new_tokens", make_min_new_tokens},
    kind{"min_p", make_min_p},
    kind{"no_repeat_ngram", make_no_repeat_ngram},
    kind{"p_less", make_p_less},
    kind{"p_less_norm", make_p_less_norm},
    kind{"prefix_allowed_tokens", make_prefix_allowed_tokens},
    kind{"presence_penalty", make_presence_penalty},
    kind{"quadratic", make_quadratic},
    kind{"remove_invalid_values", make_remove_invalid_values},
    kind{"renormalise", make_renormalise},
    kind{"repetition_penalty", make_repetition_penalty},
    kind{"sequence_bias", make_sequence_bias},
    kind{"suppress_at_begin", make_suppress_at_begin},
    kind{"suppress_tokens", make_suppress_tokens},
    kind{"synthid_watermark", make_synthid_watermark},
    kind{"tail_free", make_tail_free},
    kind{"temperature", make_temperature},
    kind{"thinking_budget", make_thinking_budget},
    kind{"top_a", make_top_a},
    kind{"top_h", make_top_h},
    kind{"top_k", make_top_k},
    kind{"top_n_sigma", make_top_n_sigma},
    kind{"top_p", make_top_p},
    kind{"typical", make_typical},
    kind{"unigram_watermark", make_unigram_watermark},
    kind{"xtc", make_xtc},
};

/// The verbs of candidates, as a user's own processor may call them.
inline constexpr std::array verbs{
    kind{"add", make_add},
    kind{"affine", make_affine},
    kind{"allow a mask", make_allow_mask},
    kind{"ban the top", make_ban_the_top},
    kind{"keep_above by sigma", make_keep_above},
    kind{"keep_above by the log_sum of power 2", make_keep_above_power},
    kind{"keep_mass around the entropy", make_keep_mass_around},
    kind{"rewrite", make_rewrite},
    kind{"set", make_set},
    kind{"transform", make_transform},
};

inline constexpr std::size_t kinds = policies.size() + verbs.size();

inline const kind& kind_at(std::size_t i) { return i < policies.size() ? policies[i] : verbs[i - policies.size()]; }

}  // namespace eager
