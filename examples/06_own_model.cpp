// SPDX-License-Identifier: MIT
// A model of your own: anything with evaluate, size, truncate and vocabulary_size. Here, letter pairs counted in a
// text.

#include <array>
#include <cmath>
#include <cstdio>
#include <span>
#include <string_view>
#include <vector>

#include <decant/chain.hpp>
#include <decant/generate.hpp>
#include <decant/processors.hpp>
#include <decant/samplers.hpp>

using namespace decant;

namespace {

constexpr std::string_view letters = " abcdefghijklmnopqrstuvwxyz";

class letter_pairs {
 public:
  explicit letter_pairs(std::string_view text) {
    for (auto& row : rows_) row.fill(std::log(0.01F));
    for (std::size_t i = 1; i < text.size(); ++i) {
      float& z = rows_[letters.find(text[i - 1])][letters.find(text[i])];
      z = std::log(std::exp(z) + 1);
    }
  }

  std::span<const float> evaluate(std::span<const token_id> tokens) {
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    return rows_[static_cast<std::size_t>(tokens_.back())];
  }
  std::size_t size() const { return tokens_.size(); }
  void truncate(std::size_t count) { tokens_.resize(count); }
  static std::size_t vocabulary_size() { return letters.size(); }

 private:
  std::array<std::array<float, letters.size()>, letters.size()> rows_{};
  std::vector<token_id> tokens_;
};
static_assert(Model<letter_pairs>);

}  // namespace

int main() {
  letter_pairs model("the rain in the plain sang a strain in the lane and the train in the main ran again");
  const std::vector<token_id> prompt{0};
  for (std::uint64_t sample = 0; sample < 3; ++sample) {
    const generation run =
        generate(model, prompt, top_k(3) | temperature(0.9) | multinomial{},
                 {.max_new_tokens = 30,
                  .bytes = [](token_id id) { return letters.substr(static_cast<std::size_t>(id), 1); },
                  .seed = 5,
                  .sequence = sample});
    std::printf("%s\n", run.text.c_str());
  }
  return 0;
}
