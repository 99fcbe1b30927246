// SPDX-License-Identifier: MIT
#include "golden/family.hpp"

#include "golden/beams.hpp"
#include "golden/contrastive.hpp"
#include "golden/later_stages.hpp"
#include "golden/processors.hpp"
#include "golden/prompt_lookup.hpp"
#include "golden/speculation.hpp"
#include "golden/stop_strings.hpp"
#include "golden/validation.hpp"
#include "golden/watermarks.hpp"

namespace conformance {

const std::vector<family>& families() {
  static const std::vector<family> all = [] {
    std::vector<family> list{validation_family(), processor_family(), pipeline_family(),
                             green_list_family(), synthid_family(),   stop_string_family()};
    list.push_back(speculative_sampling_family());
    list.push_back(speculative_marginal_family());
    list.push_back(assisted_greedy_family());
    list.push_back(prompt_lookup_family());
    for (const family& beams : {diverse_beam_family(), beam_family(), phrase_family()}) list.push_back(beams);
    list.push_back(contrastive_family());
    for (family& later : later_families()) list.push_back(std::move(later));
    return list;
  }();
  return all;
}

}  // namespace conformance
