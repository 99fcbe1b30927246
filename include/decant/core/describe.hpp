// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

#include <decant/core/errors.hpp>

namespace decant {

/// A policy that can say what it is: "top_p(0.95)".
template <class P>
concept Describable = requires(const P& policy) {
  { policy.describe() } -> std::convertible_to<std::string>;
};

/// A policy that can say that it stands at its off value, where it is the identity.
template <class P>
concept Switchable = requires(const P& policy) {
  { policy.off() } -> std::convertible_to<bool>;
};

namespace detail {

/// "name(1, 0.5)"; "name" alone without arguments.
inline std::string call_text(std::string_view name, std::initializer_list<double> arguments = {}) {
  std::string text(name);
  const char* separator = "(";
  for (const double argument : arguments) {
    text += separator;
    text += number_text(argument);
    separator = ", ";
  }
  if (arguments.size() > 0) text += ')';
  return text;
}

}  // namespace detail

/// What to print for a policy: its own words, or "function" for a lambda that has none.
template <class P>
std::string describe(const P& policy) {
  if constexpr (Describable<P>) {
    return policy.describe();
  } else {
    return "function";
  }
}

/// Whether a policy stands at its off value; one that has none never does.
template <class P>
bool is_off(const P& policy) {
  if constexpr (Switchable<P>) {
    return policy.off();
  } else {
    return false;
  }
}

/// Gives a policy `make`: as its constructor, but a bad parameter is an error value instead of an exception.
/// The policy states its rules once, in `static std::optional<parameter_fault> validate(arguments...)`.
template <class Policy>
class made_or_error {
 public:
  template <class... Arguments>
  static result<Policy> make(const Arguments&... arguments) {
    if (const auto fault = Policy::validate(arguments...)) {
      return error{error_code::bad_parameter, std::string(fault->policy) + "." + std::string(fault->parameter),
                   fault->text()};
    }
    return Policy(arguments...);
  }

 private:
  made_or_error() = default;
  friend Policy;
};

}  // namespace decant
