// SPDX-License-Identifier: MIT
#include <decant/search/beam_stream.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "search/models.hpp"
#include "search/naive_beam.hpp"

namespace beam_stream_test {

using namespace search_test;
using decant::beam_options;
using decant::beam_stream;

/// A model that writes down what is asked of it, and pads its rows.
class recording_model {
 public:
  explicit recording_model(row_function rows) : model_(std::move(rows)) {}

  std::size_t start() { return note("start", model_.start()); }
  std::size_t fork(std::size_t sequence) { return note("fork", model_.fork(sequence)); }
  void drop(std::size_t sequence) {
    note("drop", sequence);
    model_.drop(sequence);
  }
  void evaluate(std::span<const decant::batch_item> items) {
    note("evaluate", items.size());
    model_.evaluate(items);
    padded_.clear();
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto row = model_.row(i);
      padded_.emplace_back(row.begin(), row.end());
      padded_.back().push_back(1e9F);  // no token
    }
  }
  std::span<const float> row(std::size_t i) const { return padded_[i]; }
  void truncate(std::size_t sequence, std::size_t count) { model_.truncate(sequence, count); }
  std::size_t size(std::size_t sequence) const { return model_.size(sequence); }
  std::size_t vocabulary_size() const { return padded_.empty() ? 0 : padded_.front().size() - 1; }
  std::size_t sequence_length() const { return 12; }

  [[nodiscard]] std::size_t count(const std::string& what) const {
    return static_cast<std::size_t>(std::ranges::count(calls, what, &std::pair<std::string, std::size_t>::first));
  }

  std::vector<std::pair<std::string, std::size_t>> calls{};

 private:
  std::size_t note(const std::string& what, std::size_t number) {
    calls.emplace_back(what, number);
    return number;
  }

  any_model model_;
  std::vector<std::vector<float>> padded_{};
};

static_assert(decant::BatchModel<recording_model>);

TEST_CASE("every step is one pass, and every sequence that began ends", "[search][beam_stream]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const naive_search naive{random_rows(6, seed), {1, 2}, {0}, 6};
    recording_model model(naive.rows);
    {
      beam_stream<recording_model> search(model, naive.prompt,
                                          {.width = 3, .n_best = 3, .max_new_tokens = 6, .end_tokens = {0}});
      while (search.next()) {
      }
      const auto found = search.result();
      CHECK(model.count("evaluate") == found.steps);
      const auto expected = naive.beam(3, naive_search::stop::heuristic);
      REQUIRE(found.hypotheses.size() == expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        if (!is_tied(expected, i)) CHECK(found.hypotheses[i].tokens == expected[i].tokens);
      }
      CHECK_FALSE(search.next());
    }
    CHECK(model.count("start") == 1);
    CHECK(model.count("start") + model.count("fork") == model.count("drop"));
    CHECK(std::ranges::none_of(model.calls,
                               [](const auto& call) { return call.first == "evaluate" && call.second > 3; }));
  }
}

TEST_CASE("leaving a search ends its sequences", "[search][beam_stream]") {
  recording_model model(random_rows(6, 1, 0));
  {
    beam_stream<recording_model> search(model, ids{1}, {.width = 4, .max_new_tokens = 9});
    CHECK(search.next());
    CHECK(search.next());
  }
  CHECK(model.count("start") + model.count("fork") == model.count("drop"));
  {
    beam_stream<recording_model> search(model, ids{1}, {});
  }
  CHECK(model.count("start") == 1);  // it had not begun
}

TEST_CASE("the model's context length bounds the search", "[search][beam_stream]") {
  recording_model model(random_rows(4, 2, 0));
  beam_stream<recording_model> search(model, ids{1, 2, 3}, {.max_new_tokens = 100});
  while (search.next()) {
  }
  REQUIRE(search.result().best() != nullptr);
  CHECK(search.result().best()->tokens.size() == 9);
  CHECK(search.result().best()->finish == decant::finish_reason::context_full);
}

TEST_CASE("a request can be cancelled, and the others go on", "[search][beam_stream]") {
  recording_model model(random_rows(5, 3, 0));
  const ids one{1}, two{2, 3};
  const std::vector<decant::beam_request> requests{{one, {.width = 2, .n_best = 2, .max_new_tokens = 5}},
                                                   {two, {.width = 2, .n_best = 2, .max_new_tokens = 4}}};
  beam_stream<recording_model> search(model, requests);
  CHECK(search.size() == 2);
  CHECK(search.next());
  CHECK(search.next());
  const std::size_t before = model.count("drop");
  search.cancel(0);
  CHECK(search.search(0).ended());
  CHECK(model.count("drop") == before + 2);
  while (search.next()) {
  }
  const auto cancelled = search.result(0), whole = search.result(1);
  CHECK(cancelled.end == decant::search_end::cancelled);
  REQUIRE(cancelled.hypotheses.size() == 2);
  CHECK(cancelled.hypotheses[0].tokens.size() == 2);
  CHECK(whole.end == decant::search_end::length);
  CHECK(whole.best()->tokens.size() == 4);
  search.cancel();  // of what has ended nothing changes
  CHECK(search.result(1).end == decant::search_end::length);
  CHECK(model.count("start") + model.count("fork") == model.count("drop"));
  CHECK_THROWS_AS(search.cancel(2), assertion_error);
  CHECK_THROWS_AS(search.result(2), assertion_error);
}

TEST_CASE("a callback that cancels leaves no sequence behind", "[search][beam_stream]") {
  for (std::size_t last = 0; last < 4; ++last) {
    recording_model model(random_rows(6, 7, 0));
    beam_options options{.width = 4, .n_best = 4, .max_new_tokens = 9};
    options.on_step = [&](const decant::beam_step& step) { return step.step < last; };
    beam_stream<recording_model> search(model, ids{1}, options);
    while (search.next()) {
    }
    CHECK(search.result().end == decant::search_end::cancelled);
    CHECK(search.result().steps == last + 1);
    REQUIRE(search.result().hypotheses.size() == 4);
    CHECK(search.result().best()->tokens.size() == last + 1);
    CHECK(model.count("start") + model.count("fork") == model.count("drop"));
  }
}

TEST_CASE("a search that is cancelled before its first pass never began", "[search][beam_stream]") {
  recording_model model(random_rows(5, 3, 0));
  beam_stream<recording_model> search(model, ids{1}, {});
  search.cancel();
  CHECK_FALSE(search.next());
  CHECK(model.calls.empty());
}

}  // namespace beam_stream_test
