// SPDX-License-Identifier: MIT
// Why speculation changes nothing but the speed: the acceptance rule, step by step, on a vocabulary of four tokens.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include <decant/decant.hpp>

int main() {
  using namespace decant;
  // What the target would draw from, and what the draft did draw from.
  const law p{{0, 1, 2, 3}, {0.5, 0.3, 0.2, 0.0}, 1, {}};
  const law q{{0, 1, 2, 3}, {0.2, 0.3, 0.1, 0.4}, 1, {}};

  std::printf("token    p    q   accepted with   comes out accepted   left of p\n");
  double accepted = 0;
  for (token_id x = 0; x < 4; ++x) {
    const double a = std::min(1.0, p.probability(x) / q.probability(x));
    const double drawn_and_accepted = q.probability(x) * a;  // = min(p, q)
    std::printf("%5d  %.1f  %.1f   min(1, p/q) = %.1f     q * %.1f = %.1f       p - that = %.1f\n", x, p.probability(x),
                q.probability(x), a, a, drawn_and_accepted, p.probability(x) - drawn_and_accepted);
    accepted += drawn_and_accepted;
  }
  law rest;
  const double mass = residual(p, 1.0, q, rest);
  std::printf("accepted %.1f of the time; what is left has the mass %.1f and is drawn from after a rejection:\n",
              accepted, mass);
  for (token_id x = 0; x < 4; ++x) {
    std::printf("%5d  min(p, q) + (1 - %.1f) * %.2f = %.1f = p\n", x, accepted, rest.probability(x),
                std::min(p.probability(x), q.probability(x)) + (1 - accepted) * rest.probability(x));
  }

  // The shipped rule does the same: 200,000 times draw a draft, let the rule decide, draw what follows a rejection.
  std::array<int, 4> counts{};
  verdict found;
  for (std::uint64_t seed = 0; seed < 200'000; ++seed) {
    const draw_stream draws(seed);
    draft drafted;
    drafted.clear(proposal::with_replacement);
    drafted.children_law(no_parent) = q;
    drafted.add(draw(q, draws.child(0), purpose::draft));
    const auto target = [&](std::int32_t) -> const law& { return p; };
    token_verification{}(drafted, target, stream_decisions(draws.child(1)), found);
    const token_id token = found.path.empty() ? draw(*found.next, draws.child(2), purpose::residual) : drafted.token(0);
    ++counts[static_cast<std::size_t>(token)];
  }
  std::printf("drawn 200,000 times by the rule:");
  for (const int count : counts) std::printf(" %.2f", count / 200'000.0);

  // The same draft, believed to be the draft's favourite instead of a draw, would be accepted with p(x) only.
  std::printf("\nas a deterministic draft token 3 is accepted with p = %.1f, token 1 with %.1f\n", p.probability(3),
              p.probability(1));
  return 0;
}
