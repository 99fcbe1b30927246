// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <initializer_list>

#include <decant/core/law.hpp>

// The two laws that golden numbers are given for: independent values, from a program of their own.

namespace golden_laws {

inline decant::law softmax(std::initializer_list<double> logits) {
  decant::law out;
  for (const double z : logits) {
    out.ids.push_back(static_cast<decant::token_id>(out.ids.size()));
    out.weights.push_back(std::exp(z));
    out.total += out.weights.back();
  }
  return out;
}

inline decant::law target() { return softmax({2, 1, 0.5, 0, -1, -3}); }
inline decant::law drafted() { return softmax({1, 1.5, 0, 0.5, -0.5, -2}); }

}  // namespace golden_laws
