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
#include <decant/samplers/without_replacement.hpp>
#include <decant/search/hypothesis_links.hpp>
#include <decant/search/owned_sequence.hpp>

namespace decant {

/// How to sample. Everything has a default that leaves the rest effective.
struct stochastic_beam_options {
  std::size_t count = 4;             ///< how many different sequences to draw
  std::size_t max_new_tokens = 256;  ///< at least 1
  std::size_t context_length = 0;    ///< prompt and output together; 0: what the model's sequence_length() says, if any

  std::vector<token_id> end_tokens{};  ///< a sequence ends with any of them

  /// Run on every row, with its sequence as context: sequences are drawn from the distribution that they make, a
  /// temperature among them. They may keep no state.
  dynamic_chain processors{};

  std::uint64_t seed = 0;
  std::uint64_t sequence = 0;  ///< names this request among those with one seed

  std::function<bool(std::size_t)> on_step{};  ///< called with the number of steps done; false cancels

  /// The first rule that is broken, if one is. A search raises parameter_error for it.
  [[nodiscard]] std::optional<parameter_fault> validate() const {
    constexpr std::string_view name = "stochastic_beam_search";
    if (count < 1) return parameter_fault{name, "count", static_cast<double>(count), "must be >= 1"};
    if (max_new_tokens < 1) {
      return parameter_fault{name, "max_new_tokens", static_cast<double>(max_new_tokens), "must be >= 1"};
    }
    return {};
  }
};

/// One of the sequences drawn.
struct drawn_sequence {
  std::vector<token_id> tokens;  ///< without the prompt; an end token stands last
  double log_prob = 0;           ///< sum of the tokens' log-probabilities, as processed
  double perturbed = 0;          ///< log_prob with its Gumbel noise: what sequences are ordered by
  double weight = 0;             ///< probability over the chance to be drawn: see `estimate`
  finish_reason finish = finish_reason::none;
  token_id end_token = no_token;       ///< which end token, for finish_reason::stop_token
  row_status status = row_status::ok;  ///< why, for finish_reason::bad_row
};

/// What stochastic beam search came to.
struct stochastic_beam_result {
  std::vector<drawn_sequence> sequences;  ///< in the order drawn; fewer than asked for if there are no more
  /// The perturbed log-probability of the best sequence that was not drawn; none if all were drawn.
  std::optional<double> threshold;
  std::size_t steps = 0;

  /// An unbiased estimate of the expectation of f(sequence) over the whole distribution: the sum of weight * f.
  template <class F>
  [[nodiscard]] double estimate(F f) const {
    double sum = 0;
    for (const drawn_sequence& s : sequences) sum += s.weight * f(s);
    return sum;
  }

  /// The same over the sum of the weights: a little biased, never outside the values of f, and of less variance.
  template <class F>
  [[nodiscard]] double normalised_estimate(F f) const {
    const double weights = estimate([](const drawn_sequence&) { return 1.0; });
    return weights > 0 ? estimate(f) / weights : 0;
  }
};

namespace detail {

/// The perturbed log-probability of a child under the condition that the greatest of its parent's children is the
/// parent's own: `perturbed` is the child's unconditioned one, `below` how much less that is than the greatest among
/// the children. The greatest child has exactly its parent's.
inline double condition_on_maximum(double parent, double perturbed, double below) {
  if (below >= 0) return parent;
  const double v = parent - perturbed + math::log1m_exp(below);
  return parent - std::max(v, 0.0) - math::log1p(math::exp(v < 0 ? v : -v));
}

/// The probability of a sequence over the chance that its perturbed log-probability exceeds the threshold.
inline double importance_weight(double log_prob, double threshold) {
  const double rate = math::exp(log_prob - threshold);
  // ln(1 - e^-rate), which is ln(rate) where e^-rate would round to 1 or the rate to 0.
  const double log_chance = rate < 1e-17 ? log_prob - threshold : math::log1m_exp(-rate);
  return math::exp(log_prob - log_chance);
}

/// One stochastic beam search while it goes on.
template <BatchModel M>
class stochastic_beam_run {
 public:
  stochastic_beam_run(M& model, std::span<const token_id> prompt, stochastic_beam_options options)
      : model_(model), options_(std::move(options)), text_(prompt.begin(), prompt.end()), prompt_size_(prompt.size()) {
    DECANT_ASSERT(!prompt.empty(), "a search needs a prompt of at least one token");
    DECANT_ASSERT(!options_.processors.keeps_state(), "processors in a search may keep no state");
    raise_if(options_.validate());
    adopt_context_of(options_, model);
  }

  stochastic_beam_result run() && {
    start();
    while (!live_.empty()) {
      expand();
      select();
      ++result_.steps;
      const bool go_on = !options_.on_step || options_.on_step(result_.steps);
      if (!go_on) cancel();
      if (!live_.empty()) evaluate();
    }
    return finish();
  }

 private:
  /// A sequence that is still a candidate for the result.
  struct beam {
    hypothesis_link link = root_link;
    double log_prob = 0, perturbed = 0;
    draw_stream draws{};  // of what follows it: named by its tokens, whatever else is drawn
    finish_reason finish = finish_reason::none;
    row_status status = row_status::ok;
  };
  struct live_beam : beam {
    owned_sequence<M> sequence{};
  };
  /// A beam of the next step: one that has finished, or the child of a live one.
  struct contender : beam {
    std::size_t parent = none;  // its place among the live
    token_id token = no_token;
  };
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  /// One more gives the threshold.
  [[nodiscard]] std::size_t width() const { return std::max(options_.count, options_.count + 1); }

  void start() {
    const draw_stream draws = draw_stream(options_.seed, options_.sequence).at(prompt_size_);
    live_beam root;
    root.draws = draws.child(0);
    root.perturbed = draws.gumbel(purpose::noise, 0);
    if (limit_after(0) != finish_reason::none) {
      root.finish = limit_after(0);
      finished_.push_back(root);
      return;
    }
    root.sequence = owned_sequence<M>(model_);
    const batch_item item = root.sequence.with(text_);
    model_.evaluate(std::span<const batch_item>(&item, 1));
    live_.push_back(std::move(root));
  }

  /// Collects what may come next: of every live beam as many children as there is room for in all.
  void expand() {
    contenders_.clear();
    for (const beam& b : finished_) contenders_.push_back({b});
    for (std::size_t i = 0; i < live_.size(); ++i) {
      const live_beam& parent = live_[i];
      links_.tokens(parent.link, output_);
      text_.resize(prompt_size_);
      text_.insert(text_.end(), output_.begin(), output_.end());
      const step_context context = context_after(text_, prompt_size_, parent.draws);
      const bound_row bound(row_, without_padding(model_, model_.row(i)));
      options_.processors(row_, context);
      sample_without_replacement(row_, context, width(), drawn_);
      if (drawn_.empty()) {
        contenders_.push_back({parent});
        contenders_.back().finish = finish_reason::bad_row;
        contenders_.back().status = row_.status();
      }
      for (const perturbed_token& t : drawn_) {
        contender child;
        child.log_prob = parent.log_prob + t.log_probability;
        child.perturbed = condition_on_maximum(parent.perturbed, parent.log_prob + t.perturbed,
                                               t.perturbed - drawn_.front().perturbed);
        child.parent = i;
        child.token = t.id;
        contenders_.push_back(child);
      }
    }
  }

  /// Makes the best contenders the beams of the next step.
  void select() {
    const std::size_t kept = std::min(width(), contenders_.size());
    order_.resize(contenders_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    const auto better = [&](std::size_t a, std::size_t b) {
      const double x = contenders_[a].perturbed, y = contenders_[b].perturbed;
      return x > y || (x == y && a < b);
    };
    std::partial_sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(kept), order_.end(), better);
    order_.resize(kept);

    finished_.clear();
    heirs_.assign(live_.size(), 0);
    for (const std::size_t place : order_) settle(contenders_[place]);
    next_.clear();
    for (const std::size_t place : order_) {
      const contender& c = contenders_[place];
      if (c.finish != finish_reason::none) {
        finished_.push_back(c);
      } else {
        live_beam& child = next_.emplace_back();
        static_cast<beam&>(child) = c;
        owned_sequence<M>& of_parent = live_[c.parent].sequence;
        child.sequence = --heirs_[c.parent] == 0 ? std::move(of_parent) : of_parent.fork();
      }
    }
    std::swap(live_, next_);
    next_.clear();  // drops the sequences that nobody goes on with
  }

  /// Gives a child that is kept its name, and tells whether it is complete.
  void settle(contender& c) {
    if (c.parent == none) return;
    c.link = links_.add(live_[c.parent].link, c.token);
    c.draws = live_[c.parent].draws.child(static_cast<std::uint64_t>(c.token));
    c.finish = is_among(options_.end_tokens, c.token) ? finish_reason::stop_token : limit_after(links_.length(c.link));
    if (c.finish == finish_reason::none) ++heirs_[c.parent];
  }

  void evaluate() {
    items_.clear();
    tokens_.resize(live_.size());
    for (std::size_t i = 0; i < live_.size(); ++i) {
      tokens_[i] = links_.token(live_[i].link);
      items_.push_back(live_[i].sequence.with(std::span(tokens_).subspan(i, 1)));
    }
    model_.evaluate(std::span<const batch_item>(items_));
  }

  void cancel() {
    for (live_beam& b : live_) {
      b.finish = finish_reason::cancelled;
      finished_.push_back(b);
    }
    live_.clear();
    std::sort(finished_.begin(), finished_.end(), [](const beam& a, const beam& b) {
      return a.perturbed > b.perturbed || (a.perturbed == b.perturbed && a.link < b.link);
    });
  }

  stochastic_beam_result finish() {
    if (finished_.size() == width()) {
      result_.threshold = finished_.back().perturbed;
      finished_.pop_back();
    }
    for (const beam& b : finished_) {
      drawn_sequence out{.tokens = links_.tokens(b.link),
                         .log_prob = b.log_prob,
                         .perturbed = b.perturbed,
                         .finish = b.finish,
                         .status = b.status};
      out.weight = result_.threshold ? importance_weight(b.log_prob, *result_.threshold) : math::exp(b.log_prob);
      if (b.finish == finish_reason::stop_token) out.end_token = out.tokens.back();
      result_.sequences.push_back(std::move(out));
    }
    return std::move(result_);
  }

  [[nodiscard]] finish_reason limit_after(std::size_t length) const {
    return limit_reached(options_, prompt_size_, length);
  }

  M& model_;
  stochastic_beam_options options_;
  std::vector<token_id> text_;  // the prompt, and after it the output of the beam that is looked at
  std::size_t prompt_size_;
  stochastic_beam_result result_;

  hypothesis_links links_;
  std::vector<live_beam> live_, next_;  // greatest perturbed log-probability first
  std::vector<beam> finished_;          // likewise

  // Workspace.
  std::vector<contender> contenders_;
  std::vector<std::size_t> order_, heirs_;
  std::vector<token_id> output_, tokens_;
  std::vector<perturbed_token> drawn_;
  std::vector<batch_item> items_;
  candidates row_;
};

}  // namespace detail

/// Stochastic beam search: draws different sequences from a model, as if one after another without replacement, in one
/// search.
///
/// Effect: the sequences come in the order in which drawing without replacement would have given them (the
/// Plackett-Luce law of whole sequences); the first is an ordinary sample. Each has a weight, with which `estimate`
/// gives unbiased estimates of expectations. Every prefix has noise of its own, so asking for more sequences adds some
/// after the same ones. A row that cannot be decoded ends its sequence with finish_reason::bad_row; a sequence that
/// reaches max_new_tokens is complete as it is. Equal values go to the higher ranked parent, then the lower id.
/// Complexity: as beam search of width count + 1 (the last gives the weights); two logarithms a token of every row.
/// Count = 1 is ancestral sampling. Errors: parameter_error for count = 0 or max_new_tokens = 0 (options.validate()
/// tells without exceptions). Misuse: an empty prompt, processors that keep state.
/// Reference: Kool, van Hoof, Welling, "Stochastic beams and where to find them: the Gumbel-top-k trick for sampling
/// sequences without replacement", ICML 2019, arXiv 1903.06059.
template <BatchModel M>
[[nodiscard]] stochastic_beam_result stochastic_beam_search(M& model, std::span<const token_id> prompt,
                                                            stochastic_beam_options options = {}) {
  return detail::stochastic_beam_run<M>(model, prompt, std::move(options)).run();
}

}  // namespace decant
