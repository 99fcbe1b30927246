// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>

namespace decant {

/// Any TokenConstraint, its type forgotten; the default one is none and allows everything. Copying forks.
///
/// Is a ProgressConstraint whatever it holds: a constraint without progress has a goal of 0. One indirect call a verb.
class any_constraint {
 public:
  any_constraint() = default;

  template <class C>
    requires(!std::same_as<std::remove_cvref_t<C>, any_constraint>) && TokenConstraint<std::remove_cvref_t<C>>
  any_constraint(C&& constraint)
      : holder_(std::make_unique<typed<std::remove_cvref_t<C>>>(std::forward<C>(constraint))) {}

  any_constraint(const any_constraint& other) : holder_(other.holder_ ? other.holder_->clone() : nullptr) {}
  any_constraint(any_constraint&&) noexcept = default;
  /// Between constraints of one type the value is assigned in place, so storage is reused.
  any_constraint& operator=(const any_constraint& other) {
    if (this == &other) return *this;
    if (holder_ == nullptr || other.holder_ == nullptr || !holder_->assign(*other.holder_)) {
      holder_ = other.holder_ ? other.holder_->clone() : nullptr;
    }
    return *this;
  }
  any_constraint& operator=(any_constraint&&) noexcept = default;
  ~any_constraint() = default;

  /// Whether there is one.
  explicit operator bool() const noexcept { return holder_ != nullptr; }

  void fill(std::span<std::uint64_t> mask) { held().fill(mask); }
  void accept(token_id token) { held().accept(token); }
  void rollback(std::size_t count) { held().rollback(count); }
  [[nodiscard]] bool finished() const { return holder_ == nullptr || holder_->finished(); }

  [[nodiscard]] std::size_t progress() const { return holder_ == nullptr ? 0 : holder_->progress(); }
  [[nodiscard]] std::size_t progress_after(token_id token) const {
    return holder_ == nullptr ? 0 : holder_->progress_after(token);
  }
  [[nodiscard]] std::size_t goal() const { return holder_ == nullptr ? 0 : holder_->goal(); }
  void advancing(std::vector<token_id>& tokens) const {
    if (holder_ != nullptr) holder_->advancing(tokens);
  }

 private:
  struct holder {
    explicit holder(const void* type) : tag(type) {}
    virtual ~holder() = default;
    [[nodiscard]] virtual std::unique_ptr<holder> clone() const = 0;
    /// Whether the other is of this type; then this becomes its equal.
    virtual bool assign(const holder& other) = 0;
    virtual void fill(std::span<std::uint64_t> mask) = 0;
    virtual void accept(token_id token) = 0;
    virtual void rollback(std::size_t count) = 0;
    [[nodiscard]] virtual bool finished() const = 0;
    [[nodiscard]] virtual std::size_t progress() const = 0;
    [[nodiscard]] virtual std::size_t progress_after(token_id token) const = 0;
    [[nodiscard]] virtual std::size_t goal() const = 0;
    virtual void advancing(std::vector<token_id>& tokens) const = 0;
    const void* tag;
  };

  template <class C>
  struct typed final : holder {
    explicit typed(C value) : holder(&type_tag<C>), constraint(std::move(value)) {}
    [[nodiscard]] std::unique_ptr<holder> clone() const override { return std::make_unique<typed>(*this); }
    bool assign(const holder& other) override {
      if (other.tag != this->tag) return false;
      constraint = static_cast<const typed&>(other).constraint;
      return true;
    }
    void fill(std::span<std::uint64_t> mask) override { constraint.fill(mask); }
    void accept(token_id token) override { constraint.accept(token); }
    void rollback(std::size_t count) override { constraint.rollback(count); }
    [[nodiscard]] bool finished() const override { return constraint.finished(); }
    [[nodiscard]] std::size_t progress() const override {
      if constexpr (ProgressConstraint<C>) return constraint.progress();
      return 0;
    }
    [[nodiscard]] std::size_t progress_after([[maybe_unused]] token_id token) const override {
      if constexpr (ProgressConstraint<C>) return constraint.progress_after(token);
      return 0;
    }
    [[nodiscard]] std::size_t goal() const override {
      if constexpr (ProgressConstraint<C>) return constraint.goal();
      return 0;
    }
    void advancing([[maybe_unused]] std::vector<token_id>& tokens) const override {
      if constexpr (ProgressConstraint<C>) constraint.advancing(tokens);
    }
    C constraint;
  };

  template <class C>
  static constexpr char type_tag = 0;

  [[nodiscard]] holder& held() {
    DECANT_ASSERT(holder_ != nullptr, "there is no constraint");
    return *holder_;
  }

  std::unique_ptr<holder> holder_;
};

}  // namespace decant
