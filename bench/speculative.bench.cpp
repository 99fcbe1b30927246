// SPDX-License-Identifier: MIT
// What speculation costs beside rows and drafters: verifying one drafted position, in passes over the logits, as
// speculative/<rule>.<chain>/<isa>/<residency>/<row>/<n>; a round of the driver on rows of eight tokens, in
// microseconds, as speculative/round.<rule>/..., and how much of it the driver adds to the same drafts, chains and rule
// without it, as speculative/driver.<rule>/...

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include <decant/chain.hpp>
#include <decant/core/law.hpp>
#include <decant/processors/min_p.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/processors/top_p.hpp>
#include <decant/samplers/multinomial.hpp>
#include <decant/speculative.hpp>

#include "harness.hpp"

namespace {

using namespace decant;
using bench::place;
using bench::residency;
using bench::row_kind;

/// Verifies a draft of one token against a row: the chain's law of the row, the rule, and the token after it. The draft
/// comes from the law that the same chain leaves of another row.
template <class Rule, class D>
class one_position {
 public:
  one_position(D decoder, std::span<const float> other_row, std::size_t vocabulary) : decoder_(std::move(decoder)) {
    const std::vector<token_id> history = bench::history_of(vocabulary);
    const auto context = context_after(history, bench::prompt_size, draw_stream(1));
    drafted_.clear(proposal::with_replacement);
    decoder_.law_of(other_row, context, drafted_.children_law(no_parent));
    token_ = draw(drafted_.children_law(no_parent), draw_stream(2), purpose::draft);
    drafted_.add(token_);
  }

  token_id operator()(std::span<const float> row, const step_context& context) {
    decoder_.law_of(row, context, law_);
    const auto target = [this](std::int32_t) -> const law& { return law_; };
    stream_decisions decide(context.draws.child(1));
    rule_(drafted_, target, decide, found_);
    return draw(*found_.next, context.draws.child(2), purpose::residual, 0, workspace_);
  }

 private:
  D decoder_;
  Rule rule_;
  draft drafted_;
  token_id token_ = no_token;
  law law_;
  verdict found_;
  math::sum_tree workspace_;
};

template <class Rule, class D>
void measure_position(benchmark::State& state, const place& at, const D& decoder) {
  const auto other = bench::pool_of<float>(at.kind, at.where, at.size).window(12345);
  const auto own = std::make_shared<one_position<Rule, D>>(decoder, other, at.size);
  bench::measure<const float>(
      state, at,
      {[own](std::span<const float> row, const step_context& context) { return (*own)(row, context); }, [] {}});
}

/// The law alone, as both sides need it: what a verified position cannot cost less than.
template <class D>
void measure_law(benchmark::State& state, const place& at, const D& decoder) {
  const auto own = std::make_shared<D>(decoder);
  const auto out = std::make_shared<law>();
  bench::measure<const float>(state, at,
                              {[own, out](std::span<const float> row, const step_context& context) {
                                 own->law_of(row, context, *out);
                                 return out->ids.front();
                               },
                               [] {}});
}

/// A model that costs nothing: every row is the same.
struct free_model {
  std::vector<float> logits{0, 1, 2, 3, 4, 5, 6, 7};
  std::size_t held = 0;

  std::span<const float> evaluate(std::span<const token_id> tokens) { return held += tokens.size(), logits; }
  void score(std::span<const token_id> tokens) { held += tokens.size(); }
  [[nodiscard]] std::span<const float> row(std::size_t) const { return logits; }
  [[nodiscard]] std::size_t size() const { return held; }
  [[nodiscard]] std::size_t vocabulary_size() const { return logits.size(); }
  void truncate(std::size_t count) { held = count; }
};

/// Drafts the same four tokens, as if drawn from the law that the target has too.
struct free_drafter {
  law always;
  proposal mode = proposal::with_replacement;

  void propose(const draft_request& request, draft& out) {
    out.set_mode(mode);
    std::int32_t node = no_parent;
    for (std::size_t i = 0; i < request.max_depth; ++i) {
      law& q = out.children_law(node);
      q.ids.assign(always.ids.begin(), always.ids.end());
      q.weights.assign(always.weights.begin(), always.weights.end());
      q.total = always.total;
      node = out.add(7, node);
    }
  }
};

/// Rounds of four drafted tokens, with the driver and without.
template <class Rule>
class rounds {
 public:
  explicit rounds(proposal mode) : mode_(mode) {
    drafter_.mode = mode;
    drafter_.always = decoder_.law_of(row(), context_after(text_, 2, draw_stream(1)));
    stream_ = std::make_unique<stream>(model_, text_, drafter_, decoder_,
                                       generate_options{.max_new_tokens = std::size_t{1} << 40, .seed = 1},
                                       speculation_options{.length = draft_length::fixed(depth)});
  }

  /// One round, and the events of what it decides.
  token_id operator()() {
    const std::size_t before = stream_->statistics().rounds;
    token_id last = no_token;
    while (stream_->statistics().rounds == before) last = stream_->next()->token;
    return last;
  }

  /// What a round does beside the driver: the draft, the chain at every position, the rule, the last draw.
  token_id without_driver() {
    drafted_.clear();
    draft_request request;
    request.max_depth = depth;
    drafter_.propose(request, drafted_);
    const draw_stream draws(text_.size());
    return mode_ == proposal::deterministic ? decided_one_by_one(draws) : decided_by_laws(draws);
  }

 private:
  static constexpr std::size_t depth = 4;
  static auto chain() { return top_k(4) | multinomial{}; }
  using decoder = decltype(chain());
  using stream = speculative_stream<free_model, free_drafter, decoder, Rule>;

  [[nodiscard]] std::span<const float> row() const { return model_.logits; }

  token_id decided_by_laws(const draw_stream& draws) {
    for (law& p : laws_) {
      decoder_.law_of(row(), context_after(text_, 2, draws), p);
      text_.push_back(7);
    }
    const auto target = [this](std::int32_t node) -> const law& { return laws_[static_cast<std::size_t>(node + 1)]; };
    stream_decisions decide(draws);
    rule_(drafted_, target, decide, found_);
    return draw(*found_.next, draws, purpose::residual, 0, workspace_);
  }

  token_id decided_one_by_one(const draw_stream& draws) {
    token_id token = 7;
    for (std::size_t i = 0; i <= depth && token == 7; ++i) {
      token = decoder_.try_step(row(), context_after(text_, 2, draws)).token;
      text_.push_back(token);
    }
    return token;
  }

  proposal mode_;
  std::vector<token_id> text_{1, 2};
  free_model model_;
  free_drafter drafter_;
  decoder decoder_ = chain();
  Rule rule_;
  std::unique_ptr<stream> stream_;
  draft drafted_;
  std::array<law, depth + 1> laws_;
  verdict found_;
  math::sum_tree workspace_;
};

template <class Rule>
void measure_round(benchmark::State& state, const place& at, proposal mode) {
  const auto own = std::make_shared<rounds<Rule>>(mode);
  bench::measure<const float>(state, at,
                              {[own](std::span<const float>, const step_context&) { return (*own)(); }, [] {}});
}

/// What the driver adds: the median of a few rounds with it less that of as many without, taken in turn.
template <class Rule>
void measure_driver(benchmark::State& state, proposal mode) {
  using bench::detail::clock;
  constexpr int batch = 64;
  rounds<Rule> measured(mode);
  std::vector<double> with, without;
  const auto seconds_of = [](auto&& run) {
    const auto start = clock::now();
    for (int i = 0; i < batch; ++i) benchmark::DoNotOptimize(run());
    return bench::detail::seconds(clock::now() - start) / batch;
  };
  for (auto _ : state) {
    const auto start = clock::now();
    for (std::size_t i = 0;
         i < bench::least_samples || bench::detail::seconds(clock::now() - start) < bench::budget_seconds(); ++i) {
      with.push_back(seconds_of(measured));
      without.push_back(seconds_of([&] { return measured.without_driver(); }));
    }
    state.SetIterationTime(bench::detail::median(with) - bench::detail::median(without));
  }
  state.counters["tokens_per_second"] = 1 / (bench::detail::median(with) - bench::detail::median(without));
  state.counters["with_us"] = bench::detail::median(with) * 1e6;
  state.counters["without_us"] = bench::detail::median(without) * 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  const auto truncating = top_k(40) | top_p(0.95) | min_p(0.05) | multinomial{};
  const auto nucleus = top_p(0.95) | multinomial{};
  const auto whole = temperature(0.8) | multinomial{};
  for (const bench::isa kernels : bench::measured_isas()) {
    const place at{kernels, residency::L3, row_kind::zipf, 128'256};
    const auto add = [&](const std::string& chain, const auto& decoder) {
      bench::add(at.name("speculative/law." + chain),
                 [=](benchmark::State& state) { measure_law(state, at, decoder); });
      bench::add(at.name("speculative/token." + chain),
                 [=](benchmark::State& state) { measure_position<token_verification>(state, at, decoder); });
      bench::add(at.name("speculative/block." + chain),
                 [=](benchmark::State& state) { measure_position<block_verification>(state, at, decoder); });
    };
    add("k_p_m", truncating);
    add("topp", nucleus);
    add("full", whole);
  }
  const place tiny{bench::measured_isas().front(), residency::L2, row_kind::zipf, 8};
  const auto add_round = [&](const std::string& rule, proposal mode) {
    bench::add(tiny.name("speculative/round." + rule),
               [=](benchmark::State& state) { measure_round<lossless_verification>(state, tiny, mode); });
    bench::add(tiny.name("speculative/driver." + rule),
               [=](benchmark::State& state) { measure_driver<lossless_verification>(state, mode); });
  };
  add_round("block", proposal::with_replacement);
  add_round("coupled", proposal::deterministic);
  return bench::run(argc, argv);
}
