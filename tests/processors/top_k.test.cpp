// SPDX-License-Identifier: MIT
#include <decant/processors/top_k.hpp>

#include "processors/policies.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>

#include <decant/chain.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/samplers/greedy.hpp>

namespace top_k_tests {

using namespace policies;
using decant::chain;
using decant::ties;
using decant::top_k;

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max(),
                       least = std::numeric_limits<std::int64_t>::min();

TEST_CASE("top_k keeps exactly k, ties by lower id", "[processors]") {
  const row logits{1, 4, 2, 4, 2, 2, 0};
  CHECK(survivors(top_k(1), logits) == tokens{1});
  CHECK(survivors(top_k(2), logits) == tokens{1, 3});
  CHECK(survivors(top_k(3), logits) == tokens{1, 2, 3});
  CHECK(survivors(top_k(4), logits) == tokens{1, 2, 3, 4});
  CHECK(survivors(top_k(6), logits) == tokens{0, 1, 2, 3, 4, 5});
  CHECK(survivors(top_k(3), row(9, 0.5F)) == tokens{0, 1, 2});
}

TEST_CASE("top_k keeps the golden row's largest", "[processors]") {
  for (std::int64_t k = 1; k <= 6; ++k) {
    const law expected =
        reference::exact_law(reference::top_k(reference::widened(golden), static_cast<std::size_t>(k)));
    CHECK(difference(law_after(top_k(k), golden), expected) < of_float);
  }
}

TEST_CASE("top_k's law is the law of the k largest, renormalised, by enumeration", "[processors]") {
  for (const std::size_t size : {std::size_t{5}, std::size_t{64}, std::size_t{300}}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      row logits = random_row(size, seed);
      logits[size / 2] = gone;
      for (const std::size_t k : {std::size_t{1}, std::size_t{2}, size / 3 + 1, size - 1, size}) {
        const law expected = reference::exact_law(reference::top_k(reference::widened(logits), k));
        CHECK(difference(law_after(top_k(static_cast<std::int64_t>(k)), logits), expected) < of_float);
        CHECK(difference(enumerated_law(top_k(static_cast<std::int64_t>(k)), logits), expected) < of_float);
      }
    }
  }
}

TEST_CASE("top_k survivors equal the reference on large rows", "[processors]") {
  row logits = random_row(20'000, 5);
  for (float& z : logits) z = std::round(z * 8) / 8;  // ties everywhere
  for (const std::size_t k : {std::size_t{1}, std::size_t{40}, std::size_t{4095}, std::size_t{4096}, std::size_t{4097},
                              std::size_t{12'345}, std::size_t{19'999}}) {
    tokens expected;
    for (const std::size_t id : reference::descending(reference::top_k(reference::widened(logits), k))) {
      expected.push_back(static_cast<token_id>(id));
    }
    std::ranges::sort(expected);
    CHECK(survivors(top_k(static_cast<std::int64_t>(k)), logits) == expected);
  }
}

TEST_CASE("k <= 0 is off (llama.cpp#13171, llama-cpp-python#220, nanochat#467)", "[processors]") {
  for (const std::int64_t k : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{-40}, least}) {
    CHECK(top_k(k).off());
    check_identity(top_k(k));
  }
  CHECK(!top_k(1).off());
}

TEST_CASE("k at or above the vocabulary changes nothing (ORT-genai PR2224, vllm-metal#646, spyre#542)",
          "[processors]") {
  const row logits{2, 4, 1, 3, 0};
  for (const std::int64_t k : {std::int64_t{5}, std::int64_t{6}, std::int64_t{50}, std::int64_t{9'999'999},
                               std::int64_t{2'147'483'647}, most}) {
    CHECK(logits_after(top_k(k), logits) == logits);
    CHECK(drawn_after(top_k(k), logits) == drawn_after(top_k(0), logits));
  }
  check_identity(top_k(100'000));
}

TEST_CASE("rows with different k do not touch each other (vllm-metal#646)", "[processors]") {
  candidates c;
  const row logits{2, 4, 1, 3, 0};
  const auto left = [&](std::int64_t k) {
    c.bind(std::span<const float>(logits));
    const top_k policy(k);
    policy(c, {});
    return c.size();
  };
  CHECK(left(-1) == 5);
  CHECK(left(1) == 1);
  CHECK(left(0) == 5);
  CHECK(left(2) == 2);
  CHECK(left(5) == 5);
  CHECK(left(64) == 5);
  CHECK(left(2'147'483'647) == 5);
}

TEST_CASE("a one-hot row gives its token (FlashInfer#384)", "[processors]") {
  const row logits = logs({0, 1, 0, 0});
  for (const std::int64_t k : {std::int64_t{1}, std::int64_t{1} << 30}) {
    CHECK(drawn_after(top_k(k), logits, 200) == tokens(200, 1));
  }
}

TEST_CASE("top_k counts tokens that are left", "[processors]") {
  const row logits{gone, 3, gone, 1, 2, gone};
  CHECK(survivors(top_k(2), logits) == tokens{1, 4});
  CHECK(survivors(top_k(3), logits) == tokens{1, 3, 4});
  CHECK(survivors(top_k(5), logits) == tokens{1, 3, 4});
}

TEST_CASE("top_k 1 is greedy", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    row logits = random_row(50, seed);
    for (float& z : logits) z = std::round(z);
    candidates c;
    c.bind(std::span<const float>(logits));
    const token_id best = decant::greedy{}(c, {});
    CHECK(drawn_after(top_k(1), logits, 10) == tokens(10, best));
  }
}

TEST_CASE("top_k may keep the tokens level with the last of the k", "[processors]") {
  const row level{1, 1, 1, 2, 2, 0, 0, -1};
  const auto kept = [](std::int64_t k, const row& logits) { return survivors(top_k(k, 1, ties::keep), logits); };
  CHECK(kept(1, level) == tokens{3, 4});
  CHECK(kept(2, level) == tokens{3, 4});
  CHECK(kept(3, level) == tokens{0, 1, 2, 3, 4});
  CHECK(kept(5, level) == tokens{0, 1, 2, 3, 4});
  CHECK(kept(6, level) == tokens{0, 1, 2, 3, 4, 5, 6});
  CHECK(kept(8, level).size() == 8);
  CHECK(kept(most, level).size() == 8);
  CHECK(kept(1, row(8, 0.25F)).size() == 8);
  CHECK(kept(6, {2, gone, 1, gone, 3, gone, 0, 0.5F}) == tokens{0, 2, 4, 6, 7});  // a gone token is level with none
  CHECK(kept(0, level).size() == 8);
}

TEST_CASE("top_k keeps by ties what the reference keeps, after a temperature too", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    row logits = random_row(500, seed);
    for (float& z : logits) z = std::round(z * 4) / 4;
    logits[7] = gone;
    row sorted = logits;
    std::ranges::sort(sorted, std::greater<>());
    for (const std::size_t k : {std::size_t{1}, std::size_t{2}, std::size_t{17}, std::size_t{100}, std::size_t{400}}) {
      tokens expected;
      for (std::size_t i = 0; i < logits.size(); ++i) {
        if (logits[i] >= sorted[k - 1] && !decant::is_gone(logits[i])) expected.push_back(static_cast<token_id>(i));
      }
      const top_k policy(static_cast<std::int64_t>(k), 1, ties::keep);
      CHECK(survivors(policy, logits) == expected);
      for (const double t : {0.01, 0.7, 300.0}) {
        CHECK(survivors(chain(decant::temperature(t), policy), logits) == expected);
      }
    }
  }
}

TEST_CASE("top_k keeps at least min_keep tokens", "[processors]") {
  const row logits{1, 4, 2, 4, 2, 2, 0};
  CHECK(survivors(top_k(1, 0), logits) == tokens{1});
  CHECK(survivors(top_k(1, 3), logits) == tokens{1, 2, 3});
  CHECK(survivors(top_k(1, 3, ties::keep), logits) == tokens{1, 2, 3, 4, 5});
  CHECK(survivors(top_k(3, 2), logits) == tokens{1, 2, 3});
  CHECK(survivors(top_k(1, 100), logits).size() == 7);
  CHECK(top_k(0, 2, ties::keep).off());
  CHECK(top_k(1, 4).describe() == "top_k(1, 4)");
}

TEST_CASE("top_k is idempotent, and the smaller k of two wins", "[processors]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const row logits = random_row(50, seed);
    CHECK(survivors(chain(top_k(9), top_k(9)), logits) == survivors(top_k(9), logits));
    CHECK(survivors(chain(top_k(20), top_k(9)), logits) == survivors(top_k(9), logits));
    CHECK(survivors(chain(top_k(9), top_k(20)), logits) == survivors(top_k(9), logits));
  }
}

TEST_CASE("top_k leaves the logits of what it keeps", "[processors]") {
  CHECK(logits_after(top_k(2), {1, 4, 2, 4.5F}) == row{gone, 4, gone, 4.5F});
}

TEST_CASE("every k can be made", "[processors]") {
  for (const std::int64_t k : {least, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, most}) {
    CHECK(top_k::make(k).has_value());
  }
  CHECK(top_k(40).describe() == "top_k(40)");
  CHECK(top_k(100'000).describe() == "top_k(100000)");
}

TEST_CASE("top_k on all sizes and on bad rows", "[processors]") {
  for (const std::int64_t k : {std::int64_t{0}, std::int64_t{1}, std::int64_t{40}, std::int64_t{5000}}) {
    for (const ties how : {ties::lower_id, ties::keep}) {
      check_sizes(top_k(k, 1, how));
      check_bad_rows(top_k(k, 1, how));
    }
  }
}

TEST_CASE("top_k passes check_processor", "[processors]") {
  for (const std::int64_t k :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{40}, std::int64_t{4500}}) {
    for (const ties how : {ties::lower_id, ties::keep}) {
      check_report_of(top_k(k, 1, how), {.shift_invariant = true, .allocations = decant::testing::allocations});
    }
  }
}

}  // namespace top_k_tests
