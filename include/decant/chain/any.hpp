// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <decant/chain/steps.hpp>
#include <decant/core/candidates.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/describe.hpp>

namespace decant {

namespace detail {

/// An address a type: tells types apart without run-time type information.
template <class T>
inline constexpr char type_tag = 0;

/// What any processor and any sampler have in common once their type is forgotten.
struct erased_policy {
  virtual ~erased_policy() = default;
  [[nodiscard]] virtual std::string describe() const = 0;
  [[nodiscard]] virtual bool off() const = 0;
  [[nodiscard]] virtual bool keeps_state() const = 0;
  virtual void accept(token_id token, const step_record& record) = 0;
  virtual void rollback(std::size_t count) = 0;
  virtual void reset() = 0;
  /// The policy, if it is of the type with this tag.
  [[nodiscard]] virtual void* find(const char* tag) noexcept = 0;
};

template <class Interface, class P>
struct erased : Interface {
  explicit erased(P value) : policy(std::move(value)) {}

  [[nodiscard]] std::string describe() const override { return decant::describe(policy); }
  [[nodiscard]] bool off() const override { return is_off(policy); }
  [[nodiscard]] bool keeps_state() const override { return decant::keeps_state(policy); }
  void accept(token_id token, const step_record& record) override { accept_in(policy, token, record); }
  void rollback(std::size_t count) override { rollback_in(policy, count); }
  void reset() override { reset_in(policy); }
  [[nodiscard]] void* find(const char* tag) noexcept override { return tag == &type_tag<P> ? &policy : nullptr; }

  P policy;
};

/// A copyable owner of an erased policy: copying clones it.
template <class Interface>
class erased_value {
 public:
  explicit erased_value(std::unique_ptr<Interface> policy) : policy_(std::move(policy)) {}
  erased_value(const erased_value& other) : policy_(other.policy_->clone()) {}
  erased_value(erased_value&&) noexcept = default;
  erased_value& operator=(const erased_value& other) { return policy_ = other.policy_->clone(), *this; }
  erased_value& operator=(erased_value&&) noexcept = default;
  ~erased_value() = default;

  [[nodiscard]] std::string describe() const { return policy_->describe(); }
  [[nodiscard]] bool off() const { return policy_->off(); }
  [[nodiscard]] bool keeps_state() const { return policy_->keeps_state(); }
  void accept(token_id token, const step_record& record) { policy_->accept(token, record); }
  void rollback(std::size_t count) { policy_->rollback(count); }
  void reset() { policy_->reset(); }

  /// The policy, if it is a P; null otherwise. To change a parameter of a step that is already in use.
  template <class P>
  [[nodiscard]] P* as() noexcept {
    return static_cast<P*>(policy_->find(&type_tag<P>));
  }
  template <class P>
  [[nodiscard]] const P* as() const noexcept {
    return static_cast<const P*>(policy_->find(&type_tag<P>));
  }

 protected:
  std::unique_ptr<Interface> policy_;
};

struct erased_processor : erased_policy {
  [[nodiscard]] virtual std::unique_ptr<erased_processor> clone() const = 0;
  virtual void apply(candidates& row, const step_context& context) = 0;
  virtual void apply_for_argmax(candidates& row, const step_context& context) = 0;
  [[nodiscard]] virtual bool is_argmax_invariant() const = 0;
  virtual void list_steps(std::vector<chain_step>& steps) = 0;
};

template <LogitsProcessor P>
struct processor_holder final : erased<erased_processor, P> {
  using erased<erased_processor, P>::erased;
  [[nodiscard]] std::unique_ptr<erased_processor> clone() const override {
    return std::make_unique<processor_holder>(*this);
  }
  void apply(candidates& row, const step_context& context) override { this->policy(row, context); }
  void apply_for_argmax(candidates& row, const step_context& context) override {
    detail::apply_for_argmax(this->policy, row, context);
  }
  [[nodiscard]] bool is_argmax_invariant() const override { return decant::is_argmax_invariant(this->policy); }
  void list_steps(std::vector<chain_step>& steps) override { decant::list_steps(this->policy, steps); }
};

struct erased_sampler : erased_policy {
  [[nodiscard]] virtual std::unique_ptr<erased_sampler> clone() const = 0;
  virtual token_id sample(candidates& row, const step_context& context) = 0;
  [[nodiscard]] virtual bool is_argmax() const = 0;
  [[nodiscard]] virtual bool leaves_logits() const = 0;
  [[nodiscard]] virtual bool has_law() const = 0;
  virtual void narrow(candidates& row, const step_context& context) = 0;
};

template <Sampler S>
struct sampler_holder final : erased<erased_sampler, S> {
  using erased<erased_sampler, S>::erased;
  [[nodiscard]] std::unique_ptr<erased_sampler> clone() const override {
    return std::make_unique<sampler_holder>(*this);
  }
  token_id sample(candidates& row, const step_context& context) override { return this->policy(row, context); }
  [[nodiscard]] bool is_argmax() const override { return takes_argmax(this->policy); }
  [[nodiscard]] bool leaves_logits() const override { return only_narrows(this->policy); }
  [[nodiscard]] bool has_law() const override { return decant::has_law(this->policy); }
  void narrow([[maybe_unused]] candidates& row, [[maybe_unused]] const step_context& context) override {
    if constexpr (LawSampler<S>) {
      this->policy.narrow(row, context);
    } else {
      DECANT_ASSERT(false, "narrow() of a sampler that has no law");
    }
  }
};

}  // namespace detail

/// Any processor, its type forgotten: for chains put together at run time. Copying clones, state included. One indirect
/// call a step.
class any_processor : public detail::erased_value<detail::erased_processor> {
 public:
  template <class P>
    requires(!std::same_as<std::remove_cvref_t<P>, any_processor>) && LogitsProcessor<std::remove_cvref_t<P>> &&
            std::copy_constructible<std::remove_cvref_t<P>>
  any_processor(P&& processor)
      : erased_value(std::make_unique<detail::processor_holder<std::remove_cvref_t<P>>>(std::forward<P>(processor))) {}

  void operator()(candidates& row, const step_context& context) { policy_->apply(row, context); }
  void apply_for_argmax(candidates& row, const step_context& context) { policy_->apply_for_argmax(row, context); }
  [[nodiscard]] bool is_argmax_invariant() const { return policy_->is_argmax_invariant(); }
  void list_steps(std::vector<chain_step>& steps) { policy_->list_steps(steps); }
};

/// Any sampler, its type forgotten. Satisfies LawSampler; calling narrow on one without a law is misuse, `has_law`
/// tells.
class any_sampler : public detail::erased_value<detail::erased_sampler> {
 public:
  template <class S>
    requires(!std::same_as<std::remove_cvref_t<S>, any_sampler>) && Sampler<std::remove_cvref_t<S>> &&
            std::copy_constructible<std::remove_cvref_t<S>>
  any_sampler(S&& sampler)
      : erased_value(std::make_unique<detail::sampler_holder<std::remove_cvref_t<S>>>(std::forward<S>(sampler))) {}

  token_id operator()(candidates& row, const step_context& context) { return policy_->sample(row, context); }
  [[nodiscard]] bool is_argmax() const { return policy_->is_argmax(); }
  [[nodiscard]] bool leaves_logits() const { return policy_->leaves_logits(); }
  [[nodiscard]] bool has_law() const { return policy_->has_law(); }
  void narrow(candidates& row, const step_context& context) { policy_->narrow(row, context); }
};

/// Processors in an order chosen at run time, itself a processor; the twin of `chain`. They nest in each other.
class dynamic_chain {
 public:
  dynamic_chain() = default;
  /// One step each, a chain among them too. (Whether dynamic_chain{other} nests or copies differs between compilers;
  /// the steps are the same.)
  dynamic_chain(std::initializer_list<any_processor> processors) : processors_(processors) {}

  void push_back(any_processor processor) { processors_.push_back(std::move(processor)); }
  void clear() { processors_.clear(); }
  [[nodiscard]] std::size_t size() const { return processors_.size(); }
  [[nodiscard]] any_processor& operator[](std::size_t i) { return processors_[i]; }
  [[nodiscard]] const any_processor& operator[](std::size_t i) const { return processors_[i]; }

  void operator()(candidates& row, const step_context& context) {
    for (auto& processor : processors_) processor(row, context);
  }

  /// The steps up to the last one that can change which token is the largest.
  void apply_for_argmax(candidates& row, const step_context& context) {
    std::size_t needed = processors_.size();
    while (needed > 0 && processors_[needed - 1].is_argmax_invariant()) --needed;
    for (std::size_t i = 0; i + 1 < needed; ++i) processors_[i](row, context);
    if (needed > 0) processors_[needed - 1].apply_for_argmax(row, context);
  }

  /// The steps that are not off, in order.
  [[nodiscard]] std::string describe() const {
    std::string text;
    for (const auto& processor : processors_) {
      if (!processor.off()) detail::append_step(text, processor.describe());
    }
    return text.empty() ? "identity" : text;
  }

  [[nodiscard]] bool off() const {
    for (const auto& processor : processors_) {
      if (!processor.off()) return false;
    }
    return true;
  }

  [[nodiscard]] bool is_argmax_invariant() const {
    for (const auto& processor : processors_) {
      if (!processor.is_argmax_invariant()) return false;
    }
    return true;
  }

  void list_steps(std::vector<chain_step>& steps) {
    for (auto& processor : processors_) processor.list_steps(steps);
  }

  [[nodiscard]] bool keeps_state() const {
    for (const auto& processor : processors_) {
      if (processor.keeps_state()) return true;
    }
    return false;
  }
  void accept(token_id token, const step_record& record) {
    for (auto& processor : processors_) processor.accept(token, record);
  }
  void rollback(std::size_t count) {
    for (auto& processor : processors_) processor.rollback(count);
  }
  void reset() {
    for (auto& processor : processors_) processor.reset();
  }

 private:
  std::vector<any_processor> processors_;
};

}  // namespace decant
