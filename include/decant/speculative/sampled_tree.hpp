// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <decant/chain/decoder.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/law.hpp>
#include <decant/math/sum_tree.hpp>
#include <decant/speculative/chain_drafter.hpp>
#include <decant/speculative/draft.hpp>
#include <decant/speculative/dynamic_tree.hpp>

namespace decant {

/// The shape of a sampled tree.
struct sampled_tree_options {
  std::vector<std::size_t> children = {3, 2, 1};  ///< of each node, by depth: here 3, then 6, then 6 nodes
  bool replacement = false;                       ///< whether a node may draw the same child twice
};

/// Drafts a tree by drawing: every node has so many children, drawn by the drafter's own decoder.
///
/// Effect: layer by layer, each node draws its children from the decoder's law of its row, independently or each
/// without those before it (fewer, where the law holds fewer tokens). A draw is keyed by its node, so a tree is the
/// same whatever is drawn elsewhere. Not expanded are stop tokens, nodes with a bad row, and those where the largest
/// probability of the law is below min_confidence: all decided before a draw, so that proposals stay draws of their
/// laws. When max_nodes is used up the rest of the tree is left out.
/// Complexity: one call of the rows a layer, one law a node. Errors: parameter_error for no layers and for a layer of
/// 0. Misuse: a decoder with state.
/// Reference: Miao et al., "SpecInfer", ASPLOS 2024, arXiv 2305.09781; without replacement: Jeon et al. 2024
/// ("Recursive speculative decoding"), arXiv 2402.14160.
template <TreeRows R, class D>
class sampled_tree : public made_or_error<sampled_tree<R, D>> {
 public:
  static constexpr std::string_view name = "sampled_tree";

  sampled_tree(R rows, D decoder, sampled_tree_options options = {})
      : rows_(std::move(rows)), decoder_(std::move(decoder)), options_(std::move(options)) {
    detail::raise_if(validate(rows_, decoder_, options_));
    DECANT_ASSERT(!decoder_.keeps_state(), "a decoder with state cannot draft: nobody tells it what was accepted");
  }

  static std::optional<parameter_fault> validate(const R&, const D&, const sampled_tree_options& options = {}) {
    if (options.children.empty()) return parameter_fault{name, "children", 0, "layers, must be at least one"};
    if (std::ranges::find(options.children, std::size_t{0}) != options.children.end()) {
      return parameter_fault{name, "children", 0, "must be positive in every layer"};
    }
    return {};
  }

  void propose(const draft_request& request, draft& out) {
    out.set_mode(options_.replacement ? proposal::with_replacement : proposal::without_replacement);
    text_.assign(request.context.tokens.begin(), request.context.tokens.end());
    const auto first = std::span<const float>(rows_.start(request.context.tokens));
    const std::size_t depth = std::min(options_.children.size(), request.max_depth);
    if (first.empty() || depth == 0) return;
    draw_children(no_parent, first, options_.children[0], request, out);
    std::size_t layer = 0;
    for (std::size_t d = 1; d < depth && layer < out.size() && out.size() < request.max_nodes; ++d) {
      layer = draw_layer(layer, options_.children[d], request, out);
    }
  }

  template <class M>
    requires requires(R& rows, M& model, std::span<const std::size_t> shown) { rows.observe(model, shown); }
  void observe(M& model, std::span<const std::size_t> shown) {
    rows_.observe(model, shown);
  }

  [[nodiscard]] R& rows() noexcept { return rows_; }

 private:
  /// Gives children to the nodes of the layer that begins at `begin` and reaches to the end; where the next begins.
  std::size_t draw_layer(std::size_t begin, std::size_t count, const draft_request& request, draft& out) {
    const std::size_t end = out.size();
    rows_.grow(out.tokens().subspan(begin), out.parents().subspan(begin));
    for (std::size_t node = begin; node < end; ++node) {
      if (detail::stops(request, out.tokens()[node])) continue;
      const auto parent = static_cast<std::int32_t>(node);
      draw_children(parent, std::span<const float>(rows_.row(node)), count, request, out);
    }
    return end;
  }

  void draw_children(std::int32_t node, std::span<const float> row, std::size_t count, const draft_request& request,
                     draft& out) {
    const std::size_t base = request.context.tokens.size();
    out.path_to(node, path_);
    text_.resize(base);
    for (const std::size_t n : path_) text_.push_back(out.tokens()[n]);
    law& from = out.children_law(node);
    decoder_.law_of(row, context_after(text_, request.context.prompt_size, request.context.draws), from);
    if (from.empty() || !detail::is_sure(from, request.min_confidence)) return from.clear();
    rest_ = from;
    for (std::size_t i = 0; i < count && !rest_.empty() && out.size() < request.max_nodes; ++i) {
      const auto index = static_cast<std::uint32_t>(out.size());
      const token_id token = draw(rest_, request.draws.at(text_.size()), purpose::draft, index, sums_);
      out.add(token, node);
      if (!options_.replacement) remove(token);
    }
  }

  void remove(token_id token) {
    const auto place = std::ranges::lower_bound(rest_.ids, token);
    rest_.weights.erase(rest_.weights.begin() + (place - rest_.ids.begin()));
    rest_.ids.erase(place);
    rest_.block_bounds.clear();
    rest_.total = sum_of_weights(rest_.weights);
  }

  R rows_;
  D decoder_;
  sampled_tree_options options_;
  std::vector<token_id> text_;
  std::vector<std::size_t> path_;
  law rest_;  // what a node's next child is drawn from
  math::sum_tree sums_;
};

}  // namespace decant
