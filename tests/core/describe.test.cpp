// SPDX-License-Identifier: MIT
#include <decant/core/describe.hpp>

#include "support/catch.hpp"

#include <optional>
#include <string>

namespace describe_test {

struct silent {};
struct spoken {
  [[nodiscard]] std::string describe() const { return "spoken(1)"; }
};
struct switched {
  bool is;
  [[nodiscard]] bool off() const { return is; }
};

class even : public decant::made_or_error<even> {
 public:
  explicit even(int n) : n_(n) { decant::detail::raise_if(validate(n)); }
  static std::optional<decant::parameter_fault> validate(int n) {
    if (n % 2 == 0) return {};
    return decant::parameter_fault{"even", "n", static_cast<double>(n), "must be even"};
  }
  [[nodiscard]] int n() const { return n_; }

 private:
  int n_;
};

static_assert(decant::Describable<spoken> && !decant::Describable<silent>);
static_assert(decant::Switchable<switched> && !decant::Switchable<silent>);

TEST_CASE("policies describe themselves, lambdas are functions", "[core][describe]") {
  CHECK(decant::describe(spoken{}) == "spoken(1)");
  CHECK(decant::describe(silent{}) == "function");
  CHECK(decant::describe([] {}) == "function");
}

TEST_CASE("off is asked only of what can be off", "[core][describe]") {
  CHECK(decant::is_off(switched{true}));
  CHECK_FALSE(decant::is_off(switched{false}));
  CHECK_FALSE(decant::is_off(silent{}));
}

TEST_CASE("a call reads as it would be written (0.95, not 0.9499999)", "[core][describe]") {
  using decant::detail::call_text;
  CHECK(call_text("greedy") == "greedy");
  CHECK(call_text("top_p", {0.95}) == "top_p(0.95)");
  CHECK(call_text("xtc", {0.5, 0.1}) == "xtc(0.5, 0.1)");
  CHECK(call_text("top_k", {40}) == "top_k(40)");
  CHECK(call_text("t", {1e-7, -0.25, 2147483648.0}) == "t(1e-07, -0.25, 2147483648)");
}

TEST_CASE("make gives the policy or the same complaint that the constructor throws", "[core][describe]") {
  const auto good = even::make(4);
  REQUIRE(good);
  CHECK(good->n() == 4);
  const auto bad = even::make(5);
  REQUIRE_FALSE(bad);
  CHECK(bad.error().code == decant::error_code::bad_parameter);
  CHECK(bad.error().where == "even.n");
  CHECK(bad.error().message == "even: n = 5 must be even");
  CHECK_THROWS_WITH(even(5), "even: n = 5 must be even");
}

}  // namespace describe_test
