// SPDX-License-Identifier: MIT
// A processor is any function of (candidates&, const step_context&): a lambda for once, a class for a library.

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <decant/chain.hpp>
#include <decant/processors.hpp>
#include <decant/samplers.hpp>

using namespace decant;

namespace {

/// Keeps tokens of at least `threshold` probability.
struct floor_probability {
  double threshold;

  void operator()(candidates& row, const step_context&) const { row.keep_above(row.log_sum() + std::log(threshold)); }
  std::string describe() const { return "floor_probability(" + std::to_string(threshold).substr(0, 3) + ")"; }
};

}  // namespace

int main() {
  const std::vector<float> logits{1.5F, 1.4F, 1.3F, 0, -1};
  const std::vector<token_id> tokens{0, 1};

  // Never two ids of the same parity in a row: the context tells what has been.
  const auto alternate = [](candidates& row, const step_context& context) {
    const token_id parity = context.tokens.back() % 2;
    for (token_id id = 0; id < static_cast<token_id>(row.vocabulary_size()); ++id) {
      if (id % 2 == parity) row.ban(id);
    }
  };

  auto decoder = chain(named("alternate parity", alternate), floor_probability{0.1}) | multinomial{};
  std::printf("%s\n", decoder.describe().c_str());
  const step_context context = context_after(tokens, 1, draw_stream(3));
  for (const token_id id : {0, 1, 4})
    std::printf("token %d: %s\n", id, decoder.explain(logits, context, id).reason.c_str());
  std::printf("drawn: %d\n", decoder.step(logits, context));
  return 0;
}
