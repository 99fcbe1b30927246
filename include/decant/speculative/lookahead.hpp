// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <decant/chain/decoder.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/describe.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/ngram_pool.hpp>
#include <decant/speculative/pass_rows.hpp>

namespace decant {

/// The sizes of lookahead decoding.
struct lookahead_options {
  std::size_t window = 7;      ///< W: places guessed ahead
  std::size_t ngram = 5;       ///< N: tokens of the runs collected, the first included
  std::size_t candidates = 7;  ///< G: runs verified a round, and kept for each first token
  bool from_prompt = true;     ///< runs of the text itself go to the pool too
};

/// Lookahead decoding: the target's own guesses about the next places, refined over N - 1 rounds, give runs of tokens;
/// those that begin with the last token are drafted.
///
/// Effect: the draft is a tree with two parts, scored in one pass. The *window* has W places and the last N - 1
/// guesses for each: level 0 is a chain, and above each of its nodes stand the later guesses for the places after it.
/// What the target says after the last of them completes W runs of N tokens, which go to the pool, and is the newest
/// level; the oldest is dropped. The *candidates* are the runs of the pool that begin with the last token of the text,
/// newest first. Both are verified alike: window tokens that come true are accepted too. Guesses are raw argmaxes and
/// decide nothing but speed. Runs that go on after a stop token are not collected, and a stop token does not enter the
/// window. The first guesses are tokens of the text. Deterministic; needs a TreeModel as target.
/// Complexity: W (N - 1) nodes of window and up to G (N - 1) of candidates, a path of W + N - 2: with less room in the
/// request, the window gets narrower. W argmaxes a round.
/// Off: none. Errors: parameter_error for window = 0 and ngram < 2.
/// Reference: Fu, Bailis, Stoica, Zhang 2024, "Break the sequential dependency of LLM inference using lookahead
/// decoding", arXiv 2402.02057.
class lookahead : public made_or_error<lookahead> {
 public:
  static constexpr std::string_view name = "lookahead";

  explicit lookahead(const lookahead_options& options = {}) : options_(options), pool_(options.candidates) {
    detail::raise_if(validate(options));
  }

  static std::optional<parameter_fault> validate(const lookahead_options& options = {}) {
    if (options.window == 0) return parameter_fault{name, "window", 0, "must be at least 1"};
    if (options.ngram < 2) {
      return parameter_fault{name, "ngram", static_cast<double>(options.ngram), "must be at least 2"};
    }
    return {};
  }

  void propose(const draft_request& request, draft& out) {
    out.set_mode(proposal::deterministic);
    const auto tokens = request.context.tokens;
    if (tokens.empty()) return;
    stop_tokens_.assign(request.stop_tokens.begin(), request.stop_tokens.end());
    if (options_.from_prompt) collect_from(tokens);
    if (guesses_.empty()) fill_window(tokens);
    const std::size_t room = request.max_nodes / levels();
    columns_ = request.max_depth < levels() ? 0 : std::min({options_.window, request.max_depth + 1 - levels(), room});
    std::size_t candidates = std::min(options_.candidates, room - columns_);
    for (const auto& run : pool_.after(tokens.back())) {
      if (candidates-- == 0) break;
      add_run(run, request.max_depth, out);
    }
    add_window(out);
  }

  template <TreeModel M>
  void observe(M& model, std::span<const std::size_t> rows) {
    if (columns_ > 0 && !rows.empty()) {
      const detail::pass_rows<M> pass(model, rows);
      for (std::size_t column = 0; column < options_.window; ++column) shift(pass, column);
    }
    columns_ = 0;
  }

  void reset() {
    pool_.clear();
    guesses_.clear();
    collected_ = 0;
    columns_ = 0;
  }

  [[nodiscard]] std::string describe() const {
    return detail::call_text(name, {static_cast<double>(options_.window), static_cast<double>(options_.ngram),
                                    static_cast<double>(options_.candidates)});
  }

 private:
  [[nodiscard]] std::size_t levels() const { return options_.ngram - 1; }
  [[nodiscard]] token_id& guess(std::size_t level, std::size_t column) {
    return guesses_[level * options_.window + column];
  }
  [[nodiscard]] bool stops(token_id token) const {
    return std::ranges::find(stop_tokens_, token) != stop_tokens_.end();
  }

  void fill_window(std::span<const token_id> tokens) {
    for (std::size_t i = 0; i < levels() * options_.window; ++i) guesses_.push_back(tokens[i % tokens.size()]);
  }

  /// Puts the runs of what the text has gained into the pool.
  void collect_from(std::span<const token_id> tokens) {
    if (collected_ > tokens.size()) collected_ = 0;
    for (std::size_t end = std::max(collected_ + 1, options_.ngram); end <= tokens.size(); ++end) {
      collect(tokens.first(end).last(options_.ngram));
    }
    collected_ = tokens.size();
  }

  void collect(std::span<const token_id> run) {
    if (!std::any_of(run.begin(), run.end() - 1, [&](token_id token) { return stops(token); })) pool_.insert(run);
  }

  /// The child with a token, added if it is not there: equal nodes are scored once.
  static std::int32_t child(draft& out, std::int32_t parent, token_id token) {
    const std::int32_t known = out.child_with(parent, token);
    return known != no_node ? known : out.add(token, parent);
  }

  static void add_run(std::span<const token_id> run, std::size_t max_depth, draft& out) {
    std::int32_t node = no_parent;
    for (const token_id token : run.first(std::min(run.size(), max_depth))) node = child(out, node, token);
  }

  void add_window(draft& out) {
    last_nodes_.clear();
    std::int32_t chain = no_parent;
    for (std::size_t column = 0; column < columns_; ++column) {
      chain = child(out, chain, guess(0, column));
      std::int32_t node = chain;
      for (std::size_t level = 1; level < levels(); ++level) node = child(out, node, guess(level, column));
      last_nodes_.push_back(static_cast<std::size_t>(node));
    }
  }

  /// Completes the run of a column, and moves its guesses one level down: they are about the places after those of
  /// before, as the text is by then.
  template <class Pass>
  void shift(const Pass& pass, std::size_t column) {
    token_id newest = column < columns_ ? pass.argmax(last_nodes_[column], workspace_) : no_token;
    if (newest != no_token) {
      run_.clear();
      for (std::size_t level = 0; level < levels(); ++level) run_.push_back(guess(level, column));
      run_.push_back(newest);
      collect(run_);
    }
    if (newest == no_token || stops(newest)) newest = guess(0, column);
    for (std::size_t level = 0; level + 1 < levels(); ++level) guess(level, column) = guess(level + 1, column);
    guess(levels() - 1, column) = newest;
  }

  lookahead_options options_;
  ngram_pool pool_;
  std::size_t collected_ = 0;      // tokens of the text whose runs are in the pool
  std::vector<token_id> guesses_;  // [level][column], the oldest level first
  std::vector<token_id> stop_tokens_, run_;
  std::vector<std::size_t> last_nodes_;  // of each column in the draft
  std::size_t columns_ = 0;              // of the draft that is out
  detail::row_workspace workspace_;
};

}  // namespace decant
