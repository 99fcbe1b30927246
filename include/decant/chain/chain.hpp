// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <decant/chain/steps.hpp>
#include <decant/core/candidates.hpp>
#include <decant/core/concepts.hpp>

namespace decant {

/// Processors in a fixed order, itself a processor: `chain(top_k(40), top_p(0.95))`.
///
/// Order is meaning: each step acts on what the one before it left. A value: copying it copies the state of its steps,
/// so a copy is a fork. `a | b` is the same for decant's own policies; lambdas have no namespace for `|` to be found
/// in, so they are written `chain(lambda, lambda)`. An empty chain is the identity. No cost beside that of the steps.
template <class... Processors>
class chain {
  static_assert(
      (LogitsProcessor<Processors> && ...),
      "decant: every part of a chain must be a processor, callable as void(candidates&, const step_context&); "
      "a lambda will do: chain(lambda, lambda), because | cannot be found for two lambdas");

 public:
  explicit chain(Processors... processors) : processors_(std::move(processors)...) {}
  explicit chain(std::tuple<Processors...> processors)
    requires(sizeof...(Processors) > 0)
      : processors_(std::move(processors)) {}

  void operator()(candidates& row, const step_context& context) {
    std::apply([&](auto&... processor) { (processor(row, context), ...); }, processors_);
  }

  /// The steps up to the last one that can change which token is the largest.
  void apply_for_argmax(candidates& row, const step_context& context) {
    std::apply(
        [&](auto&... processor) {
          std::size_t count = 0, needed = 0;
          ((++count, needed = decant::is_argmax_invariant(processor) ? needed : count), ...);
          count = 0;
          ((++count < needed  ? processor(row, context)
            : count == needed ? detail::apply_for_argmax(processor, row, context)
                              : void()),
           ...);
        },
        processors_);
  }

  /// The steps that are not off, in order: "top_k(40) | top_p(0.95)".
  [[nodiscard]] std::string describe() const {
    std::string text;
    std::apply([&](const auto&... p) { ((is_off(p) ? void() : detail::append_step(text, decant::describe(p))), ...); },
               processors_);
    return text.empty() ? "identity" : text;
  }

  /// Whether every step is off.
  [[nodiscard]] bool off() const {
    return std::apply([](const auto&... processor) { return (is_off(processor) && ...); }, processors_);
  }

  static constexpr bool argmax_invariant = (argmax_invariant_v<Processors> && ...);
  [[nodiscard]] bool is_argmax_invariant() const {
    return std::apply([](const auto&... processor) { return (decant::is_argmax_invariant(processor) && ...); },
                      processors_);
  }

  void list_steps(std::vector<chain_step>& steps) {
    std::apply([&](auto&... processor) { (decant::list_steps(processor, steps), ...); }, processors_);
  }

  [[nodiscard]] bool keeps_state() const {
    return std::apply([](const auto&... processor) { return (decant::keeps_state(processor) || ...); }, processors_);
  }

  void accept(token_id token, const step_record& record)
    requires(Stateful<Processors> || ...)
  {
    std::apply([&](auto&... processor) { (detail::accept_in(processor, token, record), ...); }, processors_);
  }
  void rollback(std::size_t count)
    requires(Stateful<Processors> || ...)
  {
    std::apply([&](auto&... processor) { (detail::rollback_in(processor, count), ...); }, processors_);
  }
  void reset()
    requires(Stateful<Processors> || ...)
  {
    std::apply([&](auto&... processor) { (detail::reset_in(processor), ...); }, processors_);
  }

  /// The steps themselves, to read or to change a parameter in mid-stream.
  [[nodiscard]] std::tuple<Processors...>& processors() { return processors_; }
  [[nodiscard]] const std::tuple<Processors...>& processors() const { return processors_; }

 private:
  std::tuple<Processors...> processors_;
};

}  // namespace decant
