// SPDX-License-Identifier: MIT
#include "golden/compare.hpp"

#include <cstddef>
#include <set>
#include <string>

#include "support/catch.hpp"

namespace golden_compare_tests {

using conformance::altered;
using conformance::difference;
using conformance::each_alteration;
using conformance::json;
using conformance::without_order;

bool agree(const json& expected, const json& actual) { return !difference(expected, actual).has_value(); }

TEST_CASE("numbers agree within 2e-5, absolute and relative") {
  CHECK(agree(0.0, 1.9e-5));
  CHECK(!agree(0.0, 2.1e-5));
  CHECK(agree(-1.0, -1.00003));
  CHECK(!agree(-1.0, -1.00005));
  CHECK(agree(1e6, 1e6 + 19));
  CHECK(!agree(1e6, 1e6 + 21));
  CHECK(agree(3.4028234663852886e38, 3.4028234663852886e38));
  CHECK(!agree(3.4028234663852886e38, -3.4028234663852886e38));
  CHECK(agree(2, 2.0));
  CHECK(!agree(2, 3));
  CHECK(!agree(1'000'000, 1'000'001));  // whole numbers are counts and ids
}

TEST_CASE("what is no number agrees with itself alone") {
  const json values[] = {nullptr, "NaN", "Infinity", true, false, 0.0, json::array(), json::object()};
  for (std::size_t i = 0; i < std::size(values); ++i) {
    for (std::size_t k = 0; k < std::size(values); ++k) CHECK(agree(values[i], values[k]) == (i == k));
  }
}

TEST_CASE("rows agree entry by entry, and the first difference is named") {
  CHECK(agree({1.0, nullptr, 2.0}, {1.000001, nullptr, 2.0}));
  CHECK(!agree({1.0, nullptr}, {1.0, nullptr, nullptr}));
  CHECK(!agree({1.0, nullptr, nullptr}, {1.0, nullptr}));
  CHECK(!agree({1.0, nullptr}, {nullptr, 1.0}));
  CHECK(difference({1.0, nullptr, 2.0}, {1.0, 5.0, 7.0}, "/expected").value_or("") ==
        "/expected/1: expected null, computed 5.0");
  CHECK(difference({{"a", {{"b", 1}}}}, {{"a", {{"b", 2}}}}).value_or("") == "/a/b: expected 1, computed 2");
  CHECK(difference({{"a", 1}}, {{"b", 1}}).value_or("") == "/a: expected 1, computed nothing");
}

TEST_CASE("without its order a row is its numbers and how many are gone") {
  CHECK(without_order({2.0, nullptr, -1.0, nullptr}) == json({-1.0, 2.0, nullptr, nullptr}));
  CHECK(without_order({nullptr, 2.0, nullptr, -1.0}) == without_order({2.0, nullptr, -1.0, nullptr}));
  CHECK(without_order({2.0, nullptr}) != without_order({2.0, 2.0}));
  CHECK(without_order("row") == "row");
}

TEST_CASE("an altered value is never taken for the value") {
  for (const json& value : {json(nullptr), json(true), json(false), json(0), json(-7), json(0.0), json(1.0),
                            json(-1e-9), json(1e30), json(-3.4028234663852886e38), json("ValueError")}) {
    INFO(value.dump());
    CHECK(!agree(value, altered(value)));
    CHECK(!agree(altered(value), value));
  }
}

TEST_CASE("alterations touch each value alone, and each empty list") {
  const json expectation = {{"row", {1.5, nullptr}}, {"stop", true}, {"ids", json::array()}};
  std::set<std::string> places;
  each_alteration(expectation, [&](const json& wrong, const std::string& place) {
    places.insert(place);
    CHECK(!agree(expectation, wrong));
    std::size_t touched = 0;
    for (const auto& [key, value] : expectation.items()) touched += wrong.at(key) != value;
    CHECK(touched == 1);
  });
  CHECK(places == std::set<std::string>{"/row/0", "/row/1", "/stop", "/ids"});
}

}  // namespace golden_compare_tests
