// SPDX-License-Identifier: MIT
#include <decant/speculative/swift.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <decant/chain/compose.hpp>
#include <decant/processors/temperature.hpp>
#include <decant/reference/transformer.hpp>
#include <decant/samplers/greedy.hpp>

#include "reference/fixtures.hpp"
#include "toy_target.hpp"

namespace swift_tests {

using decant::swift;
using decant::swift_options;

auto argmax() { return decant::temperature(1) | decant::greedy{}; }

TEST_CASE("swift: greedy output is the target's own while it looks for what to skip", "[speculative]") {
  decant::model_config config = reference_tests::small_config();
  config.n_layers = 6;
  const decant::checkpoint weights = reference_tests::random_checkpoint(config, 81);
  decant::transformer model(weights), plain(weights);
  for (const std::uint64_t seed : {0U, 1U, 2U}) {
    swift drafter(model, argmax(), {.search = {.mutate_every = 2, .seed = seed}, .exit = {.start = 0.1}});
    static_assert(decant::DraftSource<decltype(drafter)>);
    for (const toy::tokens& prompt : {toy::tokens{3, 17, 30}, toy::tokens{9}}) {
      CHECK(toy::greedy_rounds(model, drafter, prompt, 40, 4).text == toy::greedy_text(plain, prompt, 40));
    }
    CHECK(drafter.search().trials() > 10);
    CHECK(drafter.threshold().value() != 0.1);
  }
}

TEST_CASE("swift: drafts are made with the best set found", "[speculative]") {
  toy::target model(4, 82, 3, 6);
  swift drafter(model, argmax(), {.search = {.ratio = 0.5, .seed = 3}, .exit = {.start = 0, .step = 0}, .window = 20});
  const auto done = toy::greedy_rounds(model, drafter, {0, 1}, 60, 4);
  CHECK(drafter.search().trials() > 5);
  model.truncate(done.text.size() - 1);
  decant::draft out;
  drafter.propose(toy::request_after(done.text, 2), out);
  CHECK(model.last_skip == drafter.search().best());
  CHECK(out.size() == 2);
}

TEST_CASE("swift: it waits for output to judge by", "[speculative]") {
  toy::target model(4, 83);
  swift drafter(model, argmax(), {.least_window = 30});
  toy::greedy_rounds(model, drafter, {0, 1}, 25, 4);
  CHECK(drafter.search().trials() == 0);
  toy::greedy_rounds(model, drafter, {0, 1}, 60, 4);
  CHECK(drafter.search().trials() > 0);
}

TEST_CASE("swift: options", "[speculative]") {
  toy::target model(4, 84);
  CHECK_THROWS_AS(swift(model, argmax(), {.search = {.ratio = 2}}), decant::parameter_error);
  CHECK_THROWS_AS(swift(model, argmax(), {.exit = {.start = 2}}), decant::parameter_error);
}

}  // namespace swift_tests
