// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include <decant/core/concepts.hpp>
#include <decant/core/token.hpp>

namespace decant {

/// A sequence of a BatchModel that is dropped with its owner: a search leaves none behind, however it ends. Moves, does
/// not copy; `fork` makes another.
template <BatchModel M>
class owned_sequence {
 public:
  owned_sequence() = default;
  /// A new, empty sequence. The model must outlive it.
  explicit owned_sequence(M& model) : owned_sequence(model, model.start()) {}

  owned_sequence(owned_sequence&& other) noexcept
      : model_(std::exchange(other.model_, nullptr)), number_(other.number_) {}
  owned_sequence& operator=(owned_sequence&& other) noexcept {
    std::swap(model_, other.model_);
    std::swap(number_, other.number_);
    return *this;
  }
  ~owned_sequence() {
    if (model_ != nullptr) model_->drop(number_);
  }

  [[nodiscard]] explicit operator bool() const noexcept { return model_ != nullptr; }
  [[nodiscard]] std::size_t number() const noexcept { return number_; }

  /// A second sequence with the same tokens.
  [[nodiscard]] owned_sequence fork() const { return owned_sequence(*model_, model_->fork(number_)); }

  /// What a pass is to append to it; valid as long as the tokens.
  [[nodiscard]] batch_item with(std::span<const token_id> tokens) const noexcept { return {number_, tokens}; }

 private:
  owned_sequence(M& model, std::size_t number) : model_(&model), number_(number) {}

  M* model_ = nullptr;
  std::size_t number_ = 0;
};

}  // namespace decant
