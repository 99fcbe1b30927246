// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <decant/chain/decoder.hpp>
#include <decant/core/candidates.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/describe.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/speculative/chain_drafter.hpp>
#include <decant/speculative/draft.hpp>

namespace decant {

/// Where a dynamic tree gets its rows. `start(tokens)` forgets the last tree and returns the row that follows all these
/// tokens, empty when there is none; `grow(nodes, parents)` adds nodes, parents numbering earlier nodes of the whole
/// tree or no_parent; row(i) follows node i. Rows stay valid until the next grow or start.
template <class R>
concept TreeRows =
    requires(R& rows, std::span<const token_id> tokens, std::span<const std::int32_t> parents, std::size_t node) {
      std::span(rows.start(tokens));
      rows.grow(tokens, parents);
      std::span(rows.row(node));
    };

struct dynamic_tree_options {
  std::size_t width = 10;  ///< nodes expanded in a layer, and children of each
  std::size_t depth = 6;   ///< layers
  std::size_t nodes = 60;  ///< nodes kept of all
};

/// EAGLE-2's draft tree: grows where the drafter is sure. The value of a node is the product of the drafter's
/// probabilities on its path, an estimate of the chance that it will be accepted.
///
/// Effect: in each layer the `width` nodes of the greatest value are expanded, each into its `width` most probable
/// tokens (ties by lower id); then the `nodes` nodes of the greatest value of all layers are kept (of equals the
/// shallower, then the earlier), which form a tree, since no child is worth more than its parent. Not expanded are stop
/// tokens and nodes after which the drafter is less sure than min_confidence. Proposals are deterministic: the top k of
/// a law are not draws from it, and verifying them as such would be biased. width 1 is a chain.
/// Complexity: `depth` calls of grow, and width * depth selections. Errors: parameter_error for an option of 0.
/// Reference: Li, Wei, Zhang, Zhang, "EAGLE-2: faster inference of language models with dynamic draft trees", EMNLP
/// 2024, arXiv 2406.16858.
template <TreeRows R>
class dynamic_tree : public made_or_error<dynamic_tree<R>> {
 public:
  static constexpr std::string_view name = "dynamic_tree";

  explicit dynamic_tree(R rows, const dynamic_tree_options& options = {}) : rows_(std::move(rows)), options_(options) {
    detail::raise_if(validate(rows_, options));
  }

  static std::optional<parameter_fault> validate(const R&, const dynamic_tree_options& options = {}) {
    const std::pair<const char*, std::size_t> counts[] = {
        {"width", options.width}, {"depth", options.depth}, {"nodes", options.nodes}};
    for (const auto& [parameter, value] : counts) {
      if (value == 0) return parameter_fault{name, parameter, 0, "must be positive"};
    }
    return {};
  }

  template <class M>
    requires requires(R& rows, M& model, std::span<const std::size_t> shown) { rows.observe(model, shown); }
  void observe(M& model, std::span<const std::size_t> shown) {
    rows_.observe(model, shown);
  }

  void propose(const draft_request& request, draft& out) {
    out.set_mode(proposal::deterministic);
    grown_.clear();
    const auto first = std::span(rows_.start(request.context.tokens));
    if (first.empty()) return;
    expand(first, no_parent, request);
    std::size_t layer = 0;
    const std::size_t depth = std::min(options_.depth, request.max_depth);
    for (std::size_t d = 1; d < depth && layer < grown_.size(); ++d) layer = expand_layer(layer, request);
    write(out, depth == 0 ? 0 : std::min(options_.nodes, request.max_nodes));
  }

  void reset() {
    if constexpr (requires { rows_.reset(); }) rows_.reset();
  }

  [[nodiscard]] R& rows() noexcept { return rows_; }

 private:
  struct grown {
    token_id token;
    std::int32_t parent;        // in grown_
    double log_value;           // natural log of the product of probabilities
    std::int32_t row = absent;  // its number in rows_, once expanded
    std::int32_t drafted = absent;
  };

  static constexpr std::int32_t absent = -2;

  /// Expands the best nodes of the layer that begins at `begin` and reaches to the end; returns where the next begins.
  std::size_t expand_layer(std::size_t begin, const draft_request& request) {
    const std::size_t end = grown_.size();
    chosen_.clear();
    for (std::size_t i = begin; i < end; ++i) {
      if (!detail::stops(request, grown_[i].token)) chosen_.push_back(i);
    }
    keep_best(options_.width);
    tokens_.clear();
    parents_.clear();
    for (const std::size_t i : chosen_) {
      const std::int32_t parent = grown_[i].parent;
      tokens_.push_back(grown_[i].token);
      parents_.push_back(parent == no_parent ? no_parent : grown_[static_cast<std::size_t>(parent)].row);
      grown_[i].row = static_cast<std::int32_t>(row_count_++);
    }
    if (chosen_.empty()) return end;
    rows_.grow(tokens_, parents_);
    for (const std::size_t i : chosen_) {
      expand(std::span(rows_.row(static_cast<std::size_t>(grown_[i].row))), static_cast<std::int32_t>(i), request);
    }
    return end;
  }

  void expand(std::span<const float> row, std::int32_t parent, const draft_request& request) {
    if (parent == no_parent) row_count_ = 0;
    const detail::bound_row bound(workspace_.row, row);
    if (workspace_.row.status() != row_status::ok) return;
    if (detail::top_probability(workspace_.row) < request.min_confidence) return;
    const double above = parent == no_parent ? 0 : grown_[static_cast<std::size_t>(parent)].log_value;
    for (const entry& e : workspace_.row.descending(options_.width)) {
      // A probability that rounds to more than 1 must not make a child worth more than its parent.
      const double log_probability = std::min(0.0, workspace_.row.log_probability(e.id));
      grown_.push_back({e.id, parent, above + log_probability});
    }
  }

  /// Leaves the `count` chosen nodes of the greatest value, earlier ones first among equals, in order of number.
  void keep_best(std::size_t count) {
    if (chosen_.size() <= count) return;
    std::ranges::sort(chosen_, [&](std::size_t a, std::size_t b) {
      if (grown_[a].log_value != grown_[b].log_value) return grown_[a].log_value > grown_[b].log_value;
      return a < b;
    });
    chosen_.resize(count);
    std::ranges::sort(chosen_);
  }

  /// Nodes are numbered layer by layer, so of equals the earlier is the shallower, and a parent comes before its
  /// children.
  void write(draft& out, std::size_t count) {
    chosen_.resize(grown_.size());
    for (std::size_t i = 0; i < chosen_.size(); ++i) chosen_[i] = i;
    keep_best(count);
    for (const std::size_t i : chosen_) {
      grown& node = grown_[i];
      const std::int32_t parent =
          node.parent == no_parent ? no_parent : grown_[static_cast<std::size_t>(node.parent)].drafted;
      node.drafted = out.add(node.token, parent);
    }
  }

  R rows_;
  dynamic_tree_options options_;
  std::vector<grown> grown_;  // all nodes, layer by layer
  std::size_t row_count_ = 0;
  std::vector<std::size_t> chosen_;
  std::vector<token_id> tokens_;
  std::vector<std::int32_t> parents_;
  detail::row_workspace workspace_;
};

/// Rows of any function of a text, for a dynamic tree: `path_rows{[](std::span<const token_id> tokens) {...}}`. The
/// function is called once for every node that is expanded, with the tokens and those of the node's path.
template <class F>
class path_rows {
 public:
  explicit path_rows(F function) : function_(std::move(function)) {}

  std::span<const float> start(std::span<const token_id> tokens) {
    text_.assign(tokens.begin(), tokens.end());
    size_ = tokens.size();
    nodes_.clear();
    parents_.clear();
    rows_.clear();
    keep(root_);
    return root_;
  }

  void grow(std::span<const token_id> nodes, std::span<const std::int32_t> parents) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      DECANT_ASSERT(parents[i] >= no_parent && parents[i] < static_cast<std::int32_t>(nodes_.size()), "no such parent");
      nodes_.push_back(nodes[i]);
      parents_.push_back(parents[i]);
      text_.resize(size_);
      for (auto n = static_cast<std::int32_t>(nodes_.size()) - 1; n != no_parent;
           n = parents_[static_cast<std::size_t>(n)]) {
        text_.push_back(nodes_[static_cast<std::size_t>(n)]);
      }
      std::reverse(text_.begin() + static_cast<std::ptrdiff_t>(size_), text_.end());
      keep(rows_.emplace_back());
    }
  }

  [[nodiscard]] std::span<const float> row(std::size_t node) const {
    DECANT_ASSERT(node < rows_.size(), "no such node");
    return rows_[node];
  }

 private:
  void keep(std::vector<float>& row) {
    auto&& logits = function_(std::span<const token_id>(text_));
    row.assign(std::begin(logits), std::end(logits));
  }

  F function_;
  std::vector<token_id> text_;
  std::size_t size_ = 0;
  std::vector<float> root_;
  std::vector<token_id> nodes_;
  std::vector<std::int32_t> parents_;
  std::vector<std::vector<float>> rows_;
};

}  // namespace decant
