// SPDX-License-Identifier: MIT
#include "peer/comparison.hpp"
#include "peer/llama_library.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <decant/chain/preset_llama_cpp.hpp>
#include <decant/processors/dry.hpp>
#include <decant/processors/dynamic_temperature.hpp>
#include <decant/processors/frequency_penalty.hpp>
#include <decant/processors/logit_bias.hpp>
#include <decant/processors/min_p.hpp>
#include <decant/processors/presence_penalty.hpp>
#include <decant/processors/repetition_penalty.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/processors/top_k.hpp>
#include <decant/processors/top_n_sigma.hpp>
#include <decant/processors/top_p.hpp>
#include <decant/processors/typical.hpp>
#include <decant/processors/xtc.hpp>
#include <decant/samplers/adaptive_p.hpp>
#include <decant/samplers/mirostat.hpp>
#include <decant/samplers/mirostat_v1.hpp>

#include "support/catch.hpp"

// Every sampler that llama.cpp has, on 2,000 rows each, against the policy of decant: the same survivors, and the same
// probabilities to 1e-5, but for what tests/peer/differences.txt lists.

namespace llama_cpp_test {

using decant::any_processor;
using peer::differences;
using peer::outcome;
using peer::row_kind;
using peer::token_id;

/// One sampler of theirs, one policy of ours, and two policies of ours between whose outcomes theirs may lie where a
/// token stands at the border.
struct pair {
  peer::llama_sampler* theirs;
  any_processor ours;
  std::vector<any_processor> bounds{};  ///< keeps less, keeps more
  std::string reading{};                ///< the name of a difference, and what would be the same as theirs
  std::vector<any_processor> as_theirs{};
};

struct pair_of_row {
  std::size_t index;
  const std::vector<float>& row;
};

/// `make(pair_of_row)` gives the pair; `skip` tells kinds of rows that the peer cannot take.
template <class F>
void check_pairs(const std::string& sampler, F make, const std::set<row_kind>& skip = {}) {
  differences found(sampler);
  for (std::size_t index = 0; index < peer::row_count; ++index) {
    if (skip.contains(peer::kind_of(index))) continue;
    const auto row = peer::row_of(index);
    const auto text = peer::text_of(index, row.size());
    pair both = make(pair_of_row{index, row});
    std::vector<peer::sampler> samplers;
    samplers.emplace_back(both.theirs);
    for (const token_id token : text) samplers[0].accept(token);
    const outcome theirs = peer::run_peer(samplers, row), ours = peer::run_decant(both.ours, row, text);
    std::string verdict = peer::compare(theirs, ours, row);
    if (verdict == "other" && both.bounds.size() == 2) {
      const outcome less = peer::run_decant(both.bounds[0], row, text),
                    more = peer::run_decant(both.bounds[1], row, text);
      if (peer::lies_between(less, theirs, more, row) && peer::lies_between(less, ours, more, row)) {
        verdict = "border";
      }
    }
    if (verdict == "other" && both.as_theirs.size() == 1 &&
        peer::compare(theirs, peer::run_decant(both.as_theirs[0], row, text), row).empty()) {
      verdict = both.reading;
    }
    if (verdict.empty()) continue;
    INFO(sampler << ", row " << index << " of " << row.size() << " tokens, " << decant::describe(both.ours) << ": "
                 << theirs.ids.size() << " left by llama.cpp, " << ours.ids.size() << " by decant");
    CHECK(verdict != "other");
    found.note(verdict);
  }
  found.check_against_list();
}

/// The value for a row, out of a list; as the float that llama.cpp takes.
float pick(std::size_t index, std::initializer_list<float> values) {
  return values.begin()[(index / peer::row_kinds) % values.size()];
}

const peer::llama_library& llama() { return *peer::llama_library::get(); }

TEST_CASE("differences.txt names samplers and reasons") {
  const std::set<std::string> samplers{"top_k",       "top_p",      "min_p",    "typical",   "top_n_sigma", "xtc",
                                       "temp",        "dry",        "temp_ext", "penalties", "logit_bias",  "mirostat",
                                       "mirostat_v1", "adaptive_p", "greedy",   "chain"};
  const auto known = peer::known_differences();
  CHECK_FALSE(known.empty());
  for (const auto& [name, reason] : known) {
    INFO(name);
    CHECK(samplers.contains(name.substr(0, name.find('.'))));
    CHECK(reason.size() > 20);
  }
}

TEST_CASE("top_k leaves what llama.cpp's leaves") {
  SKIP_WITHOUT_LLAMA();
  check_pairs("top_k", [](const pair_of_row& at) {
    const auto k = static_cast<std::int32_t>(pick(at.index, {-1, 0, 1, 2, 5, 40, 127, 128, 129, 1000, 100000}));
    return pair{llama().init_top_k(k), decant::top_k(k)};
  });
}

TEST_CASE("top_p leaves what llama.cpp's leaves") {
  SKIP_WITHOUT_LLAMA();
  check_pairs("top_p", [](const pair_of_row& at) {
    const float p = pick(at.index, {0, 0.1F, 0.5F, 0.75F, 0.9F, 0.95F, 0.999F, 1});
    const std::size_t keep = at.index % 3 == 0 ? 3 : 1;
    const double exact = static_cast<double>(p);
    return pair{llama().init_top_p(p, keep),
                decant::top_p(exact, keep),
                {decant::top_p(exact * (1 - 1e-4), keep), decant::top_p(exact * (1 + 1e-4), keep)}};
  });
}

TEST_CASE("min_p leaves what llama.cpp's leaves") {
  SKIP_WITHOUT_LLAMA();
  check_pairs("min_p", [](const pair_of_row& at) {
    const float p = pick(at.index, {0, 0.001F, 0.02F, 0.05F, 0.3F, 0.5F, 1});
    const std::size_t keep = at.index % 3 == 0 ? 3 : 1;
    const double exact = static_cast<double>(p);
    return pair{llama().init_min_p(p, keep),
                decant::min_p(exact, keep),
                {decant::min_p(std::min(1.0, exact * (1 + 1e-5)), keep), decant::min_p(exact * (1 - 1e-5), keep)}};
  });
}

TEST_CASE("typical leaves what llama.cpp's leaves") {
  SKIP_WITHOUT_LLAMA();
  // A token of probability 0 makes llama.cpp's entropy NaN, and what it sorts by.
  check_pairs("typical",
              [](const pair_of_row& at) {
                const float p = pick(at.index, {0, 0.1F, 0.5F, 0.75F, 0.9F, 0.95F, 0.999F, 1});
                const std::size_t keep = at.index % 3 == 0 ? 3 : 1;
                const double exact = static_cast<double>(p);
                return pair{llama().init_typical(p, keep),
                            decant::typical(exact, keep),
                            {decant::typical(exact * (1 - 1e-4), keep), decant::typical(exact * (1 + 1e-4), keep)}};
              },
              {row_kind::partly_gone});
}

TEST_CASE("top_n_sigma leaves what llama.cpp's leaves") {
  SKIP_WITHOUT_LLAMA();
  check_pairs("top_n_sigma", [](const pair_of_row& at) {
    const float n = pick(at.index, {0.1F, 0.5F, 1, 1.5F, 2, 3});
    const double exact = static_cast<double>(n);
    return pair{llama().init_top_n_sigma(n),
                decant::top_n_sigma(exact),
                {decant::top_n_sigma(exact * (1 - 1e-5)), decant::top_n_sigma(exact * (1 + 1e-5))}};
  });
}

TEST_CASE("xtc leaves what llama.cpp's leaves") {
  SKIP_WITHOUT_LLAMA();
  check_pairs("xtc", [](const pair_of_row& at) {
    const float probability = at.index % 7 == 0 ? 0 : 1;
    const float threshold = pick(at.index, {0.01F, 0.05F, 0.1F, 0.2F, 0.5F, 0.6F});
    const std::size_t keep = at.index % 3 == 0 ? 3 : 1;
    const double exact = static_cast<double>(threshold), chance = static_cast<double>(probability);
    return pair{llama().init_xtc(probability, threshold, keep, 0),
                decant::xtc(chance, exact, {}, keep),
                {decant::xtc(chance, exact * (1 - 1e-5), {}, keep), decant::xtc(chance, exact * (1 + 1e-5), {}, keep)}};
  });
}

TEST_CASE("temperature leaves what llama.cpp's leaves") {
  SKIP_WITHOUT_LLAMA();
  check_pairs("temp", [](const pair_of_row& at) {
    const float t = pick(at.index, {0, 0.1F, 0.7F, 1, 1.5F, 10});
    return pair{llama().init_temp(t), decant::temperature(static_cast<double>(t))};
  });
}

TEST_CASE("dynamic_temperature leaves what llama.cpp's temp_ext leaves") {
  SKIP_WITHOUT_LLAMA();
  check_pairs("temp_ext", [](const pair_of_row& at) {
    const float t = pick(at.index, {0.7F, 1, 1.5F, 3}), range = pick(at.index / 2, {0.1F, 0.5F, 0.6F});
    const float exponent = pick(at.index / 3, {1, 2, 0.5F});
    const double middle = static_cast<double>(t), reach = static_cast<double>(range);
    const double low = std::max(0.0, middle - reach), high = middle + reach, bend = static_cast<double>(exponent);
    const any_processor counting_gone = [=](decant::candidates& c, const decant::step_context& context) {
      const double share = c.entropy() / std::log(static_cast<double>(c.vocabulary_size()));
      decant::temperature(low + (high - low) * std::pow(share, bend))(c, context);
    };
    return pair{llama().init_temp_ext(t, range, exponent),
                decant::dynamic_temperature(low, high, bend),
                {},
                "gone",
                {counting_gone}};
  });
}

TEST_CASE("the penalties leave what llama.cpp's leave") {
  SKIP_WITHOUT_LLAMA();
  check_pairs("penalties", [](const pair_of_row& at) {
    const float repeat = pick(at.index, {1, 1.1F, 0.8F, 2}), frequency = pick(at.index / 2, {0, 0.3F, -0.2F});
    const float presence = pick(at.index / 3, {0, 0.5F, -0.4F});
    const auto last_n = static_cast<std::int32_t>(pick(at.index / 5, {1, 5, 64, 200}));
    const decant::history_scope scope{.window = static_cast<std::size_t>(last_n), .prompt = true};
    return pair{llama().init_penalties(static_cast<std::int32_t>(at.row.size()), last_n, repeat, frequency, presence),
                decant::dynamic_chain{decant::repetition_penalty(static_cast<double>(repeat), scope),
                                      decant::frequency_penalty(static_cast<double>(frequency), scope),
                                      decant::presence_penalty(static_cast<double>(presence), scope)}};
  });
}

TEST_CASE("dry without breakers leaves what llama.cpp's leaves") {
  SKIP_WITHOUT_LLAMA();
  // Breakers would need a vocabulary of llama.cpp's, and so a model.
  check_pairs("dry", [](const pair_of_row& at) {
    const float multiplier = pick(at.index, {0, 0.5F, 0.8F, 2}), base = pick(at.index / 2, {1, 1.2F, 1.75F});
    const auto allowed = static_cast<std::int32_t>(pick(at.index / 3, {1, 2, 4}));
    const auto last_n = static_cast<std::int32_t>(pick(at.index / 5, {3, 20, 64, 200}));
    return pair{llama().init_dry(nullptr, multiplier, base, allowed, last_n, nullptr, 0),
                decant::dry({.multiplier = static_cast<double>(multiplier),
                             .base = static_cast<double>(base),
                             .allowed_length = static_cast<std::size_t>(allowed),
                             .range = static_cast<std::size_t>(last_n)})};
  });
}

TEST_CASE("logit_bias leaves what llama.cpp's leaves") {
  SKIP_WITHOUT_LLAMA();
  check_pairs("logit_bias", [](const pair_of_row& at) {
    const auto size = static_cast<token_id>(at.row.size());
    std::vector<peer::bias> theirs;
    std::vector<decant::token_bias> ours;
    for (const float value : {1.5F, -2.0F, -INFINITY, 0.25F}) {
      const token_id id = static_cast<token_id>(theirs.size() * 3 + at.index % 5) % size;
      if (!std::isfinite(value) && size < 3) continue;
      theirs.push_back({id, value});  // also twice on one token
      ours.push_back({id, static_cast<double>(value)});
    }
    return pair{llama().init_logit_bias(size, static_cast<std::int32_t>(theirs.size()), theirs.data()),
                decant::logit_bias(ours)};
  });
}

TEST_CASE("greedy takes what llama.cpp's takes") {
  SKIP_WITHOUT_LLAMA();
  for (std::size_t index = 0; index < peer::row_count; ++index) {
    const auto row = peer::row_of(index);
    std::vector<peer::sampler> samplers;
    samplers.emplace_back(llama().init_greedy());
    token_id chosen = -1;
    peer::run_peer(samplers, row, &chosen);
    any_processor ours = decant::top_k(1);
    INFO("row " << index);
    CHECK(peer::run_decant(ours, row, {}).ids == std::vector<token_id>{chosen});
  }
}

/// Samplers with feedback: both decode the same tokens, those that llama.cpp draws, over runs of ten rows.
template <class Start, class Classify>
void check_feedback(const std::string& sampler, Start start, Classify classify, const std::set<row_kind>& skip = {}) {
  differences found(sampler);
  for (std::size_t run = 0; run < peer::row_count / 10; ++run) {
    auto [theirs, ours] = start(run);
    std::vector<peer::sampler> samplers;
    samplers.emplace_back(theirs);
    for (std::size_t step = 0; step < 10; ++step) {
      const std::size_t index = run * 10 + step;
      if (skip.contains(peer::kind_of(index))) continue;
      const auto row = peer::row_of(index, peer::size_of(run * 10));
      token_id chosen = -1;
      const outcome left = peer::run_peer(samplers, row, &chosen);
      const auto narrowed_by = [&](auto policy) {
        any_processor narrow = [policy](decant::candidates& c, const decant::step_context& context) {
          policy.narrow(c, context);
        };
        return peer::run_decant(narrow, row, {});
      };
      const outcome mine = narrowed_by(ours);
      std::string verdict = peer::compare(left, mine, row);
      if (verdict == "other") verdict = classify(ours, row, left, narrowed_by);
      INFO(sampler << ", run " << run << ", step " << step << ", " << row.size() << " tokens: " << left.ids.size()
                   << " left by llama.cpp, " << mine.ids.size() << " by decant");
      CHECK(verdict != "other");
      if (!verdict.empty()) found.note(verdict);
      // Both learn from the same token, as llama.cpp has seen it: so one difference does not beget the next.
      const auto place = static_cast<std::size_t>(std::ranges::find(left.ids, chosen) - left.ids.begin());
      decant::candidates c;
      c.bind(std::span<const float>(row));
      ours.accept(chosen, {c.log_probability(chosen), std::log(left.probabilities[place])});
      samplers[0].accept(chosen);
    }
  }
  found.check_against_list();
}

constexpr auto observed = decant::mirostat_surprise::llama_cpp;

/// Whether llama.cpp's outcome lies between those of mirostats that stand a little lower and a little higher.
constexpr auto border_of_mu = [](const auto& ours, const std::vector<float>& row, const outcome& left,
                                 const auto& narrowed_by) -> std::string {
  using policy = std::remove_cvref_t<decltype(ours)>;
  const double mu = ours.mu();
  const outcome less = narrowed_by(policy(std::max(0.0, mu / 2 * (1 - 1e-5) - 1e-5), 0.1, observed));
  const outcome more = narrowed_by(policy(std::max(0.0, mu / 2 * (1 + 1e-5) + 1e-5), 0.1, observed));
  const outcome mine = narrowed_by(ours);
  return peer::lies_between(less, left, more, row) && peer::lies_between(less, mine, more, row) ? "border" : "other";
};

TEST_CASE("mirostat leaves what llama.cpp's mirostat 2 leaves, and learns the same") {
  SKIP_WITHOUT_LLAMA();
  check_feedback(
      "mirostat",
      [](std::size_t run) {
        const float tau = pick(run, {1, 2, 3, 5}), eta = pick(run / 2, {0.1F, 0.3F});
        return std::pair(llama().init_mirostat_v2(static_cast<std::uint32_t>(run), tau, eta),
                         decant::mirostat(static_cast<double>(tau), static_cast<double>(eta), observed));
      },
      border_of_mu);
}

TEST_CASE("mirostat_v1 leaves what llama.cpp's mirostat 1 leaves, and learns the same") {
  SKIP_WITHOUT_LLAMA();
  check_feedback(
      "mirostat_v1",
      [](std::size_t run) {
        const float tau = pick(run, {1, 2, 3}), eta = pick(run / 2, {0.1F, 0.3F});
        return std::pair(llama().init_mirostat(static_cast<std::int32_t>(peer::size_of(run * 10)),
                                               static_cast<std::uint32_t>(run), tau, eta, 100),
                         decant::mirostat_v1(static_cast<double>(tau), static_cast<double>(eta), observed));
      },
      [](const auto& ours, const std::vector<float>& row, const outcome& left, const auto& narrowed_by) -> std::string {
        const bool flat = std::ranges::all_of(row, [&](float logit) { return logit == row[0]; });
        if (flat && left.ids.size() == 1) return "flat";
        const std::ptrdiff_t gone = std::ranges::count(row, decant::gone);
        const bool gone_in_fit = gone > 0 && std::ssize(row) - gone < 100;
        if (gone_in_fit && left.ids.size() == 1) return "gone";
        decant::candidates c;
        c.bind(std::span<const float>(row));
        const double s = decant::detail::zipf_exponent(c.descending(100)), e = s - 1;
        const double n = static_cast<double>(row.size());
        const double count = std::pow(e * std::exp2(ours.mu()) / (1 - std::pow(n, -e)), 1 / s);
        if (count >= 0x1p31 && left.ids.size() == 1) return "overflow";
        return border_of_mu(ours, row, left, narrowed_by);
      });
}

TEST_CASE("adaptive_p leaves what llama.cpp's leaves, and learns the same") {
  SKIP_WITHOUT_LLAMA();
  check_feedback(
      "adaptive_p",
      [](std::size_t run) {
        const float target = pick(run, {0.1F, 0.3F, 0.55F, 0.9F}), decay = pick(run / 2, {0.9F, 0.5F, 0});
        return std::pair(llama().init_adaptive_p(target, decay, static_cast<std::uint32_t>(run)),
                         decant::adaptive_p(static_cast<double>(target), static_cast<double>(decay)));
      },
      [](const auto&, const auto&, const auto&, const auto&) -> std::string { return "other"; });
}

TEST_CASE("the llama_cpp preset leaves what llama.cpp's chain of the same parameters leaves") {
  SKIP_WITHOUT_LLAMA();
  differences found("chain");
  for (std::size_t index = 0; index < peer::row_count; ++index) {
    // Ties may be cut differently at one stage, and rounding at another: see the samplers' own tests.
    if (peer::kind_of(index) == row_kind::tied || peer::kind_of(index) == row_kind::flat) continue;
    const auto row = peer::row_of(index);
    const auto text = peer::text_of(index, row.size());
    const std::size_t block = index / peer::row_kinds;
    // Exact in float, so that both read the same numbers.
    decant::sampling_params p{.temperature = 0.5 + 0.25 * static_cast<double>(block % 4),
                              .top_k = static_cast<std::int64_t>(block % 5 * 20),
                              .top_p = block % 3 == 0 ? 0.875 : 1,
                              .min_p = block % 2 == 0 ? 0.03125 : 0};
    p.repetition_penalty = 1.125;
    p.presence_penalty = 0.25;
    p.dry_multiplier = 0.5;
    p.top_n_sigma = block % 4 == 0 ? 2.5 : 0;
    p.xtc_probability = block % 6 == 0 ? 1 : 0;
    p.bytes = {};
    decant::presets::llama_cpp ours(p);

    const auto number = [](const auto& parameter) { return static_cast<float>(*parameter); };
    std::vector<peer::sampler> theirs;
    theirs.emplace_back(llama().init_penalties(static_cast<std::int32_t>(row.size()), 64, number(p.repetition_penalty),
                                               0, number(p.presence_penalty)));
    theirs.emplace_back(llama().init_dry(nullptr, number(p.dry_multiplier), 1.75F, 2, 64, nullptr, 0));
    theirs.emplace_back(llama().init_top_n_sigma(number(p.top_n_sigma)));
    theirs.emplace_back(llama().init_top_k(static_cast<std::int32_t>(*p.top_k)));
    theirs.emplace_back(llama().init_typical(1, 0));
    theirs.emplace_back(llama().init_top_p(number(p.top_p), 0));
    theirs.emplace_back(llama().init_min_p(number(p.min_p), 0));
    theirs.emplace_back(llama().init_xtc(number(p.xtc_probability), 0.1F, 0, 0));
    theirs.emplace_back(llama().init_temp_ext(number(p.temperature), 0, 1));
    for (peer::sampler& each : theirs) {
      for (const token_id token : text) each.accept(token);
    }
    any_processor chain = ours.processor();
    const outcome left = peer::run_peer(theirs, row), mine = peer::run_decant(chain, row, text);
    const std::string verdict = peer::compare(left, mine, row);
    INFO("row " << index << " of " << row.size() << " tokens, " << ours.describe() << ": " << left.ids.size()
                << " left by llama.cpp, " << mine.ids.size() << " by decant");
    CHECK(verdict.empty());
    if (!verdict.empty()) found.note(verdict);
  }
  found.check_against_list();
}

}  // namespace llama_cpp_test
