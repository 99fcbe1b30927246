// SPDX-License-Identifier: MIT
#include <decant/core/concepts.hpp>

#include "support/catch.hpp"

#include <decant/core/candidates.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace concepts_test {

using decant::candidates;
using decant::step_context;
using decant::step_record;
using decant::token_id;

struct processor {
  void operator()(candidates&, const step_context&) const {}
};
struct changing_processor {
  void operator()(candidates&, const step_context&) {}
};
struct returning {
  bool operator()(candidates&, const step_context&) const { return true; }
};
struct sampler {
  token_id operator()(candidates&, const step_context&) const { return 0; }
};
struct wide_sampler {
  long operator()(candidates&, const step_context&) const { return 0; }
};
struct law_sampler : sampler {
  void narrow(candidates&, const step_context&) const {}
};
struct stateful {
  void accept(token_id, const step_record&) {}
  void rollback(std::size_t) {}
  void reset() {}
};
struct half_stateful {
  void accept(token_id, const step_record&) {}
  void reset() {}
};
struct model {
  std::span<const float> evaluate(std::span<const token_id>) { return {}; }
  [[nodiscard]] std::size_t size() const { return 0; }
  void truncate(std::size_t) {}
  [[nodiscard]] std::size_t vocabulary_size() const { return 0; }
};
struct vector_model : model {
  std::vector<float>& evaluate(std::span<const token_id>) { return row; }
  std::vector<float> row;
};
struct scoring : model {
  void score(std::span<const token_id>) {}
  std::span<const float> row(std::size_t) { return {}; }
};
struct tree_scoring : scoring {
  using scoring::score;
  void score(std::span<const token_id>, std::span<const std::int32_t>) {}
  void keep(std::span<const std::size_t>) {}
};
struct showing : scoring {
  std::span<const float> hidden(std::size_t) { return {}; }
};
struct headed : scoring {
  [[nodiscard]] std::size_t head_count() const { return 2; }
  std::span<const float> head_row(std::size_t, std::size_t) { return {}; }
};
struct skippable : scoring {
  [[nodiscard]] std::size_t sub_layers() const { return 4; }
  std::span<const float> evaluate_skipping(std::span<const token_id>, const std::vector<bool>&) { return {}; }
  void score_skipping(std::span<const token_id>, const std::vector<bool>&) {}
};
struct layered : scoring {
  [[nodiscard]] std::size_t n_layers() const { return 2; }
  std::span<const float> peek(std::span<const token_id>, std::size_t) { return {}; }
};
struct batch {
  std::size_t start() { return 0; }
  std::size_t fork(std::size_t) { return 1; }
  void drop(std::size_t) {}
  void evaluate(std::span<const decant::batch_item>) {}
  std::span<const float> row(std::size_t) { return {}; }
  void truncate(std::size_t, std::size_t) {}
  [[nodiscard]] std::size_t size(std::size_t) const { return 0; }
  [[nodiscard]] std::size_t vocabulary_size() const { return 0; }
};
struct open_batch : batch {
  std::span<const float> hidden(std::size_t, std::size_t) { return {}; }
};
struct constraint {
  void fill(std::span<std::uint64_t>) {}
  void accept(token_id) {}
  void rollback(std::size_t) {}
  [[nodiscard]] bool finished() const { return true; }
};
struct unique_constraint : constraint {
  unique_constraint(const unique_constraint&) = delete;
  unique_constraint& operator=(const unique_constraint&) = delete;
};
struct progressing : constraint {
  [[nodiscard]] std::size_t progress() const { return 0; }
  [[nodiscard]] std::size_t progress_after(token_id) const { return 0; }
  [[nodiscard]] std::size_t goal() const { return 0; }
  void advancing(std::vector<token_id>&) const {}
};
struct sizeless {
  std::span<const float> evaluate(std::span<const token_id>) { return {}; }
  void truncate(std::size_t) {}
};

static_assert(decant::TokenConstraint<constraint> && decant::TokenConstraint<progressing>);
static_assert(!decant::TokenConstraint<unique_constraint> && !decant::TokenConstraint<processor>);
static_assert(decant::ProgressConstraint<progressing> && !decant::ProgressConstraint<constraint>);
static_assert(decant::LogitsProcessor<processor> && decant::LogitsProcessor<changing_processor>);
static_assert(!decant::LogitsProcessor<returning> && !decant::LogitsProcessor<sampler> &&
              !decant::LogitsProcessor<int>);
static_assert(!decant::LogitsProcessor<processor&> && !decant::LogitsProcessor<void(candidates&, const step_context&)>);
static_assert(decant::LogitsProcessor<void (*)(candidates&, const step_context&)>);
static_assert(decant::Sampler<sampler> && !decant::Sampler<processor> && !decant::Sampler<wide_sampler>);
static_assert(decant::LawSampler<law_sampler> && !decant::LawSampler<sampler>);
static_assert(decant::Stateful<stateful> && !decant::Stateful<half_stateful> && !decant::Stateful<processor>);
static_assert(decant::Model<model> && decant::Model<vector_model> && !decant::Model<sizeless> && !decant::Model<int>);
static_assert(decant::ScoringModel<scoring> && !decant::ScoringModel<model>);
static_assert(decant::TreeModel<tree_scoring> && !decant::TreeModel<scoring>);
static_assert(decant::HiddenRowModel<showing> && !decant::HiddenRowModel<scoring>);
static_assert(decant::HeadedModel<headed> && !decant::HeadedModel<showing>);
static_assert(decant::SkippableModel<skippable> && !decant::SkippableModel<scoring>);
static_assert(decant::LayeredModel<layered> && !decant::LayeredModel<skippable>);
static_assert(decant::BatchModel<batch> && !decant::BatchModel<tree_scoring> && !decant::Model<batch>);
static_assert(decant::HiddenStateModel<open_batch> && !decant::HiddenStateModel<batch>);

TEST_CASE("lambdas satisfy the concepts of small things", "[core][concepts]") {
  const auto process = [](candidates&, const step_context&) {};
  auto counting = [n = 0](candidates& row, const step_context&) mutable { row.ban(n++); };
  const auto sample = [](candidates&, const step_context&) { return token_id{3}; };
  const auto stop = [](const step_context& context) { return context.tokens.size() > 3; };
  const auto bytes = [](token_id) { return std::string_view("x"); };
  const auto string_bytes = [](token_id) { return std::string("x"); };
  STATIC_REQUIRE(decant::LogitsProcessor<std::remove_cvref_t<decltype(process)>>);
  STATIC_REQUIRE(decant::LogitsProcessor<decltype(counting)>);
  STATIC_REQUIRE(decant::Sampler<std::remove_cvref_t<decltype(sample)>>);
  STATIC_REQUIRE(decant::StoppingCriterion<std::remove_cvref_t<decltype(stop)>>);
  STATIC_REQUIRE(decant::TokenBytes<std::remove_cvref_t<decltype(bytes)>>);
  STATIC_REQUIRE(decant::TokenBytes<std::remove_cvref_t<decltype(string_bytes)>>);
  STATIC_REQUIRE_FALSE(decant::TokenBytes<std::remove_cvref_t<decltype(stop)>>);
}

TEST_CASE("a step record starts at certainty", "[core][concepts]") {
  const step_record record;
  CHECK(record.log_prob_before == 0);
  CHECK(record.log_prob_after == 0);
}

}  // namespace concepts_test
