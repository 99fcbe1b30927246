// SPDX-License-Identifier: MIT
#include <decant/decant.hpp>

#include <cstdio>
#include <vector>

int main() {
  std::printf("decant %d.%d.%d\n", DECANT_VERSION_MAJOR, DECANT_VERSION_MINOR, DECANT_VERSION_PATCH);
  auto decoder = decant::temperature{0.7F} | decant::greedy{};
  std::vector<float> logits = {0.0F, 2.0F, 1.0F};
  return decoder.step(logits, decant::context_after({}, 0, decant::draw_stream(1))) == 1 ? 0 : 1;
}
