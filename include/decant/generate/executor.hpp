// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>

namespace decant {

/// A reference to a function of an index, its type forgotten: what an executor is handed. Copying copies the reference;
/// valid as long as the function object.
class indexed_task {
 public:
  template <class F>
    requires(!std::same_as<std::remove_cv_t<F>, indexed_task>) && std::invocable<F&, std::size_t>
  indexed_task(F& function)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
        call_([](void* object, std::size_t index) { (*static_cast<F*>(object))(index); }) {}

  void operator()(std::size_t index) const { call_(object_, index); }

 private:
  void* object_;
  void (*call_)(void*, std::size_t);
};

/// Runs task(0) ... task(count - 1), each exactly once, in any order and on any threads, and returns when all have
/// ended. Tasks do not throw. A lambda around an engine's own threads will do.
template <class E>
concept Executor = requires(E& executor, std::size_t count, indexed_task task) { executor(count, task); };

/// One task after the other on the calling thread.
struct serial_executor {
  void operator()(std::size_t count, indexed_task task) const {
    for (std::size_t i = 0; i < count; ++i) task(i);
  }
};

}  // namespace decant
