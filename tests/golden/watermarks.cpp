// SPDX-License-Identifier: MIT
#include "golden/watermarks.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <decant/core/candidates.hpp>
#include <decant/core/context.hpp>
#include <decant/processors/green_list_watermark.hpp>
#include <decant/processors/synthid_watermark.hpp>
#include <decant/processors/torch_random.hpp>

#include "golden/processors.hpp"
#include "golden/rows.hpp"

namespace conformance {

namespace {

using decant::token_id;

decant::green_list_seed to_seed(const std::string& scheme) {
  if (scheme == "lefthash") return decant::green_list_seed::left_hash;
  if (scheme == "selfhash") return decant::green_list_seed::self_hash;
  throw std::runtime_error("no seeding scheme is called " + scheme);
}

/// The row, and the ids that were raised: those on the green list.
answer compute_green_list(const json& question) {
  const json& p = question.at("params");
  answer result =
      processed(question, decant::green_list_watermark({.fraction = p.at("greenlist_ratio").get<double>(),
                                                        .bias = p.at("bias").get<double>(),
                                                        .key = p.at("hashing_key").get<std::uint64_t>(),
                                                        .seed = to_seed(p.at("seeding_scheme").get<std::string>()),
                                                        .context_width = p.at("context_width").get<std::size_t>(),
                                                        .how = decant::hashing::hf}));
  const auto before = to_row(question.at("logits")), after = to_row(result.values.at("/expected"));
  json green = json::array();
  for (std::size_t id = 0; id < before.size(); ++id) {
    if (after[id] > before[id]) green.push_back(id);
  }
  result.values["/greenlist"] = std::move(green);
  return result;
}

/// The table of bits, and for each step the bits of every token and the row. The first token of a text is its prompt.
answer compute_synthid(const json& question) {
  const json& p = question.at("params");
  const decant::synthid_options options{.keys = p.at("keys").get<std::vector<std::uint64_t>>(),
                                        .context_width = p.at("ngram_len").get<std::size_t>() - 1,
                                        .history = p.at("context_history_size").get<std::size_t>(),
                                        .how = decant::hashing::hf,
                                        .table_size = p.at("sampling_table_size").get<std::size_t>(),
                                        .table_seed = p.at("sampling_table_seed").get<std::uint64_t>(),
                                        .skip_first = p.at("skip_first_ngram_calls").get<bool>()};
  decant::synthid_watermark watermark(options);
  answer result;
  json table = json::array();
  for (const bool bit : decant::torch_random_bits(options.table_seed, options.table_size)) {
    if (table.size() < 64) table.push_back(bit ? 1 : 0);
  }
  result.values["/sampling_table_first64"] = std::move(table);

  const auto logits = to_row(question.at("logits"));
  decant::candidates row;
  for (std::size_t i = 0; i < question.at("steps").size(); ++i) {
    const auto tokens = to_ids(question.at("steps").at(i).at("input_ids"));
    const auto output = std::span<const token_id>(tokens).subspan(1);
    json bits = json::array();
    for (std::size_t id = 0; id < logits.size(); ++id) {
      const std::uint64_t g = watermark.bits(output, static_cast<token_id>(id));
      json layers = json::array();
      for (std::size_t layer = 0; layer < watermark.layers(); ++layer) layers.push_back(g >> layer & 1);
      bits.push_back(std::move(layers));
    }
    row.bind(std::span<const float>(logits));
    watermark(row, decant::context_after(tokens, 1, decant::draw_stream(0)));
    const std::string step = "/steps/" + std::to_string(i);
    result.values[step + "/g_values_by_token"] = std::move(bits);
    result.values[step + "/expected"] = from_row(row);
  }
  return result;
}

}  // namespace

family green_list_family() {
  return {.name = "green-list watermarks",
          .fields = {"processor", "params", "input_ids", "logits"},
          .processors = {"watermark_kgw"},
          .expectations = {"expected", "greenlist"},
          .compute = compute_green_list};
}

family synthid_family() {
  return {.name = "SynthID watermarks",
          .fields = {"params", "logits", "steps", "sampling_table_first64"},
          .expectations = {"expected", "g_values_by_token", "sampling_table_first64"},
          .compute = compute_synthid};
}

}  // namespace conformance
