// SPDX-License-Identifier: MIT
#include "golden/later_stages.hpp"

namespace conformance {

std::vector<family> later_families() {
  return {
      {.name = "DoLa", .fields = {"premature_logits", "final_logits"}},
      {.name = "classifier-free guidance",
       .fields = {"processor"},
       .processors = {"classifier_free_guidance_raw", "classifier_free_guidance_logprob"}},
  };
}

}  // namespace conformance
