// SPDX-License-Identifier: MIT
#include <decant/speculative/speculative_stream.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <decant/chain.hpp>
#include <decant/generate/stateless.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/reference/tokenizer.hpp>
#include <decant/reference/transformer.hpp>
#include <decant/samplers/multinomial.hpp>
#include <decant/speculative/draft_model.hpp>
#include <decant/speculative/following_model.hpp>
#include <decant/speculative/lenient_verification.hpp>
#include <decant/speculative/lossless_verification.hpp>
#include <decant/testing/chi_square.hpp>

// The law of the first two tokens, on the trained pair that comes with decant. Every row is computed once.

namespace shipped_pair_tests {

using decant::token_id;
using ids = std::vector<token_id>;

const std::filesystem::path models = std::filesystem::path(DECANT_SOURCE_DIR) / "examples" / "models";

/// A model's rows, by text. A value that refers to what it has computed.
class remembered_rows {
 public:
  explicit remembered_rows(decant::transformer& model) : model_(model) {}

  std::span<const float> operator()(std::span<const token_id> text) {
    std::vector<float>& row = rows_[ids(text.begin(), text.end())];
    if (row.empty()) {
      const auto made = model_.row_after(text);
      row.assign(made.begin(), made.end());
    }
    return row;
  }

 private:
  decant::detail::following_model<decant::transformer> model_;
  std::map<ids, std::vector<float>> rows_;
};

struct rows_of {
  remembered_rows* rows;
  std::span<const float> operator()(std::span<const token_id> text) const { return (*rows)(text); }
};
using remembered_model = decant::stateless<rows_of>;

struct pair_of_models {
  decant::transformer target = *decant::transformer::load(models / "target.bin");
  decant::transformer draft = *decant::transformer::load(models / "draft.bin");
  remembered_rows target_rows{target}, draft_rows{draft};
  decant::tokenizer words =
      *decant::tokenizer::load(models / "tokenizer.bin", 2048, decant::tokenizer_options{.dummy_space = false});
};

/// Speculates `rounds` times after a text, two drafted tokens a round, and gives the p-value of the first two tokens
/// against the law of plain decoding: pairs that are expected 20 times or more, and all others together.
template <class D, class Rule>
double p_value(pair_of_models& pair, const std::string& text, D decoder, const Rule& rule, std::size_t rounds) {
  const ids prompt = pair.words.encode(text, {.bos = true});
  remembered_model target(rows_of{&pair.target_rows}, 2048), small(rows_of{&pair.draft_rows}, 2048);
  decant::draft_model drafter(small, decoder);
  std::map<std::pair<token_id, token_id>, std::size_t> seen;
  for (std::uint64_t seed = 0; seed < rounds; ++seed) {
    decant::speculative_stream run(target, prompt, drafter, decoder, {.max_new_tokens = 3, .seed = seed},
                                   {.length = decant::draft_length::fixed(2)}, rule);
    const token_id first = run.next()->token;
    ++seen[{first, run.next()->token}];
  }

  std::vector<std::size_t> counts{rounds};
  std::vector<double> expected{1};
  ids history = prompt;
  const auto law_here = [&] {
    const auto context = decant::context_after(history, prompt.size(), decant::draw_stream(0));
    return decoder.law_of(pair.target_rows(history), context);
  };
  const decant::law p = law_here();
  for (const token_id first : p.ids) {
    history.push_back(first);
    const decant::law after = law_here();
    history.pop_back();
    for (const token_id second : after.ids) {
      const double chance = p.probability(first) * after.probability(second);
      if (chance * static_cast<double>(rounds) < 20) continue;
      counts.push_back(seen[{first, second}]);
      expected.push_back(chance);
      counts[0] -= counts.back();
      expected[0] -= chance;
    }
  }
  CHECK(counts.size() > 20);
  return decant::testing::chi_square(counts, expected).p_value;
}

const std::vector<std::string> texts{"anchor:", "violin: a person who", "to sing: move"};

auto chain() { return decant::top_k(40) | decant::temperature(0.9) | decant::multinomial{}; }

TEST_CASE("the shipped pair has the target's law over a million rounds", "[speculative][long]") {
  pair_of_models pair;
  for (const std::string& text : texts) {
    CAPTURE(text);
    CHECK(p_value(pair, text, chain(), decant::lossless_verification{}, 333'334) > 1e-4);
  }
  // A rule that is a little off would show.
  CHECK(p_value(pair, texts[0], chain(), decant::lenient_verification(0.9), 333'334) < 1e-9);
}

TEST_CASE("the shipped pair has the target's law, all tokens of it, over 300,000 rounds", "[speculative][long]") {
  const auto whole = decant::temperature(0.8) | decant::multinomial{};
  pair_of_models pair;
  for (const std::string& text : texts) {
    CAPTURE(text);
    CHECK(p_value(pair, text, whole, decant::lossless_verification{}, 100'000) > 1e-4);
  }
}

TEST_CASE("the shipped pair has the target's law over 4,000 rounds", "[speculative]") {
  const auto few = decant::top_k(6) | decant::temperature(0.9) | decant::multinomial{};
  pair_of_models pair;
  CHECK(p_value(pair, texts[1], few, decant::lossless_verification{}, 4000) > 1e-4);
}

}  // namespace shipped_pair_tests
