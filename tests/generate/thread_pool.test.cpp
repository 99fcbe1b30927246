// SPDX-License-Identifier: MIT
#include <decant/generate/thread_pool.hpp>

#include "support/catch.hpp"

#include <atomic>
#include <cstddef>
#include <initializer_list>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace thread_pool_test {

using decant::indexed_task;
using decant::thread_pool;

static_assert(decant::Executor<thread_pool> && !std::is_copy_constructible_v<thread_pool>);

TEST_CASE("a pool runs every task once, whatever the numbers of threads and tasks", "[generate][thread_pool]") {
  for (const std::size_t threads : std::initializer_list<std::size_t>{1, 2, 5}) {
    thread_pool pool(threads);
    CHECK(pool.threads() == threads);
    for (const std::size_t count : std::initializer_list<std::size_t>{0, 1, 2, 3, 64, 1000}) {
      std::vector<std::atomic<int>> runs(count);
      const auto task = [&](std::size_t i) { runs[i].fetch_add(1); };
      pool(count, indexed_task(task));
      std::size_t wrong = 0;
      for (const auto& run : runs) wrong += run.load() != 1;
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("what tasks wrote is there when the call returns, call after call", "[generate][thread_pool]") {
  thread_pool pool(3);
  std::vector<std::size_t> numbers(17, 0);  // plain memory: the pool must order the accesses
  for (std::size_t round = 1; round <= 2000; ++round) {
    const auto task = [&](std::size_t i) { numbers[i] += i + round; };
    pool(numbers.size(), indexed_task(task));
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) CHECK(numbers[i] == 2000 * i + 2000 * 2001 / 2);
}

TEST_CASE("the caller's thread takes part, and helpers too while it is held up", "[generate][thread_pool]") {
  thread_pool pool(2);
  std::mutex mutex;
  std::set<std::thread::id> who;
  std::atomic<int> waiting{0};
  // Each of two tasks waits for the other: only two threads can end them.
  const auto task = [&](std::size_t) {
    waiting.fetch_add(1);
    while (waiting.load() < 2) std::this_thread::yield();
    const std::scoped_lock lock(mutex);
    who.insert(std::this_thread::get_id());
  };
  pool(2, indexed_task(task));
  CHECK(who.size() == 2);
  CHECK(who.contains(std::this_thread::get_id()));
}

TEST_CASE("pools come and go without having been used", "[generate][thread_pool]") {
  for (int i = 0; i < 20; ++i) CHECK(thread_pool(4).threads() == 4);
  CHECK(thread_pool().threads() >= 1);
  CHECK_THROWS_AS(thread_pool(0), assertion_error);
}

}  // namespace thread_pool_test
