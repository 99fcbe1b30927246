// SPDX-License-Identifier: MIT
#pragma once

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <decant/core/token.hpp>

/// 1 where exceptions are on. Without them constructors cannot report a bad parameter: use `P::make(...)` and the
/// `try_` functions, which are there in every build.
#if defined(__cpp_exceptions)
#define DECANT_EXCEPTIONS 1
#else
#define DECANT_EXCEPTIONS 0
#endif

/// Misuse by the programmer (an id outside the vocabulary, empty logits): prints and aborts, in every build type.
/// Define it before the first include, alike in every unit of a program, to do something else.
#ifndef DECANT_ASSERT
#define DECANT_ASSERT(condition, message) \
  ((condition) ? static_cast<void>(0) : ::decant::detail::assertion_failed(#condition, message, __FILE__, __LINE__))
#endif

namespace decant {

namespace detail {

[[noreturn]] inline void assertion_failed(const char* condition, const char* message, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: decant: %s (%s)\n", file, line, message, condition);
  std::abort();
}

/// The shortest decimal text that reads back as `value` in its own type: 0.95, not 0.94999999.
/// Whole numbers are written out: 100000, not 1e+05.
template <class Number>
std::string number_text(Number value) {
  if constexpr (!std::is_integral_v<Number>) {
    if (value > -1e15 && value < 1e15 && static_cast<Number>(static_cast<long long>(value)) == value && value != 0) {
      return std::to_string(static_cast<long long>(value));
    }
  }
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return std::string(buffer, end);
}

}  // namespace detail

/// What kind of thing went wrong.
enum class error_code : std::uint8_t {
  bad_parameter,  ///< a policy's parameter breaks its rule
  bad_data,       ///< a row of logits cannot be decoded
  bad_file,       ///< a file is malformed, truncated or hostile
  bad_text,       ///< user text (pattern, grammar, configuration) does not parse
  not_found,      ///< a file or an entry does not exist
};

/// A failure as a value: what kind, where (a policy, a field, line:column, a JSON pointer), and why.
struct error {
  error_code code{};
  std::string where;
  std::string message;

  [[nodiscard]] std::string text() const { return where.empty() ? message : where + ": " + message; }
};

/// A broken parameter rule, before it becomes an exception or an error value.
struct parameter_fault {
  std::string_view policy;     ///< "top_p"
  std::string_view parameter;  ///< "p"
  double value;                ///< what was given
  std::string_view rule;       ///< "must be a number >= 0"

  [[nodiscard]] std::string text() const {
    return std::string(policy) + ": " + std::string(parameter) + " = " + detail::number_text(value) + " " +
           std::string(rule);
  }
};

/// Thrown by a policy's constructor when a parameter breaks its rule; names policy, parameter, value and rule.
class parameter_error : public std::invalid_argument {
 public:
  explicit parameter_error(const parameter_fault& fault) : std::invalid_argument(fault.text()) {}
  explicit parameter_error(const std::string& what) : std::invalid_argument(what) {}
};

/// Thrown by `decoder::step` when a row of logits is empty or not finite.
class decode_error : public std::runtime_error {
 public:
  explicit decode_error(row_status status)
      : std::runtime_error(std::string("decode_error: row is ") + to_string(status)), status_(status) {}

  [[nodiscard]] row_status status() const noexcept { return status_; }

 private:
  row_status status_;
};

/// A value, or the error that stands in its way. What C++23 calls `expected`, as far as decant needs it.
template <class T>
class [[nodiscard]] result {
 public:
  result(T value) : value_(std::move(value)) {}
  result(decant::error failure) : error_(std::move(failure)) {}

  [[nodiscard]] bool has_value() const noexcept { return value_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }

  /// The value. Asking for it when there is none is misuse.
  [[nodiscard]] T& value() & { return present(*this); }
  [[nodiscard]] const T& value() const& { return present(*this); }
  [[nodiscard]] T&& value() && { return std::move(present(*this)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  [[nodiscard]] const decant::error& error() const noexcept { return error_; }

 private:
  template <class Self>
  static auto& present(Self& self) {
    DECANT_ASSERT(self.value_.has_value(), "value() of a result that holds an error");
    return *self.value_;
  }

  std::optional<T> value_;
  decant::error error_;
};

namespace detail {

/// Reports a bad parameter from a constructor: throws, or aborts with the message where exceptions are off.
[[noreturn]] inline void raise(const parameter_fault& fault) {
#if DECANT_EXCEPTIONS
  throw parameter_error(fault);
#else
  std::fprintf(stderr, "decant: %s\n", fault.text().c_str());
  std::abort();
#endif
}

inline void raise_if(const std::optional<parameter_fault>& fault) {
  if (fault) raise(*fault);
}

[[noreturn]] inline void raise(row_status status) {
#if DECANT_EXCEPTIONS
  throw decode_error(status);
#else
  std::fprintf(stderr, "decant: row is %s\n", to_string(status));
  std::abort();
#endif
}

}  // namespace detail

}  // namespace decant
