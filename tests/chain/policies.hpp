// SPDX-License-Identifier: MIT
#pragma once

#include <decant/core/candidates.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/context.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

// Policies that only tests have, and the row whose numbers are known.

namespace chain_policies {

using decant::candidates;
using decant::step_context;
using decant::step_record;
using decant::token_id;

/// Bans the token that was accepted last: state that can be seen from outside.
class no_repeat {
 public:
  void operator()(candidates& row, const step_context&) const {
    if (!accepted_.empty()) row.ban(accepted_.back());
  }
  void accept(token_id token, const step_record& record) {
    accepted_.push_back(token);
    records_.push_back(record);
  }
  void rollback(std::size_t count) {
    accepted_.resize(accepted_.size() - count);
    records_.resize(records_.size() - count);
  }
  void reset() {
    accepted_.clear();
    records_.clear();
  }
  [[nodiscard]] std::string describe() const { return "no_repeat"; }

  [[nodiscard]] const std::vector<token_id>& accepted() const { return accepted_; }
  [[nodiscard]] const std::vector<step_record>& records() const { return records_; }

 private:
  std::vector<token_id> accepted_;
  std::vector<step_record> records_;
};

/// A sampler with state that takes the largest and has no law.
class counting_argmax {
 public:
  token_id operator()(candidates& row, const step_context&) const { return row.argmax(); }
  void accept(token_id, const step_record& record) {
    ++count;
    last = record;
  }
  void rollback(std::size_t n) { count -= n; }
  void reset() { count = 0; }
  [[nodiscard]] std::string describe() const { return "counting_argmax"; }

  std::size_t count = 0;
  step_record last;
};

struct thrower {
  void operator()(candidates& row, const step_context&) const {
    row.set(0, 99);
    throw std::runtime_error("a processor's own error");
  }
};

inline const std::vector<float> known_logits{2, 1, 0.5F, 0, -1, -3};
inline const double known_p[] = {0.560893422, 0.206341159, 0.125152239, 0.075908670, 0.027925239, 0.003779270};

inline step_context at(std::span<const token_id> tokens, std::uint64_t seed = 1) {
  return decant::context_after(tokens, 0, decant::draw_stream(seed));
}

inline std::vector<token_id> survivors(const candidates& row) {
  std::vector<token_id> ids;
  row.visit([&](token_id id, float) { ids.push_back(id); });
  return ids;
}

/// What a processor leaves of a row.
template <class P>
std::vector<token_id> left(P& processor, std::span<const float> logits, const step_context& context) {
  candidates row;
  row.bind(logits);
  processor(row, context);
  return survivors(row);
}

}  // namespace chain_policies
