// SPDX-License-Identifier: MIT
#include <decant/testing/check.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <decant/chain.hpp>
#include <decant/processors.hpp>
#include <decant/samplers.hpp>
#include <decant/testing/counting_allocator.hpp>
#include <decant/testing/reference_law.hpp>

// Controls: a check is worth what it catches. Every property has a policy that breaks it, and a policy that does not.

namespace check_tests {

using namespace decant;
using namespace decant::testing;

bool reports(const check_report& report, const std::string& property) {
  return std::ranges::any_of(report.failures, [&](const std::string& f) { return f.starts_with(property + ":"); });
}

/// Caught, under the right name.
#define CHECK_REPORTS(report, property) \
  do {                                  \
    const check_report caught = report; \
    INFO(caught.text());                \
    CHECK(!caught.ok);                  \
    CHECK(reports(caught, property));   \
  } while (false)

#define CHECK_PASSES(report)           \
  do {                                 \
    const check_report clean = report; \
    INFO(clean.text());                \
    CHECK(clean.ok);                   \
    CHECK(clean.failures.empty());     \
    CHECK(clean.text() == "ok");       \
  } while (false)

/// A sampler made of a function, without a law.
auto from_row = [](candidates& row, const step_context& context) { return row.draw(context.draws); };

// ---- policies that are right

/// Temperature that moves with the surprise of what is accepted: true state, undone exactly because it is kept.
struct tracking_temperature {
  std::vector<double> levels{1.0};

  void operator()(candidates& row, const step_context&) const { row.affine(1 / levels.back()); }
  void accept(token_id token, const step_record& record) {
    levels.push_back(levels.back() * 0.9 + 0.1 * (1 - record.log_prob_before) + 0.01 * token);
  }
  void rollback(std::size_t count) { levels.resize(levels.size() - count); }
  void reset() { levels.resize(1); }
};

TEST_CASE("right policies pass every check", "[testing]") {
  CHECK_PASSES(check_sampler(multinomial{}, {.shift_invariant = true, .discrete = true, .allocations = allocations}));
  CHECK_PASSES(check_sampler(greedy{}, {.shift_invariant = true, .discrete = true, .allocations = allocations}));
  CHECK_PASSES(check_processor(top_k(5), {.shift_invariant = true, .allocations = allocations}));
  CHECK_PASSES(check_processor(tracking_temperature{}));
}

TEST_CASE("lambdas are checked, generic ones too", "[testing]") {
  CHECK_PASSES(
      check_processor([](auto& row, const auto&) { row.keep_above(row.max() - 2); }, {.shift_invariant = true}));
  CHECK_PASSES(check_processor([](candidates& row, const step_context&) { row.ban(0); },
                               {.permutation = false, .may_empty = true}));
  CHECK_PASSES(check_sampler(from_row));
}

TEST_CASE("chains and erased policies are checked like any other", "[testing]") {
  CHECK_PASSES(check_processor(chain(top_k(20), temperature(0.7)), {.shift_invariant = true}));
  CHECK_PASSES(check_processor(dynamic_chain{top_k(20), tracking_temperature{}}));
  CHECK_PASSES(check_processor(any_processor(min_p(0.1)), {.shift_invariant = true}));
  CHECK_PASSES(check_sampler(any_sampler(multinomial{}), {.discrete = true}));
  CHECK_PASSES(check_sampler(any_sampler(from_row)));
}

TEST_CASE("a sampler without narrow can be given its law", "[testing]") {
  const auto softmax = [](std::span<const float> row) { return reference::exact_law(row); };
  CHECK_PASSES(check_sampler(from_row, {.expected_law = softmax}));
  const auto squared = [](std::span<const float> row) {
    return reference::exact_law(reference::temperature(reference::widened(row), 0.8));
  };
  CHECK_REPORTS(check_sampler(from_row, {.expected_law = squared}), "law");
}

TEST_CASE("the rows of the user are checked too", "[testing]") {
  const auto dislikes_seven = [](candidates& row, const step_context&) {
    if (row.vocabulary_size() == 7) row.affine(1, static_cast<double>(bfloat16{0x7F7F}.bits) * 1e300);
    if (row.vocabulary_size() == 7) row.set(3, std::bit_cast<float>(0x7FC00000U));
  };
  CHECK_PASSES(check_processor(dislikes_seven, {.permutation = false}));
  CHECK_REPORTS(check_processor(dislikes_seven, {.permutation = false, .rows = {{"seven", {1, 2, 3, 4, 5, 6, 7}}}}),
                "finite");
}

TEST_CASE("policies that name ids can ask for rows that have them", "[testing]") {
  const auto bans_forty = [](candidates& row, const step_context&) { row.ban(40); };
  CHECK_REPORTS(check_processor(bans_forty, {.permutation = false}), "exception");
  CHECK_PASSES(check_processor(bans_forty, {.permutation = false, .min_vocabulary = 41}));
}

// ---- samplers that are wrong

struct biased {
  token_id operator()(candidates& row, const step_context& context) const {
    return context.draws.chance(0.1, purpose::user) ? row.argmax() : row.draw(context.draws);
  }
  void narrow(candidates&, const step_context&) const {}
};

TEST_CASE("a biased sampler is caught", "[testing]") {
  CHECK_REPORTS(check_sampler(biased{}), "law");
  CHECK_REPORTS(check_sampler(biased{}, {.discrete = true}), "exact law");
}

TEST_CASE("a sampler that never draws the last token is caught", "[testing]") {
  const auto short_sighted = [](candidates& row, const step_context& context) {
    const token_id token = row.draw(context.draws);
    return token + 1 == static_cast<token_id>(row.vocabulary_size()) && token > 0 ? row.argmax() : token;
  };
  CHECK_REPORTS(check_sampler(short_sighted,
                              {.expected_law = [](std::span<const float> row) { return reference::exact_law(row); }}),
                "law");
}

TEST_CASE("a sampler that returns a gone token is caught", "[testing]") {
  const auto raises_the_dead = [](candidates& row, const step_context&) {
    return row.status() == row_status::ok ? token_id{0} : no_token;
  };
  const check_report report = check_sampler(raises_the_dead, {.permutation = false});
  CHECK(!report.ok);
  CHECK(std::ranges::count_if(report.failures, [](const std::string& f) {
          return f.starts_with("gone: row 'some gone' (66 tokens), seed 1: token 0 was drawn");
        }) == 1);
}

TEST_CASE("a sampler that returns an id outside is caught", "[testing]") {
  const auto one_too_far = [](candidates& row, const step_context& context) {
    return row.status() != row_status::ok             ? no_token
           : context.draws.chance(0.2, purpose::user) ? static_cast<token_id>(row.vocabulary_size())
                                                      : row.argmax();
  };
  CHECK_REPORTS(check_sampler(one_too_far), "outside");
}

TEST_CASE("a sampler that gives up is caught", "[testing]") {
  const auto gives_up = [](candidates& row, const step_context&) { return row.size() > 60 ? no_token : row.argmax(); };
  CHECK_REPORTS(check_sampler(gives_up), "no token");
}

TEST_CASE("a sampler that makes up tokens on bad rows is caught", "[testing]") {
  const auto token_zero = [](candidates& row, const step_context& context) {
    return std::max(0, row.draw(context.draws));
  };
  CHECK_REPORTS(check_sampler(token_zero), "bad row");
}

/// Depends on how many rows it has seen: what noise keyed by the row's place in a batch does.
struct row_counter {
  std::size_t rows = 0;
  token_id operator()(candidates& row, const step_context& context) { return row.draw(context.draws.child(rows++)); }
  void narrow(candidates&, const step_context&) const {}
};

TEST_CASE("a sampler that depends on the row's index is caught", "[testing]") {
  CHECK_REPORTS(check_sampler(row_counter{}), "replay");
  CHECK_REPORTS(check_sampler(row_counter{}), "state");
}

TEST_CASE("a sampler whose copies share state is caught", "[testing]") {
  const auto shared = [drawn = std::make_shared<std::uint64_t>(0)](candidates& row, const step_context& context) {
    return row.draw(context.draws.child(++*drawn / 64));
  };
  CHECK(!check_sampler(shared).ok);
}

TEST_CASE("a sampler that knows ids is caught by renaming", "[testing]") {
  const auto likes_low = [](candidates& row, const step_context& context) {
    return std::min(row.draw(context.draws, purpose::sample, 0), row.draw(context.draws, purpose::sample, 1));
  };
  CHECK_REPORTS(check_sampler(likes_low), "permutation");
  CHECK_PASSES(check_sampler(likes_low, {.permutation = false}));
}

struct narrows_too_late {
  token_id operator()(candidates& row, const step_context& context) const { return row.draw(context.draws); }
  void narrow(candidates& row, const step_context&) const { row.keep_largest(3); }
};

TEST_CASE("a sampler that does not draw from what narrow leaves is caught", "[testing]") {
  CHECK_REPORTS(check_sampler(narrows_too_late{}), "narrow");
  CHECK_REPORTS(check_sampler(narrows_too_late{}), "law");
}

struct asks_for_nothing {
  token_id operator()(candidates& row, const step_context& context) const {
    static_cast<void>(context.draws.chance(0.5, purpose::user));
    return row.draw(context.draws);
  }
  void narrow(candidates&, const step_context&) const {}
};

TEST_CASE("a random number for one token is caught", "[testing]") {
  CHECK_REPORTS(check_sampler(asks_for_nothing{}, {.discrete = true}), "one token");
}

TEST_CASE("a sampler that allocates is caught", "[testing]") {
  const std::size_t before = allocations();
  const auto sink = std::make_unique<int>(1);
  if (allocations() == before) return;  // no unit of this program counts
  const auto wasteful = [](candidates& row, const step_context& context) {
    const std::vector<int> waste(row.vocabulary_size(), 1);
    return waste[0] > 0 ? row.draw(context.draws) : no_token;
  };
  CHECK_REPORTS(check_sampler(wasteful, {.allocations = allocations}), "allocation");
  CHECK_PASSES(check_sampler(wasteful));
}

// ---- samplers with state

struct counting_sampler {
  std::vector<token_id> accepted{};
  token_id operator()(candidates& row, const step_context& context) const {
    return narrow(row, context), row.draw(context.draws);
  }
  void narrow(candidates& row, const step_context&) const {
    double t = 1;
    for (const token_id token : accepted) t = 0.9 * t + 0.01 * (token + 1);
    row.affine(1 / t);
  }
  void accept(token_id token, const step_record&) { accepted.push_back(token); }
  void rollback(std::size_t count) { accepted.resize(accepted.size() - count); }
  void reset() { accepted.clear(); }
};

struct forgets_only_one : counting_sampler {
  void rollback(std::size_t) { accepted.pop_back(); }
};

struct ignores_what_it_did_not_draw : counting_sampler {
  void rollback(std::size_t count) {
    for (std::size_t i = 0; i < count && !accepted.empty() && accepted.back() != 11; ++i) accepted.pop_back();
  }
};

struct drifts {
  double t = 1;
  void operator()(candidates& row, const step_context&) const { row.affine(1 / t); }
  // Dividing by what was multiplied is the identity on paper only.
  void accept(token_id token, const step_record&) { t *= 1.1 + 0.1 * token; }
  void rollback(std::size_t count) {
    for (; count > 0; --count) t /= 1.1;
  }
  void reset() { t = 1; }
};

struct never_resets : counting_sampler {
  void reset() {}
};

TEST_CASE("state is undone exactly, or it is caught", "[testing]") {
  CHECK_PASSES(check_sampler(counting_sampler{}));
  CHECK_REPORTS(check_sampler(forgets_only_one{}), "rollback");
  CHECK_REPORTS(check_sampler(ignores_what_it_did_not_draw{}), "rollback");
  CHECK_REPORTS(check_processor(drifts{}), "rollback");
  CHECK_REPORTS(check_sampler(never_resets{}), "reset");
}

TEST_CASE("a failure of state names how to repeat it", "[testing]") {
  const check_report report = check_sampler(forgets_only_one{});
  REQUIRE(!report.failures.empty());
  CHECK(report.failures[0].find("after 0 accepted tokens, 2 more and rollback(2) is not the identity") !=
        std::string::npos);
}

struct learns_while_drawing : counting_sampler {
  token_id operator()(candidates& row, const step_context& context) {
    const token_id token = counting_sampler::operator()(row, context);
    accepted.push_back(token);
    return token;
  }
};

TEST_CASE("a sampler that accepts by itself, on bad rows too, is caught", "[testing]") {
  CHECK_REPORTS(check_sampler(learns_while_drawing{}, {.draws = 200}), "state");
}

// ---- processors that are wrong

struct sloppy_off {
  double t;
  void operator()(candidates& row, const step_context&) const {
    row.transform([&](token_id, float z) { return (z + 0.1F) / static_cast<float>(t) - 0.1F; });
  }
  [[nodiscard]] bool off() const { return t == 1; }
};

TEST_CASE("an off value that is not the identity is caught", "[testing]") {
  CHECK_REPORTS(check_processor(sloppy_off{1}), "off");
  CHECK(!reports(check_processor(sloppy_off{2}), "off"));
}

TEST_CASE("a processor that empties a good row is caught, unless it may", "[testing]") {
  const auto bans_all = [](candidates& row, const step_context&) {
    for (std::size_t i = 0; i < row.vocabulary_size(); ++i) row.ban(static_cast<token_id>(i));
  };
  CHECK_REPORTS(check_processor(bans_all), "empty");
  CHECK_PASSES(check_processor(bans_all, {.may_empty = true}));
}

TEST_CASE("a processor that revives tokens is caught, unless it may", "[testing]") {
  const auto revives = [](candidates& row, const step_context&) {
    row.rewrite([](token_id, float z) { return is_gone(z) || math::is_nan(z) ? -4.0F : std::min(z, 1e4F); });
  };
  CHECK_REPORTS(check_processor(revives), "gone");
  CHECK_REPORTS(check_processor(revives), "bad row");
  CHECK_PASSES(check_processor(revives, {.may_revive = true}));
}

TEST_CASE("a processor that makes a row not finite is caught", "[testing]") {
  const auto divides_by_zero = [](candidates& row, const step_context&) {
    row.transform([](token_id, float z) { return z == 0.25F ? std::bit_cast<float>(0x7FC00000U) : z; });
  };
  CHECK_REPORTS(check_processor(divides_by_zero), "finite");
}

TEST_CASE("a processor that depends on where the zero of the logits is says so, or is caught", "[testing]") {
  CHECK_PASSES(check_processor(repetition_penalty(1.5)));
  CHECK_REPORTS(check_processor(repetition_penalty(1.5), {.shift_invariant = true}), "shift");
}

TEST_CASE("a processor that answers to the form of the row is caught", "[testing]") {
  std::vector<const void*> seen;
  // Told apart here by a counter; in the wild, by a branch for 16-bit rows.
  const auto moody = [calls = 0](candidates& row, const step_context&) mutable {
    row.affine(++calls % 2 == 0 ? 1 : 2);
  };
  CHECK_REPORTS(check_processor(moody), "replay");
}

TEST_CASE("a processor that throws is reported, and its row comes back", "[testing]") {
  const auto throws = [](candidates& row, const step_context&) {
    row.set(0, 99);
    if (row.vocabulary_size() == 48) throw std::runtime_error("cannot do this one");
  };
  const check_report report = check_processor(throws, {.permutation = false});
  CHECK(report.text() == "exception: row 'tied' (48 tokens): cannot do this one");
}

TEST_CASE("a report lists its failures, each property once a row", "[testing]") {
  check_report report;
  CHECK(report.ok);
  CHECK(report.text() == "ok");
  report.fail("law", "row 'flat' (4 tokens), seed 1", "wrong");
  report.fail("law", "row 'flat' (4 tokens), seed 2", "wrong again");
  report.fail("law", "row 'peaked' (4 tokens), seed 1", "wrong");
  report.fail("state", "", "moved");
  CHECK(!report.ok);
  CHECK(report.text() ==
        "law: row 'flat' (4 tokens), seed 1: wrong\nlaw: row 'peaked' (4 tokens), seed 1: wrong\nstate: moved");
}

}  // namespace check_tests
