// SPDX-License-Identifier: MIT
#include <decant/reference/checkpoint.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fixtures.hpp"

using namespace decant;
using namespace reference_tests;

namespace {

constexpr std::size_t header_size = 28;
const char* const fields[] = {"dim",        "hidden_dim",      "n_layers",       "n_heads",
                              "n_kv_heads", "vocabulary_size", "sequence_length"};

std::vector<std::byte> with_field(std::vector<std::byte> file, std::size_t field, std::int32_t value) {
  std::memcpy(file.data() + 4 * field, &value, sizeof value);
  return file;
}

error failure(std::span<const std::byte> file) {
  const auto read = read_checkpoint(file);
  REQUIRE_FALSE(read);
  CHECK(read.error().code == error_code::bad_file);
  CHECK_FALSE(read.error().where.empty());
  CHECK_FALSE(read.error().message.empty());
  return read.error();
}

void check_equal(const model_weights& a, const model_weights& b) {
  CHECK(a.embedding == b.embedding);
  REQUIRE(a.layers.size() == b.layers.size());
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    CHECK(a.layers[i].attention_norm == b.layers[i].attention_norm);
    CHECK(a.layers[i].query == b.layers[i].query);
    CHECK(a.layers[i].key == b.layers[i].key);
    CHECK(a.layers[i].value == b.layers[i].value);
    CHECK(a.layers[i].output == b.layers[i].output);
    CHECK(a.layers[i].feed_forward_norm == b.layers[i].feed_forward_norm);
    CHECK(a.layers[i].gate == b.layers[i].gate);
    CHECK(a.layers[i].down == b.layers[i].down);
    CHECK(a.layers[i].up == b.layers[i].up);
  }
  CHECK(a.final_norm == b.final_norm);
  REQUIRE(a.classifier.size() == b.classifier.size());
  if (a.classifier.size() > 0) CHECK(a.classifier == b.classifier);
}

}  // namespace

TEST_CASE("checkpoint: what was written is read back", "[reference][checkpoint]") {
  const bool shared = GENERATE(true, false);
  const checkpoint model = random_checkpoint(tiny_config(shared), 1);
  const auto file = file_of(model);

  const auto from_memory = read_checkpoint(std::span<const std::byte>(file));
  REQUIRE(from_memory);
  CHECK(from_memory->config == model.config);
  check_equal(*from_memory->weights, *model.weights);
  CHECK(&from_memory->weights->head() ==
        (shared ? &from_memory->weights->embedding : &from_memory->weights->classifier));

  const temporary_file stored("decant_checkpoint_test.bin", file);
  const auto from_file = read_checkpoint(stored.path());
  REQUIRE(from_file);
  CHECK(from_file->config == model.config);
  check_equal(*from_file->weights, *model.weights);
}

TEST_CASE("checkpoint: copies share the weights", "[reference][checkpoint]") {
  const auto file = file_of(random_checkpoint(tiny_config(true), 2));
  const auto model = read_checkpoint(std::span<const std::byte>(file));
  REQUIRE(model);
  const checkpoint copy = *model;
  CHECK(copy.weights.get() == model->weights.get());
}

TEST_CASE("checkpoint: stories260K has the sizes it is known for", "[reference][checkpoint]") {
  SKIP_WITHOUT_SHARED("models/stories260K.bin");
  const auto model = read_checkpoint(shared_path("models/stories260K.bin"));
  REQUIRE(model);
  CHECK(model->config == model_config{.dim = 64,
                                      .hidden_dim = 172,
                                      .n_layers = 5,
                                      .n_heads = 8,
                                      .n_kv_heads = 4,
                                      .vocabulary_size = 512,
                                      .sequence_length = 512,
                                      .shared_classifier = true});
  CHECK(model->config.head_size() == 8);
  CHECK(model->config.kv_dim() == 32);
}

TEST_CASE("checkpoint: a file that is none", "[reference][checkpoint]") {
  const auto missing = read_checkpoint(std::filesystem::path("no/such/file.bin"));
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == error_code::not_found);
  CHECK(missing.error().where == std::filesystem::path("no/such/file.bin").string());

  const auto directory = read_checkpoint(std::filesystem::temp_directory_path());
  REQUIRE_FALSE(directory);
  CHECK(directory.error().code == error_code::bad_file);
  CHECK(directory.error().message == "is not a regular file");

  CHECK(failure({}).where == "header");
  const temporary_file empty("decant_checkpoint_empty.bin", {});
  const auto nothing = read_checkpoint(empty.path());
  REQUIRE_FALSE(nothing);
  CHECK(nothing.error().text() == "header: 0 bytes, must have 28");
}

TEST_CASE("checkpoint: every field of the header, corrupted in turn", "[reference][checkpoint]") {
  const bool shared = GENERATE(true, false);
  const auto file = file_of(random_checkpoint(tiny_config(shared), 3));
  constexpr std::int32_t greatest = std::numeric_limits<std::int32_t>::max();
  constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min();
  for (std::size_t field = 0; field < 7; ++field) {
    for (const std::int32_t value : {0, -1, -2, -7, 1 << 20, 1 << 30, greatest, greatest - 1, least, least + 1}) {
      INFO(fields[field] << " = " << value);
      const error fault = failure(with_field(file, field, value));
      const bool is_vocabulary = field == 5;
      if (value == 0 || (value < 0 && !is_vocabulary)) {
        CHECK(fault.where == fields[field]);
        CHECK(fault.message == std::to_string(value) + " must be positive");
      }
    }
  }
}

TEST_CASE("checkpoint: sizes that do not go together", "[reference][checkpoint]") {
  const auto file = file_of(random_checkpoint(tiny_config(true), 4));
  CHECK(failure(with_field(file, 0, 20)).text() == "dim: 20 must be a multiple of n_heads = 3");
  CHECK(failure(with_field(file, 0, 15)).text() == "dim: 15 / n_heads must be even, and is 5");
  CHECK(failure(with_field(file, 3, 32)).text() == "dim: 18 must be a multiple of n_heads = 32");
  CHECK(failure(with_field(file, 4, 2)).text() == "n_kv_heads: 2 must divide n_heads = 3");
  CHECK(failure(with_field(file, 4, 6)).text() == "n_kv_heads: 6 must divide n_heads = 3");
  CHECK(failure(with_field(file, 2, 3)).where == "size");
  CHECK(failure(with_field(file, 5, -29)).where == "size");
}

TEST_CASE("checkpoint: products beyond 64 bits", "[reference][checkpoint]") {
  std::vector<std::byte> header;
  constexpr std::int32_t huge = std::numeric_limits<std::int32_t>::max();
  for (const std::int32_t size : {huge - 1, huge, huge, 1, 1, huge, huge}) put(header, size);
  CHECK(failure(header).text() == "header: its sizes multiply to more than 64 bits can count");

  // 4 * 2^31 * 2^31 = 2^64: the last product that a careless count takes for 0.
  header.clear();
  for (const std::int32_t size : {1 << 30, 1, 1, 1, 1, std::numeric_limits<std::int32_t>::min(), 1}) put(header, size);
  CHECK(failure(header).where == "header");

  // Each product fits (the greatest is 2^63), the sum does not.
  header.clear();
  for (const std::int32_t size : {1 << 30, 1, 1, 1, 1, 1 << 30, 1}) put(header, size);
  CHECK(failure(header).where == "header");

  // Both fit, just not in this file.
  header.clear();
  for (const std::int32_t size : {1 << 28, 1, 1, 1, 1, 1 << 28, 1}) put(header, size);
  CHECK(failure(header).where == "size");
}

TEST_CASE("checkpoint: a small file with a great header allocates nothing for it", "[reference][checkpoint]") {
  // 2^31 layers or a vocabulary of 2^31 would not fit this machine: that the error comes back is the proof.
  const auto file = file_of(random_checkpoint(tiny_config(true), 5));
  CHECK(failure(with_field(file, 2, std::numeric_limits<std::int32_t>::max())).where == "size");
  CHECK(failure(with_field(file, 5, std::numeric_limits<std::int32_t>::max())).where == "size");
  CHECK(failure(with_field(file, 6, std::numeric_limits<std::int32_t>::max())).where == "size");
}

TEST_CASE("checkpoint: truncated anywhere, or too long", "[reference][checkpoint]") {
  const bool shared = GENERATE(true, false);
  auto file = file_of(random_checkpoint(tiny_config(shared), 6));
  const std::span<const std::byte> whole(file);
  for (std::size_t size = 0; size < header_size; ++size) CHECK(failure(whole.first(size)).where == "header");
  for (std::size_t size = header_size; size < file.size(); size += 64) {
    CHECK(failure(whole.first(size)).where == "size");
  }
  CHECK(failure(whole.first(file.size() - 1)).where == "size");
  file.push_back(std::byte{0});
  CHECK(failure(file).where == "size");
  file.resize(2 * file.size());
  CHECK(failure(file).where == "size");

  const temporary_file half("decant_checkpoint_half.bin", std::span(file).first(file.size() / 4));
  const auto read = read_checkpoint(half.path());
  REQUIRE_FALSE(read);
  CHECK(read.error().where == "size");
}

TEST_CASE("checkpoint: weights that are no numbers", "[reference][checkpoint]") {
  auto file = file_of(random_checkpoint(tiny_config(true), 7));
  const float bad = GENERATE(std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity());
  const std::size_t embedding_end = header_size + 29 * 18 * sizeof(float);
  const auto [offset, tensor] = GENERATE_COPY(std::pair<std::size_t, std::string>(header_size, "embedding"),
                                              std::pair<std::size_t, std::string>(embedding_end, "attention_norm"));
  std::memcpy(file.data() + offset, &bad, sizeof bad);
  const error fault = failure(file);
  CHECK(fault.where == tensor);
  CHECK(fault.message == "holds a NaN or an infinity");
  CHECK(read_checkpoint(std::span<const std::byte>(file), {.require_finite = false}));
}

TEST_CASE("checkpoint: random corruption gives an error or a model, never more", "[reference][checkpoint]") {
  const auto file = file_of(random_checkpoint(tiny_config(false), 8));
  number_source numbers(9);
  for (int round = 0; round < 2000; ++round) {
    auto corrupted = file;
    for (std::size_t i = 0; i < 1 + numbers.below(4); ++i) {
      corrupted[numbers.below(header_size)] = static_cast<std::byte>(numbers.below(256));
    }
    const auto read = read_checkpoint(std::span<const std::byte>(corrupted));
    if (!read) CHECK_FALSE(read.error().where.empty());
  }
}
