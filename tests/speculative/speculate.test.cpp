// SPDX-License-Identifier: MIT
#include <decant/speculative/speculate.hpp>

#include <decant/chain.hpp>
#include <decant/processors/frequency_penalty.hpp>
#include <decant/processors/presence_penalty.hpp>
#include <decant/processors/repetition_penalty.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/processors/top_p.hpp>
#include <decant/processors/xtc.hpp>
#include <decant/samplers/mirostat.hpp>
#include <decant/samplers/multinomial.hpp>
#include <decant/speculative/draft_model.hpp>
#include <decant/speculative/k_seq_verification.hpp>
#include <decant/speculative/lenient_verification.hpp>
#include <decant/speculative/recursive_rejection.hpp>
#include <decant/speculative/token_verification.hpp>
#include <decant/speculative/transport_verification.hpp>

#include "speculative/drivers.hpp"
#include "support/catch.hpp"

// Proof by enumeration: the shipped driver, chains and rules, every decision taken in every way, against plain
// generation under the same enumerator.

namespace speculate_tests {

using namespace drivers;
using decant::any_sampler;
using decant::dynamic_chain;
using decant::multinomial;
using decant::testing::distance;

const ids prompt{0, 1};

run_time_decoder chain_of(const std::string& kind) {
  if (kind == "temperature") return dynamic_chain{decant::temperature(0.7)} | any_sampler(multinomial{});
  if (kind == "top_k") return dynamic_chain{decant::top_k(2)} | any_sampler(multinomial{});
  if (kind == "top_p") return dynamic_chain{decant::top_p(0.7)} | any_sampler(multinomial{});
  if (kind == "penalties") {
    return dynamic_chain{decant::repetition_penalty(1.5), decant::frequency_penalty(0.4),
                         decant::presence_penalty(0.3)} |
           any_sampler(multinomial{});
  }
  if (kind == "lambda") {
    const auto no_repeat = [](decant::candidates& row, const decant::step_context& context) {
      if (row.size() > 1) row.ban(context.tokens.back());
    };
    return dynamic_chain{no_repeat} | any_sampler(multinomial{});
  }
  if (kind == "xtc") return dynamic_chain{decant::xtc(0.5, 0.2)} | any_sampler(multinomial{});
  if (kind == "mirostat") return dynamic_chain{} | any_sampler(decant::mirostat(1, 0.5));
  return dynamic_chain{} | any_sampler(multinomial{});
}

const std::vector<std::string> kinds = {"plain",     "temperature", "top_k", "top_p",
                                        "penalties", "lambda",      "xtc",   "mirostat"};

TEST_CASE("speculation has the law of plain decoding: block verification, every kind of chain", "[speculative]") {
  const markov target = decant::testing::random_markov_model(3, 1, 5),
               small = decant::testing::random_markov_model(3, 1, 6);
  for (const std::string& kind : kinds) {
    CAPTURE(kind);
    markov drafting = small;
    function_model model = tree_model(target);
    const auto plain = decant::testing::sequence_law(model, prompt, chain_of(kind), 3);
    decant::draft_model drafter(drafting, chain_of(kind == "mirostat" ? "plain" : kind));
    const auto law = speculated_law(model, prompt, drafter, chain_of(kind), 3, {.length = draft_length::fixed(2)},
                                    decant::lossless_verification{});
    CHECK(distance(plain, law) <= 1e-12);
  }
}

TEST_CASE("the drafter's chain may be any other", "[speculative]") {
  const markov target = decant::testing::random_markov_model(3, 1, 7),
               small = decant::testing::random_markov_model(3, 1, 8);
  for (const auto& [on_target, on_draft] :
       {std::pair{"penalties", "top_k"}, {"top_k", "plain"}, {"plain", "mirostat"}, {"xtc", "temperature"}}) {
    markov drafting = small;
    function_model model = tree_model(target);
    const auto plain = decant::testing::sequence_law(model, prompt, chain_of(on_target), 3);
    decant::draft_model drafter(drafting, chain_of(on_draft));
    const auto law = speculated_law(model, prompt, drafter, chain_of(on_target), 3, {.length = draft_length::fixed(2)},
                                    decant::token_verification{});
    CHECK(distance(plain, law) <= 1e-12);
  }
}

/// A tree of the given shape and mode under a rule, against plain decoding.
template <class Rule>
double error_of(const Rule& rule, proposal mode, const std::vector<std::size_t>& children, const std::string& kind,
                std::uint64_t seed) {
  const markov table = decant::testing::random_markov_model(3, 1, seed),
               drafting = decant::testing::random_markov_model(3, 1, seed + 100, 1, 0.2);
  auto model = tree_model(table);
  const auto plain = decant::testing::sequence_law(model, prompt, chain_of(kind), children.size() + 1);
  tree_drafter drafter(drafting, chain_of("plain"), children, mode);
  const auto law = speculated_law(model, prompt, drafter, chain_of(kind), children.size() + 1,
                                  {.length = draft_length::fixed(children.size()), .max_nodes = 20}, rule);
  return distance(plain, law);
}

TEST_CASE("speculation with trees has the law of plain decoding, in every mode", "[speculative]") {
  for (const auto mode : {proposal::with_replacement, proposal::without_replacement, proposal::deterministic}) {
    CHECK(error_of(decant::lossless_verification{}, mode, {2, 1}, "penalties", 11) <= 1e-12);
    CHECK(error_of(decant::lossless_verification{}, mode, {2, 1}, "mirostat", 12) <= 1e-12);
    CHECK(error_of(decant::recursive_rejection{}, mode, {2, 1}, "top_p", 13) <= 1e-12);
    CHECK(error_of(decant::recursive_rejection{}, mode, {2, 1}, "xtc", 14) <= 1e-12);
  }
  CHECK(error_of(decant::k_seq_verification{}, proposal::with_replacement, {2, 1}, "lambda", 15) <= 1e-12);
  CHECK(error_of(decant::transport_verification{3}, proposal::with_replacement, {2}, "temperature", 16) <= 1e-12);
}

TEST_CASE("draft lengths that follow what was accepted leave the law as it is", "[speculative]") {
  function_model model = tree_model(decant::testing::random_markov_model(3, 1, 21));
  markov drafting = decant::testing::random_markov_model(3, 1, 22);
  const auto plain = decant::testing::sequence_law(model, prompt, chain_of("plain"), 3);
  decant::draft_model drafter(drafting, chain_of("plain"));
  const auto error = [&](const decant::speculation_options& how) {
    return distance(plain,
                    speculated_law(model, prompt, drafter, chain_of("plain"), 3, how, decant::lossless_verification{}));
  };
  CHECK(error({.length = draft_length::heuristic(1)}) <= 1e-12);
  CHECK(error({.length = draft_length::optimal(0.2, 3)}) <= 1e-12);
  CHECK(error({.length = draft_length::fixed(2), .min_confidence = 0.6}) <= 1e-12);
  CHECK(error({.length = draft_length::fixed(1), .cost = 0.9, .patience = 1}) <= 1e-12);
  CHECK(error({.length = draft_length::fixed(0)}) <= 1e-12);
}

TEST_CASE("lossy rules give another law", "[speculative]") {
  function_model model = tree_model(decant::testing::random_markov_model(3, 1, 31));
  markov drafting = decant::testing::random_markov_model(3, 1, 32);
  const auto plain = decant::testing::sequence_law(model, prompt, chain_of("plain"), 2);
  decant::draft_model drafter(drafting, chain_of("plain"));
  CHECK(distance(plain, speculated_law(model, prompt, drafter, chain_of("plain"), 2, {.length = draft_length::fixed(1)},
                                       decant::lenient_verification(0.4))) > 0.01);
}

}  // namespace speculate_tests
