// SPDX-License-Identifier: MIT
// The golden pipelines through the hf preset, which has the steps in an order of its own.
#include <decant/chain/preset_hf.hpp>

#include <cstddef>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>

#include "golden/compare.hpp"
#include "golden/rows.hpp"
#include "support/catch.hpp"
#include "support/shared.hpp"

namespace preset_pipeline_tests {

using conformance::json;

/// The parameters that stand for these steps, if the preset takes them in this order.
std::optional<decant::sampling_params> to_params(const json& steps) {
  const std::vector<std::string> order{
      "repetition_penalty", "no_repeat_ngram_size", "temperature", "top_h", "top_k", "top_p", "min_p",
      "typical_p",          "renormalize_logits"};
  decant::sampling_params params{.do_sample = true};
  std::size_t reached = 0;
  for (const json& step : steps) {
    const auto name = step.at(0).get<std::string>();
    std::size_t place = 0;
    while (order.at(place) != name) ++place;
    if (place < reached) return {};
    reached = place + 1;
    const json value = step.at(1).empty() ? json() : step.at(1).front();
    if (name == "repetition_penalty") params.repetition_penalty = value.get<double>();
    if (name == "no_repeat_ngram_size") params.no_repeat_ngram_size = value.get<std::int64_t>();
    if (name == "temperature") params.temperature = value.get<double>();
    if (name == "top_h") params.top_h = value.get<double>();
    if (name == "top_k") params.top_k = value.get<std::int64_t>();
    if (name == "top_p") params.top_p = value.get<double>();
    if (name == "min_p") params.min_p = value.get<double>();
    if (name == "typical_p") params.typical_p = value.get<double>();
    if (name == "renormalize_logits") params.renormalize_logits = true;
  }
  return params;
}

TEST_CASE("the hf preset leaves the rows of the golden pipelines that are in its order") {
  SKIP_WITHOUT_SHARED("goldens/pipeline.json");
  std::ifstream file(shared_path("goldens/pipeline.json"));
  const json cases = json::parse(file).at("cases");
  std::size_t in_order = 0;
  for (const json& each : cases) {
    const auto params = to_params(each.at("params").at("steps"));
    if (!params) continue;
    ++in_order;
    decant::presets::hf decoder(*params);
    const auto logits = conformance::to_row(each.at("logits"));
    const auto tokens = conformance::to_ids(each.at("input_ids"));
    decant::candidates row;
    row.bind(std::span<const float>(logits));
    decoder.processor()(row, decant::context_after(tokens, tokens.size(), decant::draw_stream(0)));
    INFO(decoder.describe());
    const auto found = conformance::difference(each.at("expected"), conformance::from_row(row));
    INFO(found.value_or(""));
    CHECK(!found);
  }
  CHECK(in_order == 5);  // of six; one cuts before it flattens
}

}  // namespace preset_pipeline_tests
