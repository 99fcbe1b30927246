// SPDX-License-Identifier: MIT
#pragma once

// Runs a peer's sampler and decant's policy on the same rows, and tells the differences that are known from others.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <decant/chain/any.hpp>
#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/core/draws.hpp>

#include "peer/llama_library.hpp"
#include "support/catch.hpp"

namespace peer {

using decant::token_id;

/// What is left of a row: ids in ascending order, and their probabilities.
struct outcome {
  std::vector<token_id> ids;
  std::vector<double> probabilities;
};

/// The kinds of rows, one after the other: as a model's, all equal, one far above the rest, full of ties, and with
/// tokens that are gone.
enum class row_kind : std::uint8_t { usual, flat, peaked, tied, partly_gone };
inline constexpr std::size_t row_kinds = 5;
inline constexpr std::size_t row_count = 2000;

inline row_kind kind_of(std::size_t index) { return static_cast<row_kind>(index % row_kinds); }

/// How many tokens row number `index` has: 2 to 80, now and then 600 or 3,000.
inline std::size_t size_of(std::size_t index) {
  const std::size_t block = index / row_kinds;
  return block % 40 == 39 ? 3000 : block % 10 == 9 ? 600 : 2 + block % 79;
}

/// Row number `index`, of this size.
inline std::vector<float> row_of(std::size_t index, std::size_t size) {
  const decant::draw_stream draws(index);
  const auto number = [&](std::size_t i, double scale) {
    return scale * draws.gumbel(decant::purpose::user, static_cast<token_id>(i));
  };
  std::vector<float> row(size);
  for (std::size_t i = 0; i < size; ++i) {
    switch (kind_of(index)) {
      case row_kind::usual: row[i] = static_cast<float>(number(i, 1.7) - 2); break;
      case row_kind::flat: row[i] = 1.25F; break;
      case row_kind::peaked:
        row[i] = static_cast<float>(number(i, 1) + (i == index / row_kinds % size ? 12 : 0));
        break;
      case row_kind::tied: row[i] = static_cast<float>(std::round(number(i, 2)) / 2); break;
      case row_kind::partly_gone:
        row[i] = i % 3 == 1 && i + 1 < size ? decant::gone : static_cast<float>(number(i, 1.7));
        break;
    }
  }
  return row;
}

inline std::vector<float> row_of(std::size_t index) { return row_of(index, size_of(index)); }

/// Tokens so far, all of them prompt: some of the row's ids, with repetitions.
inline std::vector<token_id> text_of(std::size_t index, std::size_t size) {
  std::vector<token_id> text;
  for (std::size_t i = 0; i < 3 + index % 90; ++i) {
    text.push_back(static_cast<token_id>((i * i + index / 7 + i % (2 + index % 5)) % std::min<std::size_t>(size, 11)));
  }
  return text;
}

inline outcome outcome_of(std::vector<std::pair<token_id, double>> left) {
  outcome out;
  std::ranges::sort(left);
  double top = -INFINITY, total = 0;
  for (const auto& [id, logit] : left) top = std::max(top, logit);
  for (const auto& [id, logit] : left) total += std::exp(logit - top);
  for (const auto& [id, logit] : left) {
    out.ids.push_back(id);
    out.probabilities.push_back(std::exp(logit - top) / total);
  }
  return out;
}

/// What the peer's samplers, one after the other, leave of a row; and which token the last one has chosen, if it does.
inline outcome run_peer(std::span<sampler> samplers, const std::vector<float>& row, token_id* chosen = nullptr) {
  std::vector<token_data> data;
  for (const float logit : row) data.push_back({static_cast<std::int32_t>(data.size()), logit, 0});
  token_data_array array{data.data(), data.size(), -1, false};
  for (sampler& each : samplers) each.apply(array);
  std::vector<std::pair<token_id, double>> left;
  for (std::size_t i = 0; i < array.size; ++i) {
    if (!decant::is_gone(array.data[i].logit)) {
      left.emplace_back(array.data[i].id, static_cast<double>(array.data[i].logit));
    }
  }
  if (chosen != nullptr) *chosen = array.data[array.selected].id;
  return outcome_of(std::move(left));
}

/// What a policy of decant leaves of a row.
inline outcome run_decant(decant::any_processor& policy, const std::vector<float>& row,
                          std::span<const token_id> text) {
  decant::candidates c;
  c.bind(std::span<const float>(row));
  policy(c, decant::context_after(text, text.size(), decant::draw_stream(1)));
  // By logits, not by weights: a token of probability 1e-60 has the weight 0, and is left all the same.
  std::vector<std::pair<token_id, double>> left;
  if (c.status() == decant::row_status::ok) {
    c.visit_below_max([&](token_id id, double below) { left.emplace_back(id, below); });
  }
  return outcome_of(std::move(left));
}

/// The differences that are known: tests/peer/differences.txt, "sampler.difference: reason" a line.
inline std::map<std::string, std::string> known_differences() {
  std::map<std::string, std::string> known;
  std::ifstream file(std::string(DECANT_SOURCE_DIR) + "/tests/peer/differences.txt");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (!line.empty() && line.front() != '#' && colon != std::string::npos) {
      known[line.substr(0, colon)] = line.substr(colon + 2);
    }
  }
  return known;
}

/// How many rows of one sampler's test showed which difference. At the end: only known ones, and every known one.
class differences {
 public:
  explicit differences(std::string sampler) : sampler_(std::move(sampler)) {}

  void note(const std::string& difference) { ++seen_[sampler_ + "." + difference]; }

  void check_against_list() const {
    const auto known = known_differences();
    for (const auto& [name, count] : seen_) {
      INFO(name << " was seen on " << count << " rows, and is not in differences.txt");
      CHECK(known.contains(name));
    }
    for (const auto& [name, reason] : known) {
      if (!name.starts_with(sampler_ + ".")) continue;
      INFO(name << " is in differences.txt, and no row shows it");
      CHECK(seen_.contains(name));
    }
  }

 private:
  std::string sampler_;
  std::map<std::string, std::size_t> seen_;
};

inline bool near(const std::vector<double>& a, const std::vector<double>& b) {
  return std::ranges::equal(a, b, [](double x, double y) { return std::abs(x - y) <= 1e-5; });
}

/// The logits of ids, largest first: equal for two sets that differ in which of equal tokens they hold.
inline std::vector<float> logits_of(const std::vector<token_id>& ids, const std::vector<float>& row) {
  std::vector<float> logits;
  for (const token_id id : ids) logits.push_back(row[static_cast<std::size_t>(id)]);
  std::ranges::sort(logits, [](float a, float b) { return a > b; });
  return logits;
}

/// Whether an outcome holds all that one holds and nothing that another does not hold, but for ties.
inline bool lies_between(const outcome& less, const outcome& some, const outcome& more, const std::vector<float>& row) {
  const auto order = [](float a, float b) { return a > b; };
  return std::ranges::includes(logits_of(some.ids, row), logits_of(less.ids, row), order) &&
         std::ranges::includes(logits_of(more.ids, row), logits_of(some.ids, row), order);
}

/// "": the same. "ties": the same but for which of equal tokens are left. "other": neither.
inline std::string compare(const outcome& theirs, const outcome& ours, const std::vector<float>& row) {
  if (theirs.ids == ours.ids) return near(theirs.probabilities, ours.probabilities) ? "" : "other";
  if (logits_of(theirs.ids, row) != logits_of(ours.ids, row)) return "other";
  auto a = theirs.probabilities, b = ours.probabilities;
  std::ranges::sort(a);
  std::ranges::sort(b);
  return near(a, b) ? "ties" : "other";
}

}  // namespace peer
