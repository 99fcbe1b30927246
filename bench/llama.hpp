// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <decant/core/token.hpp>

#include "peer/llama_library.hpp"

namespace bench {

/// A chain of llama.cpp's samplers, run as llama_sampler_sample does: the array of tokens is built from the logits,
/// each sampler applied, and the token accepted. One whole step of its users.
class llama_chain {
 public:
  llama_chain(std::vector<peer::llama_sampler*> samplers, std::span<const decant::token_id> history) {
    for (peer::llama_sampler* const made : samplers) samplers_.emplace_back(made);
    for (const decant::token_id token : history) accept(token);
  }

  decant::token_id step(std::span<const float> logits, decant::token_id accepted) {
    data_.resize(logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i) data_[i] = {static_cast<std::int32_t>(i), logits[i], 0};
    peer::token_data_array row{data_.data(), data_.size(), -1, false};
    for (peer::sampler& each : samplers_) each.apply(row);
    const decant::token_id token = row.data[row.selected].id;
    accept(accepted);
    return token;
  }

 private:
  void accept(decant::token_id token) {
    for (peer::sampler& each : samplers_) each.accept(token);
  }

  std::vector<peer::sampler> samplers_;
  std::vector<peer::token_data> data_;
};

}  // namespace bench
