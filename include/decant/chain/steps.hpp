// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/describe.hpp>

namespace decant {

/// One step of a chain taken apart: refers into the chain, valid as long as that is neither moved nor changed.
struct chain_step {
  std::string name;  ///< as describe() gives it
  bool off;          ///< whether it stands at its off value
  void* processor;
  void (*apply)(void*, candidates&, const step_context&);
};

/// Appends the steps of a processor in the order in which they run: itself, or its parts if it is made of parts.
template <LogitsProcessor P>
void list_steps(P& processor, std::vector<chain_step>& steps) {
  if constexpr (requires { processor.list_steps(steps); }) {
    processor.list_steps(steps);
  } else {
    steps.push_back(
        {describe(processor), is_off(processor), &processor,
         [](void* self, candidates& row, const step_context& context) { (*static_cast<P*>(self))(row, context); }});
  }
}

/// Whether a policy keeps state from token to token; a policy put together at run time is asked.
template <class P>
bool keeps_state(const P& policy) {
  if constexpr (requires {
                  { policy.keeps_state() } -> std::convertible_to<bool>;
                }) {
    return policy.keeps_state();
  } else {
    return Stateful<P>;
  }
}

/// Whether a sampler has a law to narrow to; one put together at run time is asked.
template <Sampler S>
bool has_law(const S& sampler) {
  if constexpr (requires {
                  { sampler.has_law() } -> std::convertible_to<bool>;
                }) {
    return sampler.has_law();
  } else {
    return LawSampler<S>;
  }
}

/// Whether a type of processor never changes which token has the largest logit (the lowest id among equals), whatever
/// the row, the text and its own parameters. It says so by `static constexpr bool argmax_invariant = true`.
template <class P>
inline constexpr bool argmax_invariant_v = requires { requires P::argmax_invariant; };

/// The same of one processor: one at its off value changes nothing; one put together at run time is asked.
template <LogitsProcessor P>
bool is_argmax_invariant(const P& processor) {
  if constexpr (requires {
                  { processor.is_argmax_invariant() } -> std::convertible_to<bool>;
                }) {
    return processor.is_argmax_invariant();
  } else {
    return argmax_invariant_v<P> || is_off(processor);
  }
}

/// Whether a sampler only ever takes the token of the largest logit, so that argmax-invariant steps before it can be
/// left out. It says so by `static constexpr bool takes_argmax = true`; one put together at run time is asked.
template <Sampler S>
bool takes_argmax(const S& sampler) {
  if constexpr (requires {
                  { sampler.is_argmax() } -> std::convertible_to<bool>;
                }) {
    return sampler.is_argmax();
  } else {
    return requires { requires S::takes_argmax; };
  }
}

/// Whether a sampler does nothing to a row but narrow it, so that tokens keep the logits that they came with. It says
/// so by `static constexpr bool only_narrows = true`; one put together at run time is asked.
template <Sampler S>
bool only_narrows(const S& sampler) {
  if constexpr (requires {
                  { sampler.leaves_logits() } -> std::convertible_to<bool>;
                }) {
    return sampler.leaves_logits();
  } else {
    return requires { requires S::only_narrows; };
  }
}

namespace detail {

/// Does to a row what a processor does, as far as it decides the argmax: steps at the end that cannot change it are
/// left out. (Further in front they cannot be: a temperature decides what a bias after it does.)
template <LogitsProcessor P>
void apply_for_argmax(P& processor, candidates& row, const step_context& context) {
  if constexpr (requires { processor.apply_for_argmax(row, context); }) {
    processor.apply_for_argmax(row, context);
  } else if (!is_argmax_invariant(processor)) {
    processor(row, context);
  }
}

/// accept, rollback and reset for a policy that may or may not have state.
template <class P>
void accept_in(P& policy, token_id token, const step_record& record) {
  if constexpr (Stateful<P>) policy.accept(token, record);
}

template <class P>
void rollback_in(P& policy, std::size_t count) {
  if constexpr (Stateful<P>) policy.rollback(count);
}

template <class P>
void reset_in(P& policy) {
  if constexpr (Stateful<P>) policy.reset();
}

/// "a | b | c"; "identity" for nothing.
inline void append_step(std::string& text, const std::string& step) {
  if (!text.empty()) text += " | ";
  text += step;
}

}  // namespace detail

/// A processor with a name of its own, for lambdas: `named("no vowels", [](candidates& row, const step_context&)
/// {...})`.
template <LogitsProcessor P>
class named {
 public:
  named(std::string name, P processor) : name_(std::move(name)), processor_(std::move(processor)) {}

  void operator()(candidates& row, const step_context& context) { processor_(row, context); }

  [[nodiscard]] std::string describe() const { return name_; }
  [[nodiscard]] bool off() const { return is_off(processor_); }
  [[nodiscard]] bool is_argmax_invariant() const { return decant::is_argmax_invariant(processor_); }

  void accept(token_id token, const step_record& record)
    requires Stateful<P>
  {
    processor_.accept(token, record);
  }
  void rollback(std::size_t count)
    requires Stateful<P>
  {
    processor_.rollback(count);
  }
  void reset()
    requires Stateful<P>
  {
    processor_.reset();
  }

 private:
  std::string name_;
  P processor_;
};

}  // namespace decant
