// SPDX-License-Identifier: MIT
#pragma once

// The verbs of candidates by themselves, as a user's own processor may call them.

#include "eager_support.hpp"

#include <decant/chain/compose.hpp>
#include <decant/core/describe.hpp>
#include <decant/math/philox.hpp>

namespace eager {

template <class F, class G>
step verb(std::string name, F library, G eager) {
  return {named(std::move(name), [library](candidates& row, const step_context&) { library(row); }), std::move(eager)};
}

inline std::uint64_t bits_of_token(token_id id, std::uint64_t salt) {
  return math::philox4x32({static_cast<std::uint32_t>(id), 0, 0, 0}, salt)[0];
}

inline step make_add(const situation& s) {
  const token_id id = s.any_id();
  const float amount = s.roll.one_in(3) ? gone : static_cast<float>(s.roll.below(33)) / 4 - 4;
  const auto act = [=](auto& row) { row.add(id, amount); };
  return verb("add", act, act);
}

inline step make_set(const situation& s) {
  const token_id id = s.any_id();
  const float value = static_cast<float>(s.roll.below(65)) / 4 - 8;
  const auto act = [=](auto& row) { row.set(id, value); };
  return verb("set", act, act);
}

inline step make_affine(const situation& s) {
  const double scale = s.roll.one_of({1.0, 0.5, 3.0, 0.7}), shift = s.roll.one_of({0.0, -1.5, 1e3, 0.1});
  const auto act = [=](auto& row) { row.affine(scale, shift); };
  return verb("affine", act, act);
}

inline step make_allow_mask(const situation& s) {
  const std::uint64_t salt = s.roll.below(1000);
  const auto allowed = [salt](token_id id) { return bits_of_token(id, salt) % 4 != 0; };
  return verb(
      "allow a mask",
      [=, n = s.n](candidates& row) {
        std::vector<std::uint64_t> mask((n + 63) / 64, 0);
        for (std::size_t i = 0; i < n; ++i) {
          if (allowed(static_cast<token_id>(i))) mask[i / 64] |= std::uint64_t{1} << (i % 64);
        }
        row.allow(mask);
      },
      [=](judged_row& row) { row.keep_if(allowed); });
}

inline step make_ban_the_top(const situation& s) {
  const std::size_t count = 1 + s.roll.below(5);
  return verb(
      "ban the top",
      [=](candidates& row) {
        tokens top;
        for (const entry& e : row.descending(count)) top.push_back(e.id);
        for (const token_id id : top) row.ban(id);
      },
      [=](judged_row& row) {
        tokens top = row.descending();
        top.resize(std::min(count, top.size()));
        ban_all(row, top);
      });
}

inline step make_keep_mass_around(const situation& s) {
  const double p = 0.05 + static_cast<double>(s.roll.below(55)) * 0.0173;
  return verb(
      "keep_mass around the entropy",
      [=](candidates& row) {
        if (row.status() == row_status::ok) row.keep_mass_around(p, 1, row.log_sum() - row.entropy());
      },
      [=](judged_row& row) {
        if (row.good()) row.keep_mass_around(p, row.log_sum() - row.entropy());
      });
}

inline step make_keep_above(const situation& s) {
  const double width = 0.3 + s.roll.unit();
  const std::size_t min_keep = s.min_keep();
  const auto act = [=](auto& row) {
    if (row.status() == row_status::ok) row.keep_above(row.max() - width * row.sigma(), min_keep);
  };
  return verb("keep_above by sigma", act, act);
}

inline step make_keep_above_power(const situation&) {
  const auto act = [](auto& row) {
    if (row.status() == row_status::ok) row.keep_above(row.log_sum(2) - row.log_sum());
  };
  return verb("keep_above by the log_sum of power 2", act, act);
}

inline step make_transform(const situation&) {
  const auto act = [](auto& row) {
    if (row.status() != row_status::ok) return;
    const double top = row.max();
    row.transform([top](token_id, float z) {
      const double d = std::max(static_cast<double>(z) - top, -100.0);
      return static_cast<float>(top + math::product(math::product(0.0625, d) - 0.125, math::product(d, d)));
    });
  };
  return verb("transform", act, act);
}

inline step make_rewrite(const situation& s) {
  const std::uint64_t salt = s.roll.below(1000);
  const auto act = [salt](auto& row) {
    row.rewrite([salt](token_id id, float z) { return is_gone(z) && bits_of_token(id, salt) % 3 == 0 ? -1.5F : z; });
  };
  return verb("rewrite", act, act);
}

}  // namespace eager
