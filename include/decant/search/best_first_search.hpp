// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
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
#include <decant/core/draws.hpp>
#include <decant/core/errors.hpp>
#include <decant/generate/limits.hpp>
#include <decant/generate/output.hpp>
#include <decant/generate/stopping.hpp>
#include <decant/math/scalar.hpp>
#include <decant/search/beam_options.hpp>
#include <decant/search/hypothesis_links.hpp>
#include <decant/search/length_penalty.hpp>
#include <decant/search/owned_sequence.hpp>

namespace decant {

/// How to search. Everything has a default that leaves the rest effective.
struct best_first_options {
  std::size_t width = 0;   ///< how many hypotheses of each length are extended at most; 0: all, so the search is exact
  std::size_t n_best = 1;  ///< how many outputs to find; at least 1
  std::size_t max_rows = 100'000;    ///< the budget: how many hypotheses may be extended, each by one row of the model
  std::size_t max_new_tokens = 256;  ///< at least 1
  std::size_t context_length = 0;    ///< prompt and output together; 0: what the model's sequence_length() says, if any

  std::vector<token_id> end_tokens{};  ///< an output ends with any of them
  decant::length_penalty length_penalty{};

  /// A bound for A*: given prompt and output so far, at least the greatest log-probability of whatever may follow. At
  /// most 0, as it stands in for a log-probability; -inf says that nothing can. Empty: 0. One that is too low makes the
  /// search miss what it should find.
  std::function<double(std::span<const token_id>)> heuristic{};

  /// Run on every row, with the hypothesis as context; what they leave is made a distribution again. They may keep no
  /// state.
  dynamic_chain processors{};
  std::uint64_t seed = 0;      ///< for processors that toss coins; the search itself draws nothing
  std::uint64_t sequence = 0;  ///< names this request among those with one seed

  std::function<bool(std::size_t)> on_row{};  ///< called with the number of rows so far; false cancels

  /// The first rule that is broken, if one is. A search raises parameter_error for it.
  [[nodiscard]] std::optional<parameter_fault> validate() const {
    const auto fault = [](std::string_view parameter, std::size_t value) {
      return parameter_fault{"best_first_search", parameter, static_cast<double>(value), "must be >= 1"};
    };
    if (n_best < 1) return fault("n_best", n_best);
    if (max_rows < 1) return fault("max_rows", max_rows);
    if (max_new_tokens < 1) return fault("max_new_tokens", max_new_tokens);
    return {};
  }
};

/// Why a best-first search ended.
enum class best_first_end : std::uint8_t {
  none,       ///< it has not
  settled,    ///< nothing that is left can beat what was found
  exhausted,  ///< there was nothing left: what was found is all there is
  budget,     ///< max_rows is used up: what was found may not be the best
  cancelled,  ///< the callback said so: likewise
};

/// An end in words.
constexpr const char* to_string(best_first_end end) noexcept {
  switch (end) {
    case best_first_end::none: return "not ended";
    case best_first_end::settled: return "settled";
    case best_first_end::exhausted: return "exhausted";
    case best_first_end::budget: return "budget used up";
    case best_first_end::cancelled: return "cancelled";
  }
  return "unknown";
}

/// What a best-first search came to.
struct best_first_result {
  std::vector<hypothesis> hypotheses;  ///< best first; fewer than asked for, or none, if no more were found
  best_first_end end = best_first_end::none;
  /// No output that is not among them scores more than this; none if there is no other, or with a width.
  std::optional<double> bound{};
  /// not_finite if the model gave such a row to any hypothesis, which then ended without a result; empty if there is no
  /// result because nothing could be continued; else ok.
  row_status status = row_status::ok;
  std::size_t rows = 0;  ///< hypotheses that were extended, the empty one among them

  /// The best, if there is one.
  [[nodiscard]] const hypothesis* best() const { return hypotheses.empty() ? nullptr : &hypotheses.front(); }
};

namespace detail {

/// One best-first search while it goes on.
template <BatchModel M>
class best_first_run {
 public:
  best_first_run(M& model, std::span<const token_id> prompt, best_first_options options)
      : model_(model),
        options_(std::move(options)),
        prompt_size_(prompt.size()),
        draws_(options_.seed, options_.sequence),
        text_(prompt.begin(), prompt.end()) {
    DECANT_ASSERT(!prompt.empty(), "a search needs a prompt of at least one token");
    DECANT_ASSERT(!options_.processors.keeps_state(), "processors in a search may keep no state");
    raise_if(options_.validate());
    adopt_context_of(options_, model);
    longest_ = room_left(options_, prompt_size_);
    at_longest_ = limit_reached(options_, prompt_size_, longest_);
    taken_.resize(longest_ + 1);
    extended_.resize(longest_ + 1);
  }

  best_first_result run() && {
    if (longest_ > 0) queue_.push_back({.bound = options_.length_penalty.best(0, 1, longest_)});
    while (result_.end == best_first_end::none) {
      if (result_.hypotheses.size() == options_.n_best) {
        result_.end = best_first_end::settled;
      } else if (queue_.empty()) {
        result_.end = best_first_end::exhausted;
      } else {
        take_next();
      }
    }
    report();
    return std::move(result_);
  }

 private:
  static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);

  /// What waits for its turn: a hypothesis by the one before it and its last token, or an output that is complete.
  struct waiting {
    double bound = 0;               // the best score that can come of it; of an output its score
    double log_prob = 0;            // of all its tokens
    std::uint32_t parent = none;    // the extended hypothesis before it
    std::uint32_t parent_rank = 0;  // among those of its length
    std::uint32_t length = 0;
    token_id token = no_token;
    bool output = false;
  };
  /// A hypothesis that has been extended. Its sequence lives as long as a continuation may need it.
  struct extended {
    hypothesis_link link = root_link;
    owned_sequence<M> sequence{};
    std::size_t open = 0;  // continuations that may still be extended
  };

  /// The order of a heap, least urgent first: the better bound is next; of equal ones outputs, for they cannot be
  /// beaten; then the shorter, whose continuations may be as good; then as in a beam.
  static bool later(const waiting& a, const waiting& b) {
    if (a.bound != b.bound) return a.bound < b.bound;
    if (a.output != b.output) return b.output;
    if (a.length != b.length) return a.length > b.length;
    if (a.parent_rank != b.parent_rank) return a.parent_rank > b.parent_rank;
    return a.token > b.token;
  }

  void push(const waiting& w) {
    queue_.push_back(w);
    std::push_heap(queue_.begin(), queue_.end(), later);
  }

  void take_next() {
    const waiting next = queue_.front();
    if (next.output) {
      keep(pop());
    } else if (complete(next)) {
      // Among equals in length it has its place; as an output it now competes with its score.
      if (has_place(next))
        push(as_output(pop()));
      else
        pop();
    } else if (options_.width > 0 && extended_[next.length] >= options_.width) {
      ++taken_[next.length];
      release(pop().parent);
    } else if (result_.rows == options_.max_rows) {
      result_.end = best_first_end::budget;
    } else {
      const std::size_t rank = taken_[next.length]++;
      ++extended_[next.length];
      extend(pop(), rank);
    }
  }

  waiting pop() {
    std::pop_heap(queue_.begin(), queue_.end(), later);
    const waiting last = queue_.back();
    queue_.pop_back();
    return last;
  }

  [[nodiscard]] bool is_end(token_id token) const { return is_among(options_.end_tokens, token); }
  [[nodiscard]] bool complete(const waiting& w) const {
    return w.length > 0 && (w.length == longest_ || is_end(w.token));
  }

  /// Whether a complete hypothesis is among the best `width` of its length.
  bool has_place(const waiting& w) { return ++taken_[w.length] <= options_.width; }

  [[nodiscard]] waiting as_output(waiting w) {
    w.bound = options_.length_penalty(w.log_prob, w.length);
    w.output = true;
    known_.insert(std::upper_bound(known_.begin(), known_.end(), w.bound, std::greater<>()), w.bound);
    if (known_.size() > options_.n_best) known_.pop_back();
    return w;
  }

  /// Whether as many outputs as are wanted are known to be better. Such a continuation need not wait.
  [[nodiscard]] bool beaten(const waiting& w) {
    if (known_.size() < options_.n_best || !(w.bound < known_.back())) return false;
    if (!best_beaten_ || w.bound > *best_beaten_) best_beaten_ = w.bound;
    return true;
  }

  void keep(const waiting& output) {
    hypothesis h;
    h.tokens = links_.tokens(extended_hypotheses_[output.parent].link);
    h.tokens.push_back(output.token);
    h.log_prob = output.log_prob;
    h.score = output.bound;
    h.finish = is_end(output.token) ? finish_reason::stop_token : at_longest_;
    if (h.finish == finish_reason::stop_token) h.end_token = output.token;
    result_.hypotheses.push_back(std::move(h));
  }

  void extend(const waiting& next, std::size_t rank) {
    const auto number = static_cast<std::uint32_t>(extended_hypotheses_.size());
    extended_hypotheses_.emplace_back();
    evaluate(next, extended_hypotheses_.back());
    ++result_.rows;
    const std::size_t before = queue_.size();
    add_continuations(next, number, static_cast<std::uint32_t>(rank));
    for (std::size_t i = before; i < queue_.size(); ++i) {
      if (!queue_[i].output && !complete(queue_[i])) ++extended_hypotheses_[number].open;
      std::push_heap(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(i) + 1, later);
    }
    if (extended_hypotheses_[number].open == 0) extended_hypotheses_[number].sequence = {};
    if (options_.on_row && !options_.on_row(result_.rows)) result_.end = best_first_end::cancelled;
  }

  /// Brings the model to a hypothesis: it takes over its parent's sequence if nobody else will need it.
  void evaluate(const waiting& next, extended& made) {
    text_.resize(prompt_size_);
    if (next.parent == none) {
      made.sequence = owned_sequence<M>(model_);
      return evaluate(made.sequence.with(text_));
    }
    extended& parent = extended_hypotheses_[next.parent];
    made.link = links_.add(parent.link, next.token);
    made.sequence = parent.open == 1 ? std::move(parent.sequence) : parent.sequence.fork();
    release(next.parent);
    links_.tokens(made.link, output_);
    text_.insert(text_.end(), output_.begin(), output_.end());
    evaluate(made.sequence.with(std::span(text_).last(1)));
  }
  void evaluate(const batch_item& item) { model_.evaluate(std::span<const batch_item>(&item, 1)); }

  /// One continuation less to wait for.
  void release(std::uint32_t parent) {
    if (--extended_hypotheses_[parent].open == 0) extended_hypotheses_[parent].sequence = {};
  }

  /// Appends what may follow a hypothesis to the queue, not yet in its order. Of a limited width no more than could
  /// find a place, unless a heuristic may put others before them.
  void add_continuations(const waiting& parent, std::uint32_t number, std::uint32_t rank) {
    const bound_row bound(row_, without_padding(model_, model_.row(0)));
    options_.processors(row_, context_after(text_, prompt_size_, draws_));
    if (row_.status() == row_status::not_finite) result_.status = row_status::not_finite;
    if (row_.status() != row_status::ok) return;
    const double normaliser = row_.log_mass();
    const auto add = [&](token_id token, double below_max) {
      waiting child{.log_prob = parent.log_prob + (below_max - normaliser),
                    .parent = number,
                    .parent_rank = rank,
                    .length = parent.length + 1,
                    .token = token};
      if (options_.width == 0 && complete(child)) {
        child = as_output(child);
      } else {
        const double most = child.log_prob + still_possible(child);
        if (!math::is_finite(most)) return;
        child.bound = options_.length_penalty.best(most, child.length, longest_);
      }
      if (!beaten(child)) queue_.push_back(child);
    };
    if (options_.width == 0 || options_.heuristic) {
      row_.visit_below_max(add);
      return;
    }
    best_.clear();
    for (const entry& e : row_.descending(options_.width + options_.end_tokens.size())) best_.push_back(e.id);
    for (const token_id token : best_) add(token, row_.below_max(token));
  }

  double still_possible(const waiting& child) {
    if (!options_.heuristic || complete(child)) return 0;
    text_.push_back(child.token);
    const double most = options_.heuristic(text_);
    text_.pop_back();
    return std::min(most, 0.0);
  }

  /// Says how good anything else could be, and after an early end gives what is complete.
  void report() {
    std::sort_heap(queue_.begin(), queue_.end(), later);  // the best last
    if (result_.end == best_first_end::budget || result_.end == best_first_end::cancelled) {
      for (std::size_t i = queue_.size(); i-- > 0 && result_.hypotheses.size() < options_.n_best;) {
        if (!queue_[i].output) continue;
        keep(queue_[i]);
        queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    if (options_.width == 0) {
      result_.bound = best_beaten_;
      if (!queue_.empty() && (!best_beaten_ || queue_.back().bound > *best_beaten_))
        result_.bound = queue_.back().bound;
    }
    const bool nothing = result_.hypotheses.empty() && result_.end == best_first_end::exhausted && longest_ > 0;
    if (nothing && result_.status == row_status::ok) result_.status = row_status::empty;
  }

  M& model_;
  best_first_options options_;
  std::size_t prompt_size_;
  draw_stream draws_;
  std::size_t longest_ = 0;  // output, in tokens
  finish_reason at_longest_ = finish_reason::length;
  best_first_result result_;

  hypothesis_links links_;
  std::vector<extended> extended_hypotheses_;
  std::vector<waiting> queue_;                 // a heap
  std::vector<std::size_t> taken_, extended_;  // of each length: hypotheses that had their turn, and were extended

  std::vector<double> known_;          // the scores of the best n_best outputs, the best first
  std::optional<double> best_beaten_;  // the greatest bound of what does not wait because of them

  // Workspace.
  std::vector<token_id> text_;  // the prompt, and after it the output of the hypothesis that is looked at
  std::vector<token_id> output_, best_;
  candidates row_;
};

}  // namespace detail

/// Best-first search: extends the hypothesis that may become the best, until no other can beat what was found.
///
/// Effect: with width 0 the outputs found are the most probable of all, exactly: Dijkstra's algorithm, and with a
/// heuristic A*. With a width, best-first beam search: the best output is that of beam_search of this width with
/// early_stopping::exact, found with no more rows, and often far fewer. With a length penalty, hypotheses wait by the
/// best score that they could still reach. Ties as in beam_search. The result says whether the outputs are proven to be
/// the best, and how good anything else could be. A hypothesis whose row is empty or not finite ends without a result.
/// Complexity: a row of the model for each hypothesis extended, one at a time; each puts at most width + number of end
/// tokens continuations into a heap, or the whole vocabulary where there is no width or a heuristic. The exact search
/// may need a number of rows that grows exponentially with the length: max_rows bounds it.
/// Errors: parameter_error for n_best, max_rows or max_new_tokens of 0 (options.validate() tells without exceptions).
/// Misuse: an empty prompt, processors that keep state.
/// References: Meister, Vieira, Cotterell, "Best-first beam search", TACL 8, 2020, arXiv 2007.03909; Hart, Nilsson,
/// Raphael, "A formal basis for the heuristic determination of minimum cost paths", 1968 (A*).
template <BatchModel M>
[[nodiscard]] best_first_result best_first_search(M& model, std::span<const token_id> prompt,
                                                  best_first_options options = {}) {
  return detail::best_first_run<M>(model, prompt, std::move(options)).run();
}

}  // namespace decant
