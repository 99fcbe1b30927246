// SPDX-License-Identifier: MIT
#pragma once

// What looks at the text so far: penalties, n-grams, DRY, lengths, thinking.

#include "eager_support.hpp"

#include <decant/processors/dry.hpp>
#include <decant/processors/encoder_no_repeat_ngram.hpp>
#include <decant/processors/encoder_repetition_penalty.hpp>
#include <decant/processors/exponential_decay_length.hpp>
#include <decant/processors/frequency_penalty.hpp>
#include <decant/processors/history.hpp>
#include <decant/processors/no_repeat_ngram.hpp>
#include <decant/processors/presence_penalty.hpp>
#include <decant/processors/repetition_penalty.hpp>
#include <decant/processors/sequence_breakers.hpp>
#include <decant/processors/thinking_budget.hpp>
#include <decant/processors/vocabulary_bytes.hpp>

namespace eager {

inline history_scope random_scope(const situation& s) {
  history_scope scope;
  if (s.roll.one_in(2)) scope.window = s.roll.below(8);
  if (s.roll.one_in(2)) scope.prompt = s.roll.one_in(2);
  if (s.roll.one_in(3)) scope.ignore_prompt_prefix = s.roll.below(6);
  return scope;
}

/// The tokens that a scope leaves, one by one.
inline tokens seen(const situation& s, const history_scope& scope, bool prompt_by_default) {
  const tokens all = s.all();
  const bool prompt = scope.prompt.value_or(prompt_by_default);
  tokens out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool in_prompt = i < s.context.prompt_size;
    if (in_prompt && (!prompt || i < scope.ignore_prompt_prefix)) continue;
    if (scope.window == 0 || all.size() - i <= scope.window) out.push_back(all[i]);
  }
  return out;
}

inline step make_repetition_penalty(const situation& s) {
  const double penalty = s.roll.one_of({0.5, 1.0, 1.25, 2.0, 1.1});
  const penalty_form form = s.roll.one_in(3) ? penalty_form::ctrl_paper : penalty_form::never_raises;
  const history_scope scope = random_scope(s);
  const tokens penalised = distinct(seen(s, scope, true));
  return {repetition_penalty(penalty, form, scope), [=](judged_row& row) {
            if (penalty == 1) return;
            for (const token_id id : penalised) {
              const double z = static_cast<double>(row.logit(id));
              if (!math::is_finite(z)) continue;
              const bool divide = form == penalty_form::ctrl_paper || z > 0;
              row.set(id, math::saturated(divide ? z / penalty : z * penalty));
            }
          }};
}

inline step make_frequency_penalty(const situation& s) {
  const double penalty = s.roll.one_of({-0.5, 0.0, 0.3, 1.0});
  const history_scope scope = random_scope(s);
  const tokens text = seen(s, scope, false);
  return {frequency_penalty(penalty, scope), [=](judged_row& row) {
            if (penalty == 0) return;
            for (const token_id id : distinct(text)) {
              const auto count = static_cast<double>(std::count(text.begin(), text.end(), id));
              row.add(id, static_cast<float>(-penalty * count));
            }
          }};
}

inline step make_presence_penalty(const situation& s) {
  const double penalty = s.roll.one_of({-0.5, 0.0, 0.3, 1.0});
  const history_scope scope = random_scope(s);
  const tokens penalised = distinct(seen(s, scope, false));
  return {presence_penalty(penalty, scope), [=](judged_row& row) {
            if (penalty == 0) return;
            for (const token_id id : penalised) row.add(id, static_cast<float>(-penalty));
          }};
}

/// The tokens that complete an n-gram of `source` after `text`.
inline tokens completions(const tokens& source, const tokens& text, std::size_t n) {
  tokens out;
  if (n == 0 || text.size() + 1 < n) return out;
  const tokens end(text.end() - static_cast<std::ptrdiff_t>(n - 1), text.end());
  for (std::size_t i = n - 1; i < source.size(); ++i) {
    if (ends_with(source, i, end)) out.push_back(source[i]);
  }
  return out;
}

inline step make_no_repeat_ngram(const situation& s) {
  const std::size_t n = s.roll.below(4);
  const tokens banned = completions(s.all(), s.all(), n);
  return {no_repeat_ngram(static_cast<std::int64_t>(n)), [=](judged_row& row) { ban_all(row, banned); }};
}

inline step make_encoder_no_repeat_ngram(const situation& s) {
  const std::size_t n = s.roll.below(4);
  const tokens source = s.text(s.roll.below(10));
  const tokens banned = completions(source, s.all(), n);
  return {encoder_no_repeat_ngram(static_cast<std::int64_t>(n), source),
          [=](judged_row& row) { ban_all(row, banned); }};
}

inline step make_encoder_repetition_penalty(const situation& s) {
  const double penalty = s.roll.one_of({0.5, 1.0, 1.25, 2.0, 1.1});
  const tokens source = s.text(s.roll.below(10));
  return {encoder_repetition_penalty(penalty, source), [=](judged_row& row) {
            if (penalty == 1) return;
            for (const token_id id : distinct(source)) {
              const double z = static_cast<double>(row.logit(id));
              if (math::is_finite(z)) row.set(id, math::saturated(z > 0 ? z * penalty : z / penalty));
            }
          }};
}

inline step make_exponential_decay_length(const situation& s) {
  const std::size_t start = s.roll.below(8), length = s.output().size();
  const double factor = s.roll.one_of({0.5, 1.0, 1.25, 2.0});
  const tokens ends = distinct(s.ids(s.roll.below(4)));
  return {exponential_decay_length(static_cast<std::int64_t>(start), factor, ends), [=](judged_row& row) {
            if (factor == 1 || length <= start) return;
            const double growth = power(factor, length - start) - 1;
            for (const token_id id : ends) {
              const double z = static_cast<double>(row.logit(id));
              if (z != 0 && math::is_finite(z)) row.set(id, math::saturated(z + math::product(std::abs(z), growth)));
            }
          }};
}

// ---- DRY

/// A text as bytes, and which token each byte is of.
struct spelt_text {
  std::string bytes;
  std::vector<std::size_t> owner;

  void append(token_id id, std::size_t place) {
    for (const char byte : bytes_of(id)) {
      bytes += byte;
      owner.push_back(place);
    }
  }
};

/// Which tokens lie within an occurrence of a breaker, at least with a byte or between two that do.
inline std::vector<bool> broken(const tokens& text, const std::vector<std::string>& breakers) {
  spelt_text spelt;
  for (std::size_t i = 0; i < text.size(); ++i) spelt.append(text[i], i);
  std::vector<bool> out(text.size());
  for (const std::string& breaker : breakers) {
    for (std::size_t at = 0; at + breaker.size() <= spelt.bytes.size(); ++at) {
      if (spelt.bytes.compare(at, breaker.size(), breaker) != 0) continue;
      for (std::size_t i = spelt.owner[at]; i <= spelt.owner[at + breaker.size() - 1]; ++i) out[i] = true;
    }
  }
  return out;
}

/// Whether a breaker ends in the token that comes after the text.
inline bool breaks(const tokens& text, token_id next, const std::vector<std::string>& breakers) {
  std::string bytes;
  for (const token_id id : text) bytes += bytes_of(id);
  const std::size_t before = bytes.size();
  bytes += bytes_of(next);
  for (const std::string& breaker : breakers) {
    for (std::size_t end = before + 1; end <= bytes.size(); ++end) {
      if (end >= breaker.size() && bytes.compare(end - breaker.size(), breaker.size(), breaker) == 0) return true;
    }
  }
  return false;
}

inline step make_dry(const situation& s) {
  dry_options options;
  options.multiplier = s.roll.one_of({0.8, 0.0, 2.0, 0.25});
  options.base = s.roll.one_of({1.75, 1.0, 1.5, 0x1p100});
  options.allowed_length = s.roll.below(4);
  options.range = s.roll.one_in(2) ? 0 : s.roll.below(12);
  options.penalise_breakers = s.roll.one_in(3);
  std::vector<std::string> breakers;
  switch (s.roll.below(5)) {
    case 0: break;
    case 1: breakers = sequence_breakers::usual(); break;
    case 2: breakers = {"ab", "b", "\nb\n"}; break;
    case 3: breakers = {"\xC3\xA9", "a"}; break;
    default: breakers = {"b\nab", "\n"};
  }
  tokens text = s.all();
  if (options.range > 0 && options.range < text.size())
    text.erase(text.begin(), text.end() - static_cast<std::ptrdiff_t>(options.range));
  const std::vector<bool> is_broken = broken(text, breakers);
  // Per token, the longest repeat that it would continue; -1 for none.
  std::vector<std::pair<token_id, std::size_t>> repeats;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::size_t length = 0;
    while (length < i && text[i - 1 - length] == text[text.size() - 1 - length] && !is_broken[i - 1 - length] &&
           !is_broken[text.size() - 1 - length])
      ++length;
    if (length < options.allowed_length) continue;
    const auto known = std::find_if(repeats.begin(), repeats.end(), [&](const auto& r) { return r.first == text[i]; });
    if (known == repeats.end())
      repeats.emplace_back(text[i], length);
    else
      known->second = std::max(known->second, length);
  }
  std::vector<std::pair<token_id, float>> losses;
  const std::size_t most = options.base == 0x1p100 ? 1 : 1000;  // the largest float is below 2^128
  for (const auto& [id, length] : repeats) {
    if (!options.penalise_breakers && breaks(text, id, breakers)) continue;
    const double factor = power(options.base, std::min(length - options.allowed_length, most));
    losses.emplace_back(id, math::saturated(-math::product(options.multiplier, factor)));
  }
  const vocabulary_bytes bytes = breakers.empty() ? vocabulary_bytes() : vocabulary_bytes(bytes_of, s.n);
  return {dry(options, sequence_breakers(breakers, bytes)), [=](judged_row& row) {
            if (options.multiplier == 0) return;
            for (const auto& [id, loss] : losses) row.add(id, loss);
          }};
}

// ---- thinking

/// Whether a well-formed text could not end here: the last bytes begin a character and do not end it.
inline bool inside_character(std::string_view bytes) {
  for (std::size_t size = 1; size <= std::min<std::size_t>(3, bytes.size()); ++size) {
    const std::string_view end = bytes.substr(bytes.size() - size);
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(end[i]); };
    const unsigned lead = byte(0);
    const std::size_t whole = lead >= 0xC2 && lead <= 0xDF   ? 2
                              : lead >= 0xE0 && lead <= 0xEF ? 3
                              : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                             : 0;
    bool fits = size < whole;
    for (std::size_t i = 1; i < size; ++i) fits = fits && byte(i) >= 0x80 && byte(i) <= 0xBF;
    if (fits && size > 1) {
      const unsigned second = byte(1);
      fits = second >= (lead == 0xE0   ? 0xA0U
                        : lead == 0xF0 ? 0x90U
                                       : 0x80U) &&
             second <= (lead == 0xED   ? 0x9FU
                        : lead == 0xF4 ? 0x8FU
                                       : 0xBFU);
    }
    if (fits) return true;
  }
  return false;
}

inline step make_thinking_budget(const situation& s) {
  const auto budget = static_cast<std::int64_t>(s.roll.below(6)) - 1;
  thinking_markers markers;
  markers.start = s.text(1 + s.roll.below(2));
  markers.end = s.text(1 + s.roll.below(2));
  if (s.roll.one_in(2)) markers.forced = s.text(1 + s.roll.below(3));
  markers.prompt = s.roll.one_in(2);
  const bool with_bytes = s.roll.one_in(2);

  const tokens forced = markers.forced.empty() ? markers.end : markers.forced;
  const tokens text = markers.prompt ? s.all() : s.output();
  // How much of `forced` stands at the end of what has been thought, and what of the text that is.
  tokens thought, waiting;
  bool thinking = false, forcing = false;
  const auto written = [&] {
    std::size_t count = forced.size() - 1;
    while (!ends_with(thought, thought.size(), std::span(forced).first(count))) --count;
    return count;
  };
  const auto look = [&] {
    std::string spelt;
    for (const token_id id : thought) spelt += with_bytes ? bytes_of(id) : std::string_view();
    const bool over = thought.size() >= static_cast<std::size_t>(budget);
    forcing = thinking && (forcing || (over && !inside_character(spelt)));
  };
  if (budget >= 0) {
    for (const token_id id : text) {
      if (!thinking) {
        waiting.push_back(id);
        if (ends_with(waiting, waiting.size(), markers.start)) {
          thinking = true;
          thought.clear();
        }
      } else {
        const std::size_t place = written();
        const bool as_forced = forcing && id == forced[place];
        thought.push_back(id);
        const bool done = as_forced ? place + 1 == forced.size() : ends_with(thought, thought.size(), markers.end);
        if (done) {
          thinking = false;
          waiting.clear();
        }
      }
      look();
    }
  }
  const token_id next = forcing ? forced[written()] : no_token;
  const vocabulary_bytes bytes = with_bytes ? vocabulary_bytes(bytes_of, s.n) : vocabulary_bytes();
  return {thinking_budget(budget, markers, bytes), [=](judged_row& row) {
            if (next == no_token) return;
            row.keep_if([&](token_id id) { return id == next; });
            row.set(next, 0);
          }};
}

}  // namespace eager
