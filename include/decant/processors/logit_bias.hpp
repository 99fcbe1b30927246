// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/describe.hpp>
#include <decant/processors/bias_sum.hpp>
#include <decant/processors/token_list.hpp>

namespace decant {

/// A token and what is added to its logit.
struct token_bias {
  token_id id;
  double bias;
};

/// Adds to the logits of the listed tokens; a bias of -inf bans.
///
/// Effect: several biases on one token add up, in any order to the same bits, and -inf wins over all. A finite bias
/// never bans: at -100 a token whose logit is 120 above the others still wins. A token that is gone stays gone.
/// Shifting all logits changes nothing. O(list), sparse edits. May ban every token: the row is then empty.
/// Off: no biases, or biases that add up to 0. Errors: parameter_error for a bias of NaN or +inf; an id outside the
/// vocabulary is misuse, found when a row is processed. Reference: OpenAI API, "logit_bias".
class logit_bias : public made_or_error<logit_bias> {
 public:
  static constexpr std::string_view name = "logit_bias";

  explicit logit_bias(std::vector<token_bias> biases) {
    detail::raise_if(validate(biases));
    std::ranges::sort(biases, [](const token_bias& x, const token_bias& y) {
      return x.id < y.id || (x.id == y.id && x.bias < y.bias);
    });
    for (auto next = biases.begin(); next != biases.end();) {
      const token_id id = next->id;
      bias_sum all;
      for (; next != biases.end() && next->id == id; ++next) all.add(next->bias);
      ids_.include(id);
      if (all.banned()) {
        banned_.push_back(id);
      } else if (!all.none()) {
        edits_.push_back({id, all.amount()});
      }
    }
  }

  static std::optional<parameter_fault> validate(const std::vector<token_bias>& biases) {
    for (const token_bias& each : biases) {
      if (!bias_sum::valid(each.bias)) return parameter_fault{name, "bias", each.bias, bias_sum::rule};
    }
    return {};
  }

  void operator()(candidates& row, const step_context&) const {
    if (off()) return;
    ids_.check(row);
    row.ban(banned_);
    row.add_each(edits_, [](const edit& each) { return each.amount; });
  }

  [[nodiscard]] bool off() const { return edits_.empty() && banned_.empty(); }
  [[nodiscard]] std::string describe() const { return detail::counted_text(name, edits_.size() + banned_.size()); }

 private:
  struct edit {
    token_id id;
    float amount;
  };

  std::vector<edit> edits_;  // these and those banned: ascending, each id once
  std::vector<token_id> banned_;
  id_range ids_;
};

}  // namespace decant
