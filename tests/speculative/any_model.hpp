// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <decant/core/concepts.hpp>
#include <decant/core/token.hpp>

namespace drafter_tests {

using decant::token_id;

/// Any TreeModel, its type forgotten: so that a test compiles drivers and drafters for one type of model.
class any_model {
 public:
  template <class M>
    requires(!std::same_as<M, any_model>)
  explicit any_model(M model) : held_(std::make_unique<typed<M>>(std::move(model))) {}

  std::span<const float> evaluate(std::span<const token_id> tokens) { return held_->evaluate(tokens); }
  void score(std::span<const token_id> tokens) { held_->score(tokens); }
  void score(std::span<const token_id> nodes, std::span<const std::int32_t> parents) { held_->score(nodes, parents); }
  [[nodiscard]] std::span<const float> row(std::size_t i) { return held_->row(i); }
  void keep(std::span<const std::size_t> path) { held_->keep(path); }
  [[nodiscard]] std::size_t size() const { return held_->size(); }
  void truncate(std::size_t count) { held_->truncate(count); }
  [[nodiscard]] std::size_t vocabulary_size() const { return held_->vocabulary_size(); }

 private:
  struct holder {
    virtual ~holder() = default;
    virtual std::span<const float> evaluate(std::span<const token_id> tokens) = 0;
    virtual void score(std::span<const token_id> tokens) = 0;
    virtual void score(std::span<const token_id> nodes, std::span<const std::int32_t> parents) = 0;
    virtual std::span<const float> row(std::size_t i) = 0;
    virtual void keep(std::span<const std::size_t> path) = 0;
    virtual std::size_t size() const = 0;
    virtual void truncate(std::size_t count) = 0;
    virtual std::size_t vocabulary_size() const = 0;
  };
  template <class M>
  struct typed final : holder {
    explicit typed(M m) : model(std::move(m)) {}
    std::span<const float> evaluate(std::span<const token_id> tokens) override { return model.evaluate(tokens); }
    void score(std::span<const token_id> tokens) override { model.score(tokens); }
    void score(std::span<const token_id> nodes, std::span<const std::int32_t> parents) override {
      model.score(nodes, parents);
    }
    std::span<const float> row(std::size_t i) override { return model.row(i); }
    void keep(std::span<const std::size_t> path) override { model.keep(path); }
    std::size_t size() const override { return model.size(); }
    void truncate(std::size_t count) override { model.truncate(count); }
    std::size_t vocabulary_size() const override { return model.vocabulary_size(); }
    M model;
  };

  std::unique_ptr<holder> held_;
};
static_assert(decant::TreeModel<any_model>);

}  // namespace drafter_tests
