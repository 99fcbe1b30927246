// SPDX-License-Identifier: MIT
#include <decant/chain/hf_validate.hpp>

#include <cstdint>
#include <limits>
#include <string>

#include "support/catch.hpp"

namespace hf_validate_tests {

namespace hf = decant::hf;

std::string complaint(const hf::parameters& given) {
  const auto fault = hf::validate(given);
  return fault ? fault->message : "";
}

/// What is wrong with one number; the parameter is chosen by a pointer to it.
template <class Number>
std::string complaint(std::optional<Number> hf::parameters::* parameter, Number value) {
  hf::parameters given;
  given.*parameter = value;
  return complaint(given);
}

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("nothing asked for is nothing refused", "[chain]") { CHECK(!hf::validate({})); }

TEST_CASE("the error names parameter, value and rule", "[chain]") {
  const auto fault = hf::validate({.top_k = 0});
  REQUIRE(fault);
  CHECK(fault->code == decant::error_code::bad_parameter);
  CHECK(fault->where == "hf.top_k");
  CHECK(fault->message == "hf: top_k = 0 must be > 0");
}

TEST_CASE("the first fault in the order of the processors is the one reported", "[chain]") {
  CHECK(complaint({.repetition_penalty = 0.0, .temperature = -1.0, .top_p = 2.0}) ==
        "hf: repetition_penalty = 0 must be > 0");
  CHECK(complaint({.temperature = -1.0, .top_p = 2.0}) == "hf: temperature = -1 must be > 0");
  CHECK(complaint({.temperature = 1.0, .top_p = 2.0}) == "hf: top_p = 2 must lie in [0, 1]");
}

TEST_CASE("each number has its borders", "[chain]") {
  struct border {
    std::optional<double> hf::parameters::* parameter;
    std::vector<double> taken, refused;
  };
  const double below_one = 1 - 0x1p-53, above_one = 1 + 0x1p-52, least = std::numeric_limits<double>::denorm_min();
  for (const border& b : {
           border{&hf::parameters::guidance_scale, {above_one, 7.5}, {1, 0.5, -2}},
           border{&hf::parameters::diversity_penalty, {least, 1}, {0, -1}},
           border{&hf::parameters::encoder_repetition_penalty, {least, 1, 9}, {0, -1}},
           border{&hf::parameters::repetition_penalty, {least, 1, 9}, {0, -1}},
           border{&hf::parameters::temperature, {1e-30, 1, 100}, {0, -1}},
           border{&hf::parameters::top_h, {least, 1}, {0, -1, above_one}},
           border{&hf::parameters::top_p, {0, 0.5, 1}, {-least, -0.1, above_one}},
           border{&hf::parameters::min_p, {0, 0.5, 1}, {-least, -0.1, above_one}},
           border{&hf::parameters::typical_p, {least, below_one}, {0, 1, -1}},
           border{&hf::parameters::epsilon_cutoff, {least, below_one}, {0, 1, -1}},
           border{&hf::parameters::eta_cutoff, {least, below_one}, {0, 1, -1}},
           border{&hf::parameters::greenlist_ratio, {least, below_one}, {0, 1, -1}},
       }) {
    for (const double value : b.taken) CHECK(complaint(b.parameter, value).empty());
    for (const double value : b.refused) CHECK(!complaint(b.parameter, value).empty());
    CHECK(!complaint(b.parameter, not_a_number).empty());
  }
  struct whole_border {
    std::optional<std::int64_t> hf::parameters::* parameter;
    std::int64_t least;
  };
  for (const whole_border& b : {
           whole_border{&hf::parameters::prompt_ignore_length, 0},
           whole_border{&hf::parameters::no_repeat_ngram_size, 1},
           whole_border{&hf::parameters::encoder_no_repeat_ngram_size, 1},
           whole_border{&hf::parameters::min_length, 0},
           whole_border{&hf::parameters::prompt_length_to_skip, 0},
           whole_border{&hf::parameters::min_new_tokens, 0},
           whole_border{&hf::parameters::top_k, 1},
           whole_border{&hf::parameters::min_tokens_to_keep, 1},
       }) {
    CHECK(complaint(b.parameter, b.least).empty());
    CHECK(complaint(b.parameter, std::numeric_limits<std::int64_t>::max()).empty());
    CHECK(!complaint(b.parameter, b.least - 1).empty());
  }
}

TEST_CASE("beams and groups matter to the diversity penalty alone", "[chain]") {
  CHECK(!hf::validate({.num_beams = 1, .num_beam_groups = 1}));
  CHECK(!hf::validate({.diversity_penalty = 1.0, .num_beams = 4, .num_beam_groups = 2}));
  CHECK(!hf::validate({.diversity_penalty = 1.0, .num_beams = 3, .num_beam_groups = 3}));
  CHECK(complaint({.diversity_penalty = 1.0, .num_beams = 1, .num_beam_groups = 1}) ==
        "hf: num_beams = 1 must be >= 2");
  CHECK(complaint({.diversity_penalty = 1.0, .num_beams = 2, .num_beam_groups = 1}) ==
        "hf: num_beam_groups = 1 must be >= 2");
  CHECK(complaint({.diversity_penalty = 1.0, .num_beams = 2, .num_beam_groups = 3}) ==
        "hf: num_beam_groups = 3 must be <= num_beams");
}

TEST_CASE("lists may not be empty where the library refuses that, and hold no negative id", "[chain]") {
  using biases = std::vector<decant::sequence_with_bias>;
  using words = std::vector<std::vector<decant::token_id>>;
  CHECK(!hf::validate({.sequence_bias = biases{{{0, 1}, -1.5}}}));
  CHECK(complaint({.sequence_bias = biases{}}) == "hf: sequence_bias must not be empty");
  CHECK(complaint({.sequence_bias = biases{{{2}, 1.0}, {{}, 1.0}}}) ==
        "hf: sequence_bias must not hold an empty sequence");
  CHECK(complaint({.sequence_bias = biases{{{2}, 1.0}, {{3, -1}, 1.0}}}) == "hf: sequence_bias must hold ids >= 0");
  CHECK(!hf::validate({.bad_words_ids = words{{0}, {}}}));  // taken at first there too
  CHECK(complaint({.bad_words_ids = words{}}) == "hf: bad_words_ids must not be empty");
  CHECK(complaint({.bad_words_ids = words{{1}, {2, -1}}}) == "hf: bad_words_ids must hold ids >= 0");
  CHECK(!hf::validate({.eos_token_id = std::vector<decant::token_id>{0, 7}}));
  CHECK(complaint({.eos_token_id = std::vector<decant::token_id>{7, -1}}) == "hf: eos_token_id = -1 must be >= 0");
}

TEST_CASE("seeding schemes go by name", "[chain]") {
  CHECK(!hf::validate({.seeding_scheme = "lefthash"}));
  CHECK(!hf::validate({.seeding_scheme = "selfhash"}));
  CHECK(complaint({.seeding_scheme = "foo"}) == "hf: seeding_scheme = foo must be lefthash or selfhash");
}

}  // namespace hf_validate_tests
