// SPDX-License-Identifier: MIT
#include <decant/core/row_registry.hpp>

#include "support/catch.hpp"

#include <decant/core/candidates.hpp>

#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

namespace row_registry_test {

using decant::candidates;
using decant::detail::row_registry;

TEST_CASE("a row that is entered twice is told, one that has been left is not", "[core][row_registry]") {
  float a = 0;
  REQUIRE(row_registry::enter(&a) == row_registry::answer::watched);
  CHECK(row_registry::enter(&a) == row_registry::answer::already_bound);
  CHECK(row_registry::enter(&a) == row_registry::answer::already_bound);
  row_registry::leave(&a);
  CHECK(row_registry::enter(&a) == row_registry::answer::watched);
  row_registry::leave(&a);
}

TEST_CASE("rows beyond what the registry can watch are never reported falsely", "[core][row_registry]") {
  std::vector<std::vector<float>> rows(3000, std::vector<float>(4, 1.0F));
  std::vector<candidates> all(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) CHECK_NOTHROW(all[i].bind(rows[i]));
  for (std::size_t i = 0; i < rows.size(); ++i) all[i].set(1, 5);
  for (std::size_t i = 0; i < rows.size(); i += 2) all[i].release();
  for (std::size_t i = 0; i < rows.size(); i += 2) CHECK_NOTHROW(all[i].bind(rows[i]));
  for (auto& row : all) row.release();
  for (const auto& row : rows) CHECK(row == std::vector<float>(4, 1.0F));
  // And nothing is left behind.
  for (std::size_t i = 0; i < rows.size(); ++i) CHECK_NOTHROW(all[i].bind(rows[i]));
}

TEST_CASE("two candidates on one mutable row is misuse, until the first lets go", "[core][row_registry]") {
  std::vector<float> logits{1, 2, 3};
  candidates first, second;
  first.bind(logits);
  CHECK_THROWS_AS(second.bind(logits), assertion_error);
  first.set(0, 9);
  CHECK(first.argmax() == 0);
  first.release();
  CHECK(logits == std::vector<float>{1, 2, 3});
  CHECK_NOTHROW(second.bind(logits));
  CHECK_THROWS_AS(first.bind(logits), assertion_error);
  CHECK_NOTHROW(second.bind(logits));  // again by the same one
  {
    std::vector<float> other{1};
    second.bind(other);  // binding another row lets go of the first
    CHECK_NOTHROW(first.bind(logits));
    second.release();
  }
  first.release();
  {
    candidates scoped;
    scoped.bind(logits);
  }
  CHECK_NOTHROW(second.bind(logits));
}

TEST_CASE("a failed bind holds nothing", "[core][row_registry]") {
  std::vector<float> logits{1, 2, 3};
  candidates first, third;
  first.bind(logits);
  {
    candidates second;
    CHECK_THROWS_AS(second.bind(logits), assertion_error);
  }
  CHECK_THROWS_AS(third.bind(logits), assertion_error);  // the first still holds it
  first.release();
  CHECK_NOTHROW(third.bind(logits));
}

TEST_CASE("const views of one row may be many, and beside a mutable one of another", "[core][row_registry]") {
  std::vector<float> logits{1, 2, 3};
  candidates a, b, c;
  a.bind(std::as_const(logits));
  b.bind(std::as_const(logits));
  CHECK_NOTHROW(c.bind(logits));
  a.set(0, 7);
  b.ban(0);
  CHECK(a.argmax() == 0);
  CHECK(b.argmax() == 2);
  CHECK(c.argmax() == 2);
}

TEST_CASE("a row that another thread works on is found out too", "[core][row_registry]") {
  std::vector<float> logits{1, 2, 3};
  candidates here;
  here.bind(logits);
  bool caught = false;
  std::thread([&] {
    candidates there;
    try {
      there.bind(logits);
    } catch (const assertion_error&) {
      caught = true;
    }
  }).join();
  CHECK(caught);
  here.release();
  bool clean = false;
  std::thread([&] {
    candidates there;
    there.bind(logits);
    clean = true;
  }).join();
  CHECK(clean);
}

TEST_CASE("many threads on rows of their own do not disturb each other", "[core][row_registry]") {
  std::vector<std::thread> threads;
  std::vector<int> wrong(8, 0);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&wrong, t] {
      candidates row;
      for (int i = 0; i < 2000; ++i) {
        std::vector<float> logits{1, 2, 3, static_cast<float>(t)};
        row.bind(logits);
        row.set(0, 50);
        if (row.argmax() != 0) ++wrong[t];
        row.release();
        if (logits[0] != 1) ++wrong[t];
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const int w : wrong) CHECK(w == 0);
}

}  // namespace row_registry_test
