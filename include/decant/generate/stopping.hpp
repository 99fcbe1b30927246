// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/core/context.hpp>
#include <decant/core/token.hpp>

namespace decant {

/// Why a generation ended.
enum class finish_reason : std::uint8_t {
  none,           ///< it has not
  stop_token,     ///< a stop token was drawn
  stop_string,    ///< the text reached a stop string
  stop_sequence,  ///< the output ended with a token sequence
  length,         ///< the wanted number of tokens is there
  context_full,   ///< prompt and output fill the context
  criterion,      ///< a predicate of the user's said so
  time,           ///< the time budget is used up
  cancelled,      ///< the callback said so
  bad_row,        ///< the model gave a row from which nothing can be drawn
};

/// A finish reason in words.
constexpr const char* to_string(finish_reason reason) noexcept {
  switch (reason) {
    case finish_reason::none: return "not finished";
    case finish_reason::stop_token: return "stop token";
    case finish_reason::stop_string: return "stop string";
    case finish_reason::stop_sequence: return "stop sequence";
    case finish_reason::length: return "length";
    case finish_reason::context_full: return "context full";
    case finish_reason::criterion: return "criterion";
    case finish_reason::time: return "time";
    case finish_reason::cancelled: return "cancelled";
    case finish_reason::bad_row: return "bad row";
  }
  return "unknown";
}

// Every criterion below is asked after each drawn token and looks at the output alone: what stands in the prompt never
// ends a generation.

/// Stops when `count` tokens have been generated.
struct max_new_tokens {
  static constexpr finish_reason reason = finish_reason::length;
  std::size_t count;

  bool operator()(const step_context& context) const { return context.output().size() >= count; }
};

/// Stops when prompt and output together hold `count` tokens.
struct max_length {
  static constexpr finish_reason reason = finish_reason::context_full;
  std::size_t count;

  bool operator()(const step_context& context) const { return context.tokens.size() >= count; }
};

/// Stops when one of the given tokens has been drawn.
struct stop_tokens {
  static constexpr finish_reason reason = finish_reason::stop_token;
  std::vector<token_id> tokens;

  bool operator()(const step_context& context) const {
    const auto output = context.output();
    return !output.empty() && std::ranges::find(tokens, output.back()) != tokens.end();
  }
};

/// Stops when the output ends with the given tokens; never for an empty sequence.
struct stop_sequence {
  static constexpr finish_reason reason = finish_reason::stop_sequence;
  std::vector<token_id> tokens;

  bool operator()(const step_context& context) const {
    const auto output = context.output();
    return !tokens.empty() && output.size() >= tokens.size() && std::ranges::equal(output.last(tokens.size()), tokens);
  }
};

/// Stops when a predicate of the context holds.
template <StoppingCriterion F>
struct stop_when {
  static constexpr finish_reason reason = finish_reason::criterion;
  F predicate;

  bool operator()(const step_context& context) { return predicate(context); }
};
template <class F>
stop_when(F) -> stop_when<F>;

/// Stops when the given time has passed since the first token was asked about. How many tokens that allows depends on
/// the machine: the tokens themselves are reproducible, their number is not.
class time_budget {
 public:
  static constexpr finish_reason reason = finish_reason::time;

  explicit time_budget(std::chrono::nanoseconds budget) : budget_(budget) {}

  /// Starts the clock; the loop does so before the prompt is evaluated.
  void start() { started_ = std::chrono::steady_clock::now(); }

  bool operator()(const step_context&) {
    if (started_ == std::chrono::steady_clock::time_point{}) start();
    return std::chrono::steady_clock::now() - started_ >= budget_;
  }

 private:
  std::chrono::nanoseconds budget_;
  std::chrono::steady_clock::time_point started_{};
};

namespace detail {

template <class C>
void start_criterion(C& criterion) {
  if constexpr (requires { criterion.start(); }) criterion.start();
}

/// Why a criterion would stop; composed ones say which of their parts did.
template <class C>
finish_reason reason_of(const C& criterion) {
  if constexpr (requires { criterion.why(); }) {
    return criterion.why();
  } else if constexpr (requires { C::reason; }) {
    return C::reason;
  } else {
    return finish_reason::criterion;
  }
}

}  // namespace detail

/// Stops when one of its parts does; all are asked every time, so that parts with state see every token. Reports the
/// first part's reason.
template <StoppingCriterion... Parts>
class stop_any {
 public:
  explicit stop_any(Parts... parts) : parts_(std::move(parts)...) {}

  bool operator()(const step_context& context) {
    why_ = finish_reason::none;
    const auto ask = [&](auto& part) {
      if (part(context) && why_ == finish_reason::none) why_ = detail::reason_of(part);
    };
    std::apply([&](auto&... part) { (ask(part), ...); }, parts_);
    return why_ != finish_reason::none;
  }

  void start() {
    std::apply([](auto&... part) { (detail::start_criterion(part), ...); }, parts_);
  }
  [[nodiscard]] finish_reason why() const { return why_; }

 private:
  std::tuple<Parts...> parts_;
  finish_reason why_ = finish_reason::none;
};

/// Stops when all of its parts would; all are asked every time. Reports the last part's reason.
template <StoppingCriterion... Parts>
class stop_all {
 public:
  explicit stop_all(Parts... parts) : parts_(std::move(parts)...) {}

  bool operator()(const step_context& context) {
    bool stop = true;
    const auto ask = [&](auto& part) {
      if (!part(context)) stop = false;
      why_ = detail::reason_of(part);
    };
    std::apply([&](auto&... part) { (ask(part), ...); }, parts_);
    return stop;
  }

  void start() {
    std::apply([](auto&... part) { (detail::start_criterion(part), ...); }, parts_);
  }
  [[nodiscard]] finish_reason why() const { return why_; }

 private:
  std::tuple<Parts...> parts_;
  finish_reason why_ = finish_reason::criterion;
};

/// Any stopping criterion, its type forgotten; the default one never stops. Copying copies its state.
class any_criterion {
 public:
  any_criterion() = default;

  template <class C>
    requires(!std::same_as<std::remove_cvref_t<C>, any_criterion>) && StoppingCriterion<std::remove_cvref_t<C>>
  any_criterion(C&& criterion) : holder_(std::make_unique<typed<std::remove_cvref_t<C>>>(std::forward<C>(criterion))) {}

  any_criterion(const any_criterion& other) : holder_(other.holder_ ? other.holder_->clone() : nullptr) {}
  any_criterion(any_criterion&&) noexcept = default;
  any_criterion& operator=(const any_criterion& other) { return *this = any_criterion(other); }
  any_criterion& operator=(any_criterion&&) noexcept = default;
  ~any_criterion() = default;

  /// Whether there is one.
  explicit operator bool() const noexcept { return holder_ != nullptr; }

  bool operator()(const step_context& context) { return holder_ != nullptr && holder_->ask(context); }
  void start() {
    if (holder_ != nullptr) holder_->start();
  }
  [[nodiscard]] finish_reason why() const { return holder_ == nullptr ? finish_reason::none : holder_->why(); }

 private:
  struct holder {
    virtual ~holder() = default;
    [[nodiscard]] virtual std::unique_ptr<holder> clone() const = 0;
    virtual bool ask(const step_context& context) = 0;
    virtual void start() = 0;
    [[nodiscard]] virtual finish_reason why() const = 0;
  };
  template <class C>
  struct typed final : holder {
    explicit typed(C value) : criterion(std::move(value)) {}
    [[nodiscard]] std::unique_ptr<holder> clone() const override { return std::make_unique<typed>(*this); }
    bool ask(const step_context& context) override { return criterion(context); }
    void start() override { detail::start_criterion(criterion); }
    [[nodiscard]] finish_reason why() const override { return detail::reason_of(criterion); }
    C criterion;
  };

  std::unique_ptr<holder> holder_;
};

}  // namespace decant
