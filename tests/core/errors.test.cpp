// SPDX-License-Identifier: MIT
#include <decant/core/errors.hpp>

#include "support/catch.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace errors_test {

using decant::error;
using decant::error_code;
using decant::parameter_fault;
using decant::result;

static_assert(std::is_base_of_v<std::invalid_argument, decant::parameter_error>);
static_assert(std::is_base_of_v<std::runtime_error, decant::decode_error>);
static_assert(DECANT_EXCEPTIONS == 1);

TEST_CASE("numbers in messages read as they were written", "[core][errors]") {
  using decant::detail::number_text;
  CHECK(number_text(0.95) == "0.95");
  CHECK(number_text(0.95F) == "0.95");
  CHECK(number_text(1.0) == "1");
  CHECK(number_text(-3) == "-3");
  CHECK(number_text(1e300) == "1e+300");
  CHECK(number_text(-2.2250738585072014e-308) == "-2.2250738585072014e-308");
  CHECK(number_text(18446744073709551615U) == "18446744073709551615");
}

TEST_CASE("an error says where and why", "[core][errors]") {
  CHECK(error{error_code::bad_text, "3:7", "no such flag"}.text() == "3:7: no such flag");
  CHECK(error{error_code::bad_file, "", "truncated"}.text() == "truncated");
}

TEST_CASE("a parameter fault names the policy, the parameter, the value and the rule", "[core][errors]") {
  const parameter_fault fault{"top_p", "p", -0.5, "must be a number >= 0"};
  CHECK(fault.text() == "top_p: p = -0.5 must be a number >= 0");
  CHECK(std::string(decant::parameter_error(fault).what()) == fault.text());
  CHECK(std::string(decant::parameter_error(std::string("words")).what()) == "words");
  CHECK_THROWS_AS(decant::detail::raise(fault), decant::parameter_error);
  CHECK_THROWS_WITH(decant::detail::raise(fault), "top_p: p = -0.5 must be a number >= 0");
  CHECK_NOTHROW(decant::detail::raise_if(std::nullopt));
  CHECK_THROWS_AS(decant::detail::raise_if(fault), decant::parameter_error);
}

TEST_CASE("a decode error holds the status and says it", "[core][errors]") {
  const decant::decode_error empty(decant::row_status::empty), bad(decant::row_status::not_finite);
  CHECK(empty.status() == decant::row_status::empty);
  CHECK(std::string(empty.what()).find("empty") != std::string::npos);
  CHECK(bad.status() == decant::row_status::not_finite);
  CHECK(std::string(bad.what()).find("NaN") != std::string::npos);
  CHECK_THROWS_AS(decant::detail::raise(decant::row_status::empty), decant::decode_error);
}

TEST_CASE("a result holds a value", "[core][errors]") {
  result<std::vector<int>> good = std::vector<int>{1, 2, 3};
  REQUIRE(good);
  CHECK(good.has_value());
  CHECK(good->size() == 3);
  (*good).push_back(4);
  CHECK(good.value().back() == 4);
  const auto& constant = good;
  CHECK(constant->size() == 4);
  CHECK((*constant)[0] == 1);
  const std::vector<int> taken = *std::move(good);
  CHECK(taken.size() == 4);
}

TEST_CASE("a result holds an error, and asking it for a value is misuse", "[core][errors]") {
  result<int> bad = error{error_code::not_found, "file", "does not exist"};
  CHECK_FALSE(bad);
  CHECK_FALSE(bad.has_value());
  CHECK(bad.error().code == error_code::not_found);
  CHECK(bad.error().text() == "file: does not exist");
  CHECK_THROWS_AS(bad.value(), assertion_error);
  CHECK_THROWS_AS(*bad, assertion_error);
  CHECK_THROWS_AS(std::as_const(bad).value(), assertion_error);
  CHECK_THROWS_AS(std::move(bad).value(), assertion_error);
}

TEST_CASE("a result carries what can only be moved", "[core][errors]") {
  const auto make = [](bool good) -> result<std::unique_ptr<int>> {
    if (good) return std::make_unique<int>(7);
    return error{error_code::bad_data, "", "none"};
  };
  CHECK(*make(true).value() == 7);
  CHECK_FALSE(make(false));
  auto kept = make(true);
  const std::unique_ptr<int> moved = std::move(kept).value();
  CHECK(*moved == 7);
}

}  // namespace errors_test
