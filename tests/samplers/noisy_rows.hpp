// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "processors/policies.hpp"

#include <decant/math/kernels.hpp>

// Rows in every form that candidates have, for samplers that look at few tokens of many.

namespace noisy_rows {

using namespace policies;

/// Calls f(candidates, seed) for rows of many kinds, whole, edited, masked and narrowed, on every instruction set.
template <class F>
void each(F f) {
  using edit = std::function<void(candidates&)>;
  const std::vector<edit> edits{
      [](candidates&) {},
      [](candidates& c) { c.affine(1e-3); },
      [](candidates& c) { c.affine(40, -7); },
      [](candidates& c) { c.keep_largest(5000); },
      [](candidates& c) { c.keep_largest(300); },
      [](candidates& c) { c.keep_largest(3); },
      [](candidates& c) {
        for (token_id id = 0; static_cast<std::size_t>(id) < c.vocabulary_size(); id += 77) c.ban(id);
      },
      [](candidates& c) {
        std::vector<std::uint64_t> mask((c.vocabulary_size() + 63) / 64, 0x00F0F000FF00000FU);
        c.allow(std::span<const std::uint64_t>(mask));
      },
  };
  std::vector<decant::math::isa> forms{decant::math::isa::portable};
  if (decant::math::best_isa() >= decant::math::isa::avx2) forms.push_back(decant::math::isa::avx2);
  if (decant::math::best_isa() >= decant::math::isa::avx512) forms.push_back(decant::math::isa::avx512);
  for (const std::size_t size : {2U, 63U, 64U, 200U, 4096U, 9001U}) {
    const row steep = random_row(size, size);
    for (int kind = 0; kind < 5; ++kind) {
      row logits = steep;
      for (std::size_t i = 0; i < size; ++i) {
        if (kind == 1) logits[i] = 0.25F;
        if (kind == 2) logits[i] = i + 5 < size ? -1000 - steep[i] : steep[i];
        if (kind == 3 && i % 3 != 1) logits[i] = gone;
        if (kind == 4) logits[i] = 30 * steep[i] - 200;
      }
      for (std::size_t e = 0; e < edits.size(); ++e) {
        for (const auto which : forms) {
          decant::math::use_kernels(which);
          INFO(size << " tokens of kind " << kind << ", edit " << e << ", " << decant::math::to_string(which));
          candidates c;
          for (std::uint64_t seed = 0; seed < 3; ++seed) {
            c.bind(std::span<const float>(logits));
            edits[e](c);
            f(c, 100 * size + seed);
          }
        }
      }
    }
  }
  decant::math::use_kernels(decant::math::best_isa());
}

/// The token of the largest logit and noise, the lowest id among equals, looked at one by one.
template <class Noise>
token_id noisiest(candidates& row, Noise noise) {
  token_id best = no_token;
  double highest = 0;
  row.visit_below_max([&](token_id id, double below) {
    const double perturbed = below + noise(id);
    if (best != no_token && perturbed <= highest) return;
    highest = perturbed;
    best = id;
  });
  return best;
}

}  // namespace noisy_rows
