// SPDX-License-Identifier: MIT
#include "peer/llama_library.hpp"

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "support/catch.hpp"

// That the functions are declared as the library has them: known outcomes, worked out from the samplers' definitions.

namespace llama_library_test {

using doubles = std::vector<double>;

/// The probabilities, by id, that samplers leave of a row of probabilities.
doubles after(std::vector<peer::sampler> samplers, const doubles& probabilities,
              const std::vector<std::int32_t>& accepted = {}) {
  std::vector<peer::token_data> data;
  for (const double p : probabilities) {
    data.push_back({static_cast<std::int32_t>(data.size()), static_cast<float>(std::log(p)), 0});
  }
  peer::token_data_array row{data.data(), data.size(), -1, false};
  samplers.emplace_back(peer::llama_library::get()->init_dist(0));
  for (peer::sampler& each : samplers) {
    for (const std::int32_t token : accepted) each.accept(token);
    each.apply(row);
  }
  CHECK(row.selected >= 0);
  CHECK(row.selected < static_cast<std::int64_t>(row.size));
  doubles out(probabilities.size());
  for (std::size_t i = 0; i < row.size; ++i) {
    out[static_cast<std::size_t>(row.data[i].id)] = static_cast<double>(row.data[i].p);
  }
  return out;
}

doubles after(peer::llama_sampler* one, const doubles& probabilities, const std::vector<std::int32_t>& accepted = {}) {
  std::vector<peer::sampler> samplers;
  samplers.emplace_back(one);
  return after(std::move(samplers), probabilities, accepted);
}

void check(const doubles& actual, const doubles& expected) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    INFO("token " << i);
    CHECK(actual[i] == Approx(expected[i]).margin(1e-5));
  }
}

const doubles ascending{0.1, 0.2, 0.3, 0.4};

TEST_CASE("the truncations of libllama are declared as they are") {
  SKIP_WITHOUT_LLAMA();
  const auto& llama = *peer::llama_library::get();
  check(after(llama.init_top_k(1), ascending), {0, 0, 0, 1});
  check(after(llama.init_top_k(3), ascending), {0, 0.2 / 0.9, 0.3 / 0.9, 0.4 / 0.9});
  check(after(llama.init_top_k(0), ascending), ascending);
  check(after(llama.init_top_p(0, 0), ascending), {0, 0, 0, 1});
  check(after(llama.init_top_p(0, 2), ascending), {0, 0, 0.3 / 0.7, 0.4 / 0.7});
  check(after(llama.init_top_p(0.8F, 0), ascending), {0, 0.2 / 0.9, 0.3 / 0.9, 0.4 / 0.9});
  check(after(llama.init_min_p(0.26F, 0), ascending), {0, 0.2 / 0.9, 0.3 / 0.9, 0.4 / 0.9});
  check(after(llama.init_min_p(0.76F, 0), ascending), {0, 0, 0, 1});
  check(after(llama.init_min_p(0.76F, 2), ascending), {0, 0, 0.3 / 0.7, 0.4 / 0.7});
  check(after(llama.init_min_p(1.05F, 0), ascending), {0, 0, 0, 1});
  check(after(llama.init_typical(0.5F, 0), {0.97, 0.01, 0.01, 0.01}), {1, 0, 0, 0});
  check(after(llama.init_typical(0.5F, 0), {0.4, 0.2, 0.2, 0.2}), {0, 1 / 3.0, 1 / 3.0, 1 / 3.0});
  check(after(llama.init_top_n_sigma(1), ascending), {0, 0, 0.3 / 0.7, 0.4 / 0.7});
  check(after(llama.init_top_n_sigma(0), ascending), ascending);
  check(after(llama.init_xtc(1, 0.09F, 0, 0), ascending), {1, 0, 0, 0});
  check(after(llama.init_xtc(1, 0.19F, 0, 0), ascending), {1 / 3.0, 2 / 3.0, 0, 0});
  check(after(llama.init_xtc(1, 0.39F, 0, 0), ascending), ascending);
  check(after(llama.init_xtc(0, 0.09F, 0, 0), ascending), ascending);
  check(after(llama.init_xtc(1, 0.09F, 2, 0), ascending), ascending);
}

TEST_CASE("the temperatures and biases of libllama are declared as they are") {
  SKIP_WITHOUT_LLAMA();
  const auto& llama = *peer::llama_library::get();
  check(after(llama.init_temp(1), ascending), ascending);
  check(after(llama.init_temp(0), ascending), {0, 0, 0, 1});
  check(after(llama.init_temp(0.5F), ascending), {1 / 30.0, 4 / 30.0, 9 / 30.0, 16 / 30.0});
  check(after(llama.init_temp_ext(0.5F, 0, 1), ascending), {1 / 30.0, 4 / 30.0, 9 / 30.0, 16 / 30.0});
  // A flat row has the entropy ln n, so the highest temperature, and stays flat.
  check(after(llama.init_temp_ext(1, 0.5F, 2), {0.25, 0.25, 0.25, 0.25}), {0.25, 0.25, 0.25, 0.25});
  const std::vector<peer::bias> biases{{0, static_cast<float>(std::log(4.0))}, {3, -INFINITY}};
  check(after(llama.init_logit_bias(4, 2, biases.data()), ascending), {0.4 / 0.9, 0.2 / 0.9, 0.3 / 0.9, 0});
}

TEST_CASE("the penalties of libllama are declared as they are") {
  SKIP_WITHOUT_LLAMA();
  const auto& llama = *peer::llama_library::get();
  const doubles flat(5, 0.2);
  check(after(llama.init_penalties(5, 64, 50, 0, 0), flat, {0}), {0, 0.25, 0.25, 0.25, 0.25});
  check(after(llama.init_penalties(5, 64, 50, 0, 0), flat, {0, 1, 2}), {0, 0, 0, 0.5, 0.5});
  check(after(llama.init_penalties(5, 64, 1, 5, 5), flat, {0}), {0.000011, 0.249997, 0.249997, 0.249997, 0.249997});
  check(after(llama.init_penalties(5, 64, 1, 5, 5), flat, {0, 1, 2, 0, 0}),
        {0, 0.000023, 0.000023, 0.499977, 0.499977});
  check(after(llama.init_penalties(5, 1, 50, 0, 0), flat, {0, 1}), {0.25, 0, 0.25, 0.25, 0.25});
  const doubles four(4, 0.25);
  check(after(llama.init_dry(nullptr, 1, 1.1F, 2, 4, nullptr, 0), four, {0, 1}), four);
  check(after(llama.init_dry(nullptr, 1, 1.1F, 2, 5, nullptr, 0), four, {0, 1, 2, 0, 1}),
        {0.296923, 0.296923, 0.109232, 0.296923});
}

TEST_CASE("the samplers of libllama that draw are declared as they are") {
  SKIP_WITHOUT_LLAMA();
  const auto& llama = *peer::llama_library::get();
  const doubles only_top{0, 0, 0, 1};
  // mu = 2 tau = 1 bit lets only surprises up to 1 through, or the first; 4 bits let all through.
  check(after(llama.init_mirostat_v2(0, 0.5F, 0.1F), ascending), only_top);
  check(after(llama.init_mirostat_v2(0, 2, 0.1F), ascending), ascending);
  check(after(llama.init_mirostat(4, 0, 0, 0.1F, 100), ascending), only_top);
  check(after(llama.init_mirostat(4, 0, 4, 0.1F, 100), ascending), ascending);
  // Without history the target is the probability that is drawn towards.
  const auto bent = [](double p, double target) {
    const double d = std::abs(p - target) / 0.3;
    return std::exp(5 - 10 * d * d / (1 + d));
  };
  doubles expected;
  double total = 0;
  for (const double p : ascending) total += bent(p, 0.3);
  for (const double p : ascending) expected.push_back(bent(p, 0.3) / total);
  check(after(llama.init_adaptive_p(0.3F, 0.9F, 0), ascending), expected);
  std::vector<peer::token_data> data{{0, 1, 0}, {1, 3, 0}, {2, 3, 0}};
  peer::token_data_array row{data.data(), data.size(), -1, false};
  peer::sampler(llama.init_greedy()).apply(row);
  CHECK(row.selected == 1);
}

}  // namespace llama_library_test
