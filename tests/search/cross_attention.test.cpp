// SPDX-License-Identifier: MIT
#include <decant/search/cross_attention.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <decant/search/beam_search.hpp>
#include <decant/testing/encoder_decoder_toy.hpp>

namespace cross_attention_test {

using namespace decant;
using decant::testing::encoder_decoder_toy;
using ids = std::vector<token_id>;

struct translation {
  ids tokens;
  double log_prob = 0, coverage = 0;
};

/// Every output of up to `length` tokens, with its log-probability and GNMT's coverage term for beta 1, from the
/// functions of the model alone.
std::vector<translation> all_translations(const encoder_decoder_toy& model, const ids& source, token_id end,
                                          std::size_t length) {
  const auto encoded = model.encode_source(source);
  std::vector<translation> found;
  const auto visit = [&](const auto& self, const ids& output, double log_prob, std::vector<double> attended) -> void {
    if (!output.empty() && (output.back() == end || output.size() == length)) {
      double coverage = 0;
      for (const double a : attended) coverage += std::log(std::min(a, 1.0));
      found.push_back({output, log_prob, coverage});
      return;
    }
    ids text{0};
    text.insert(text.end(), output.begin(), output.end());
    const auto row = model.row_after(encoded, text);
    const auto attention = model.attention_after(source.size(), text);
    double mass = 0;
    for (const float z : row) mass += std::exp(static_cast<double>(z));
    for (std::size_t i = 0; i < attended.size(); ++i) attended[i] += static_cast<double>(attention[i]);
    for (std::size_t v = 0; v < row.size(); ++v) {
      ids longer = output;
      longer.push_back(static_cast<token_id>(v));
      self(self, longer, log_prob + static_cast<double>(row[v]) - std::log(mass), attended);
    }
  };
  visit(visit, {}, 0, std::vector<double>(source.size()));
  return found;
}

TEST_CASE("a source is encoded once, and what it covers decides with its probability", "[search]") {
  constexpr token_id end = 3;
  std::size_t differ = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    encoder_decoder_toy model(4, seed);
    const ids source{5, 1, 7, 2}, begin{0};
    model.encode(source);
    const auto all = all_translations(model, source, end, 4);
    ids without;
    for (const double beta : {0.0, 0.2, 1.0, 4.0}) {
      const auto score = [&](const translation& t) { return t.log_prob + beta * t.coverage; };
      const auto best = std::ranges::max_element(all, {}, score);
      beam_options options{.width = 256,
                           .max_new_tokens = 4,
                           .end_tokens = {end},
                           .coverage = cross_attention_coverage(model, beta),
                           .early_stopping = early_stopping::first_n,
                           .patience = std::numeric_limits<double>::infinity()};
      const auto found = beam_search(model, begin, options);
      REQUIRE(found.best() != nullptr);
      CHECK(found.best()->tokens == best->tokens);
      CHECK(found.best()->score == Approx(score(*best)).margin(1e-5));
      CHECK(found.best()->coverage == Approx(beta * best->coverage).margin(1e-5));
      CHECK(found.best()->log_prob == Approx(best->log_prob).margin(1e-5));
      if (beta == 0) without = found.best()->tokens;
      if (found.best()->tokens != without) ++differ;
    }
    CHECK(model.encodings() == 1);
  }
  CHECK(differ > 0);  // coverage is not idle
}

TEST_CASE("a penalty of 0 is off, a negative one is refused", "[search]") {
  encoder_decoder_toy model(4, 1);
  model.encode(ids{1, 2});
  CHECK(cross_attention_coverage(model, 0).off());
  CHECK(!cross_attention_coverage(model, 0.1).off());
  CHECK_THROWS_AS(beam_search(model, ids{0}, {.coverage = cross_attention_coverage(model, -1)}), parameter_error);
}

TEST_CASE("requests of one batch see the attention of their own hypotheses", "[search]") {
  constexpr token_id end = 3;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    encoder_decoder_toy model(4, seed);
    model.encode(ids{5, 1, 7, 2});
    const ids prompts[] = {{0}, {1}, {2, 0}};
    std::vector<beam_request> requests;
    for (const ids& prompt : prompts) {
      requests.push_back({prompt,
                          {.width = 4,
                           .n_best = 4,
                           .max_new_tokens = 4,
                           .end_tokens = {end},
                           .coverage = cross_attention_coverage(model, 1)}});
    }
    const std::vector<beam_result> together = beam_search(model, requests);
    REQUIRE(together.size() == requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const beam_result alone = beam_search(model, requests[i].prompt, requests[i].options);
      REQUIRE(together[i].hypotheses.size() == alone.hypotheses.size());
      for (std::size_t h = 0; h < alone.hypotheses.size(); ++h) {
        CHECK(together[i].hypotheses[h].tokens == alone.hypotheses[h].tokens);
        CHECK(together[i].hypotheses[h].coverage == alone.hypotheses[h].coverage);
        CHECK(together[i].hypotheses[h].score == alone.hypotheses[h].score);
      }
    }
  }
}

}  // namespace cross_attention_test
