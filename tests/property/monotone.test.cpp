// SPDX-License-Identifier: MIT
#include <decant/processors.hpp>

#include "processors/policies.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <decant/chain.hpp>
#include <decant/samplers.hpp>

// A policy's parameter has a direction: a looser truncation keeps all that a stricter one keeps, a stronger penalty
// never leaves a logit higher.

namespace monotone_test {

using namespace policies;

/// A policy for each value of its parameter, the values from the strictest to the loosest.
struct family {
  std::string name;
  std::vector<double> values;
  std::function<any_processor(double)> make;
};

const std::vector<double> shares{0, 1e-9, 0.05, 0.2, 0.4, 0.5, 0.6, 0.8, 0.95, 0.999999, 1};
const std::vector<double> falling_shares{1, 0.9, 0.5, 0.3, 0.2, 0.1, 0.05, 0.01, 1e-4, 1e-9, 0};

std::vector<family> truncations() {
  const auto keep = decant::ties::keep;
  return {
      {"top_k", {1, 2, 3, 5, 8, 40, 199, 5000, 0}, [](double k) { return decant::top_k(static_cast<int>(k)); }},
      {"top_k with ties",
       {1, 2, 3, 5, 8, 40, 199, 5000, 0},
       [=](double k) { return decant::top_k(static_cast<int>(k), 1, keep); }},
      {"top_p", shares, [](double x) { return decant::top_p(x); }},
      {"min_p", falling_shares, [](double x) { return decant::min_p(x); }},
      {"typical", shares, [](double x) { return decant::typical(x); }},
      {"typical with ties", shares, [=](double x) { return decant::typical(x, 1, keep); }},
      {"epsilon_cutoff", falling_shares, [](double x) { return decant::epsilon_cutoff(x); }},
      {"eta_cutoff", falling_shares, [](double x) { return decant::eta_cutoff(x); }},
      {"top_a", falling_shares, [](double x) { return decant::top_a(x); }},
      {"tail_free", shares, [](double x) { return decant::tail_free(x); }},
      {"top_n_sigma", {0, 0.1, 0.5, 1, 1.5, 2, 4, 100, infinity}, [](double x) { return decant::top_n_sigma(x); }},
      {"top_h", shares, [](double x) { return decant::top_h(x); }},
      {"confidence_increment",
       {2, 1, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-6, 0},
       [](double x) { return decant::confidence_increment(x); }},
      {"confidence_increment, each",
       {2, 1, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-6, 0},
       [](double x) { return decant::confidence_increment(x, 1, decant::increment_rule::each); }},
      {"xtc", {0, 1e-6, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.6}, [](double x) { return decant::xtc(1, x); }},
      {"allowed_tokens",
       {0, 1, 3, 9},
       [](double last) {
         tokens ids;
         for (token_id id = 0; id <= static_cast<token_id>(last); ++id) ids.push_back(id % 2);
         return decant::allowed_tokens(ids);
       }},
      {"min_keep of top_p",
       {0, 1, 2, 5, 100},
       [](double x) { return decant::top_p(0.3, static_cast<std::size_t>(x)); }},
      {"min_keep of min_p",
       {0, 1, 2, 5, 100},
       [](double x) { return decant::min_p(0.7, static_cast<std::size_t>(x)); }},
      {"min_keep of typical",
       {0, 1, 2, 5, 100},
       [](double x) { return decant::typical(0.2, static_cast<std::size_t>(x)); }},
      {"min_keep of top_n_sigma",
       {0, 1, 2, 5, 100},
       [](double x) { return decant::top_n_sigma(0.1, static_cast<std::size_t>(x)); }},
  };
}

std::vector<row> rows() {
  std::vector<row> all{golden, row(20, 1.5F), {3, 3, 3, 1, 1, 0}, {4, gone, 2, gone, 2, 2, -7}, {0, -2000}};
  for (const std::size_t size : {std::size_t{3}, std::size_t{40}, std::size_t{200}, std::size_t{5000}}) {
    all.push_back(random_row(size, size));
  }
  return all;
}

TEST_CASE("a looser truncation keeps all that a stricter one keeps", "[property]") {
  for (const family& each : truncations()) {
    bool differs = false;
    for (const row& logits : rows()) {
      tokens before;
      for (const double value : each.values) {
        CAPTURE(each.name, value, logits.size());
        const tokens now = survivors(each.make(value), logits);
        CHECK(std::ranges::includes(now, before));
        differs = differs || (!before.empty() && now.size() > before.size());
        before = now;
      }
    }
    CAPTURE(each.name);
    CHECK(differs);
  }
}

TEST_CASE("a stronger penalty leaves no logit higher, a stronger bias none lower", "[property]") {
  const past before{{1, 2, 1, 3, 2, 1, 2, 1}, 2};
  const std::vector<double> ratios{0.5, 0.9, 1, 1.1, 1.5, 3, 100}, amounts{-3, -0.5, 0, 0.25, 1, 2, 50};
  const std::vector<family> falling{
      {"repetition_penalty", ratios, [](double x) { return decant::repetition_penalty(x); }},
      {"frequency_penalty", amounts, [](double x) { return decant::frequency_penalty(x); }},
      {"presence_penalty", amounts, [](double x) { return decant::presence_penalty(x); }},
      {"dry multiplier", {0, 0.1, 0.8, 2, 9}, [](double x) { return decant::dry({.multiplier = x}); }},
      {"dry base", {1, 1.2, 1.75, 3}, [](double x) { return decant::dry({.base = x}); }},
      {"no_repeat_ngram", {9, 4, 3, 2, 1}, [](double n) { return decant::no_repeat_ngram(static_cast<int>(n)); }},
      {"min_new_tokens", {0, 3, 6, 7, 90}, [](double n) {
         return decant::min_new_tokens(static_cast<int>(n), {0, 3});
       }}};
  const std::vector<family> rising{
      {"encoder_repetition_penalty", ratios,
       [](double x) { return decant::encoder_repetition_penalty(x, tokens{0, 4}); }},
      {"exponential_decay_length", ratios, [](double x) { return decant::exponential_decay_length(1, x, {0, 3}); }},
      {"logit_bias", {-infinity, -3, 0, 1e-3, 4}, [](double x) { return decant::logit_bias({{1, x}}); }},
      {"sequence_bias", {-infinity, -3, 0, 1e-3, 4}, [](double x) { return decant::sequence_bias({{{1, 5}, x}}); }},
      {"green_list_watermark", {0, 0.5, 2, 9}, [](double x) { return decant::green_list_watermark({.bias = x}); }},
      {"unigram_watermark", {0, 0.5, 2, 9}, [](double x) { return decant::unigram_watermark({.bias = x}); }}};
  const auto check = [&](const std::vector<family>& families, double direction) {
    for (const family& each : families) {
      bool differs = false;
      for (const row& logits : std::vector<row>{golden, row(6, 1), {-1, -2, -0.5F, -1, 0, 3}, random_row(30, 8)}) {
        row last;
        for (const double value : each.values) {
          CAPTURE(each.name, value);
          const row now = logits_after(each.make(value), logits, before);
          for (std::size_t i = 0; i < last.size(); ++i) {
            CHECK(direction * static_cast<double>(now[i]) >= direction * static_cast<double>(last[i]));
            differs = differs || now[i] != last[i];
          }
          last = now;
        }
      }
      CAPTURE(each.name);
      CHECK(differs);
    }
  };
  check(falling, -1);
  check(rising, 1);
}

TEST_CASE("a higher temperature never lowers the entropy, wherever it comes from", "[property]") {
  const std::vector<family> hotter{
      {"temperature", {0, 1e-3, 0.3, 0.9, 1, 1.5, 4, 1e6}, [](double t) { return decant::temperature(t); }},
      {"dynamic_temperature, low", {0.1, 0.5, 1, 2}, [](double t) { return decant::dynamic_temperature(t, 2); }},
      {"dynamic_temperature, high", {0.5, 1, 2, 9}, [](double t) { return decant::dynamic_temperature(0.5, t); }},
      {"edt", {0.1, 0.5, 1, 2}, [](double t) { return decant::edt(t, 0.4); }},
      {"quadratic", {9, 2, 1, 0.3, 0.05}, [](double factor) { return decant::quadratic(factor); }}};
  for (const family& each : hotter) {
    for (const row& logits : {golden, random_row(40, 1), random_row(300, 2)}) {
      double last = -1;
      for (const double value : each.values) {
        CAPTURE(each.name, value);
        const double entropy = ask(each.make(value), logits, {}, [](candidates& c) { return c.entropy(); });
        CHECK(entropy >= last - 1e-9);
        last = entropy;
      }
      CHECK(last > 0.1);
    }
  }
}

TEST_CASE("a steered sampler keeps more where it may be surprised more", "[property]") {
  for (const row& logits : {golden, random_row(40, 1), random_row(300, 2)}) {
    const auto law_size = [&](decant::any_sampler sampler) {
      return decant::decode_with(std::move(sampler)).law_of(logits, context_after({}, 0, draw_stream(1))).size();
    };
    std::size_t last = 0, last_v1 = 0;
    for (const double tau : {0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 20.0}) {
      const std::size_t now = law_size(decant::mirostat(tau)), now_v1 = law_size(decant::mirostat_v1(tau));
      CAPTURE(tau);
      CHECK(now >= last);
      CHECK(now_v1 >= last_v1);
      last = now;
      last_v1 = now_v1;
    }
    CHECK(last == logits.size());
    CHECK(last_v1 == logits.size());
  }
}

}  // namespace monotone_test
