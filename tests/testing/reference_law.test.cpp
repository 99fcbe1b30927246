// SPDX-License-Identifier: MIT
#include <decant/testing/reference_law.hpp>

#include "support/catch.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

namespace reference_law_tests {

using namespace decant::testing::reference;
using decant::token_id;
using tokens = std::vector<token_id>;
using law = std::vector<double>;

const logits z{2, 1, 0.5, 0, -1, -3};

bool close(const law& x, const law& y, double tolerance = 1e-9) {
  if (x.size() != y.size()) return false;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!(std::abs(x[i] - y[i]) <= tolerance)) return false;
  }
  return true;
}

std::vector<std::size_t> kept(const logits& row) { return descending(row); }
using ids = std::vector<std::size_t>;

TEST_CASE("the double reference has the golden numbers", "[testing]") {
  CHECK(close(exact_law(z), {0.560893422, 0.206341159, 0.125152239, 0.075908670, 0.027925239, 0.003779270}, 1.1e-9));
  CHECK(std::abs(entropy(exact_law(z)) - 1.226783295532) < 1e-11);
  CHECK(close(exact_law(temperature(z, 0.5)),
              {0.829213426, 0.112221834, 0.041284106, 0.015187574, 0.002055415, 0.000037646}, 1.1e-9));
  CHECK(close(exact_law(temperature(z, 2)),
              {0.363373174, 0.220396971, 0.171645334, 0.133677520, 0.081079515, 0.029827486}, 1.1e-9));
  CHECK(kept(top_p(z, 0.8)) == ids{0, 1, 2});
  CHECK(kept(top_p(z, 0.9)) == ids{0, 1, 2, 3});
  CHECK(kept(top_p(z, 0.95)) == ids{0, 1, 2, 3});
  CHECK(kept(min_p(z, 0.1)) == ids{0, 1, 2, 3});
  CHECK(kept(min_p(z, 0.2)) == ids{0, 1, 2});
  CHECK(close(repetition_penalty(z, tokens{0, 4, 5}, 1.2), {5.0 / 3, 1, 0.5, 0, -1.2, -3.6}));
}

TEST_CASE("the double reference leaves gone tokens out", "[testing]") {
  const logits row{0, minus_infinity, 0};
  CHECK(close(exact_law(row), {0.5, 0, 0.5}));
  CHECK(close(exact_law(logits{minus_infinity}), {0}));
  CHECK(entropy(exact_law(logits{0, minus_infinity})) == 0);
  CHECK(kept(top_k(row, 5)) == ids{0, 2});
  CHECK(kept(top_p(row, 0)) == ids{0});
  CHECK(kept(min_p(row, 1)) == ids{0, 2});
  CHECK(kept(min_p(logits{minus_infinity}, 1)).empty());
}

TEST_CASE("the double reference counts and finds n-grams", "[testing]") {
  CHECK(close(count_penalty({1, 1, 1}, tokens{2, 2, 0}, 0.5, 0.25), {0.25, 1, -0.25}));
  CHECK(kept(no_repeat_ngram({0, 0, 0}, tokens{1, 2, 1}, 2)) == ids{0, 1});
  CHECK(kept(no_repeat_ngram({0, 0, 0}, tokens{1, 2, 1}, 1)) == ids{0});
  CHECK(kept(no_repeat_ngram({0, 0, 0}, tokens{1, 2, 1}, 5)) == ids{0, 1, 2});
  CHECK(kept(no_repeat_ngram({0, 0}, tokens{1, 1, 1}, 2)) == ids{0});
}

}  // namespace reference_law_tests
