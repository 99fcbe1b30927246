// SPDX-License-Identifier: MIT
#include "golden/later_stages.hpp"

namespace conformance {

std::vector<family> later_families() {
  return {
      {.name = "speculative sampling", .fields = {"target_probs", "draft_probs"}},
      {.name = "speculative marginal", .fields = {"p", "q"}},
      {.name = "assisted greedy", .fields = {"target_argmax", "draft_tokens"}},
      {.name = "prompt lookup", .fields = {"num_output_tokens", "max_matching_ngram_size"}},
      {.name = "DoLa", .fields = {"premature_logits", "final_logits"}},
      {.name = "diversity penalty", .fields = {"processor"}, .processors = {"diversity_penalty"}},
      {.name = "classifier-free guidance",
       .fields = {"processor"},
       .processors = {"classifier_free_guidance_raw", "classifier_free_guidance_logprob"}},
  };
}

}  // namespace conformance
