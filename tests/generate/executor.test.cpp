// SPDX-License-Identifier: MIT
#include <decant/generate/executor.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <initializer_list>
#include <vector>

namespace executor_test {

using decant::indexed_task;

struct backwards {
  void operator()(std::size_t count, indexed_task task) const {
    for (std::size_t i = count; i > 0; --i) task(i - 1);
  }
};
struct not_an_executor {
  void operator()(std::size_t) const {}
};

static_assert(decant::Executor<decant::serial_executor> && decant::Executor<const decant::serial_executor>);
static_assert(decant::Executor<backwards> && !decant::Executor<not_an_executor> && !decant::Executor<int>);

TEST_CASE("the serial executor runs tasks in order, each once", "[generate][executor]") {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, 7UL}) {
    std::vector<std::size_t> seen;
    const auto task = [&](std::size_t i) { seen.push_back(i); };
    decant::serial_executor{}(count, indexed_task(task));
    REQUIRE(seen.size() == count);
    for (std::size_t i = 0; i < count; ++i) CHECK(seen[i] == i);
  }
}

TEST_CASE("a task refers to its function, and copies refer to the same", "[generate][executor]") {
  std::size_t sum = 0;
  auto add = [&sum, calls = std::size_t{0}](std::size_t i) mutable { sum += i * ++calls; };
  const indexed_task task(add);
  const indexed_task copy = task;  // NOLINT(performance-unnecessary-copy-initialization): the copy is the point
  task(5);
  copy(5);
  CHECK(sum == 15);
}

TEST_CASE("a lambda is an executor", "[generate][executor]") {
  const auto every_other_first = [](std::size_t count, indexed_task task) {
    for (std::size_t i = 0; i < count; i += 2) task(i);
    for (std::size_t i = 1; i < count; i += 2) task(i);
  };
  STATIC_REQUIRE(decant::Executor<decltype(every_other_first)>);
  std::vector<std::size_t> seen;
  const auto task = [&](std::size_t i) { seen.push_back(i); };
  every_other_first(5, indexed_task(task));
  CHECK(seen == std::vector<std::size_t>{0, 2, 4, 1, 3});
}

}  // namespace executor_test
