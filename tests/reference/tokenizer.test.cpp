// SPDX-License-Identifier: MIT
#include <decant/reference/tokenizer.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <decant/core/concepts.hpp>

#include "fixtures.hpp"

using namespace decant;
using namespace reference_tests;

static_assert(TokenBytes<tokenizer>);

namespace {

struct entry {
  std::string piece;
  float score;
};

std::vector<entry> base_entries() {
  std::vector<entry> entries{{"<unk>", 0}, {"\n<s>\n", 0}, {"\n</s>\n", 0}};
  for (unsigned byte = 0; byte < 256; ++byte) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    entries.push_back({std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">", 0});
  }
  return entries;
}

// Ties on purpose ("ab", "ba" and "aa" score alike), a piece that only two different ways of merging reach ("abab"),
// pieces that spell marks and bytes, and pieces of several bytes.
std::vector<entry> small_entries() {
  auto entries = base_entries();
  for (const entry& e : std::vector<entry>{
           {" ", -20},  {"a", -21},    {"b", -22},     {"c", -23},   {"<", -24},   {"s", -25},    {">", -26},
           {"ab", -1},  {"ba", -1},    {"aa", -1},     {"abab", -3}, {"aba", -2},  {"bc", -4},    {"abc", -5},
           {" a", -6},  {" ab", -0.5}, {"<s", -7},     {"<s>", -8},  {"é", -9},    {"éa", -10},   {"日", -11},
           {"0", -27},  {"x", -28},    {"<0", -12},    {"4", -29},   {"1", -30},   {"<0x", -13},  {"41>", -14},
           {"41", -15}, {"1>", -16},   {"<0x41", -17}, {"", 0},      {"日é", -18}, {"  ", -3.5F}, {"a", 5},
       }) {
    entries.push_back(e);
  }
  return entries;
}

std::vector<std::byte> file_of(const std::vector<entry>& entries, std::int32_t longest = 27) {
  std::vector<std::byte> out;
  put(out, longest);
  for (const entry& e : entries) {
    put(out, e.score);
    put(out, static_cast<std::int32_t>(e.piece.size()));
    put(out, e.piece.data(), e.piece.size());
  }
  return out;
}

tokenizer make(const std::vector<entry>& entries, const tokenizer_options& options = {}) {
  auto made = tokenizer::read(file_of(entries), entries.size(), options);
  REQUIRE(made);
  return *std::move(made);
}

std::vector<entry> entries_of_file(const std::filesystem::path& path, std::size_t count) {
  std::ifstream in(path, std::ios::binary);
  const auto number = [&](auto value) {
    in.read(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  };
  number(std::int32_t{});
  std::vector<entry> entries;
  while (entries.size() < count) {
    const float score = number(float{});
    std::string piece(static_cast<std::size_t>(number(std::int32_t{})), '\0');
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    entries.push_back({piece, score});
  }
  return entries;
}

// The definition, word by word: look at every pair again after every merge.
class naive_bpe {
 public:
  explicit naive_bpe(std::vector<entry> entries) : entries_(std::move(entries)) {}

  [[nodiscard]] std::vector<token_id> encode(std::string_view text, bool dummy_space) const {
    std::vector<token_id> tokens;
    if (dummy_space && !text.empty()) add(" ", tokens);
    std::string point;
    for (std::size_t i = 0; i < text.size(); ++i) {
      point += text[i];
      const bool more = i + 1 < text.size() && (static_cast<unsigned char>(text[i + 1]) & 0xC0U) == 0x80U;
      if (more && point.size() < 4) continue;
      add(point, tokens);
      point.clear();
    }
    while (merge_best(tokens)) {
    }
    return tokens;
  }

 private:
  [[nodiscard]] std::optional<token_id> find(const std::string& text) const {
    for (std::size_t id = 259; id < entries_.size(); ++id) {
      if (entries_[id].piece == text) return static_cast<token_id>(id);
    }
    return std::nullopt;
  }

  void add(const std::string& point, std::vector<token_id>& tokens) const {
    if (const auto id = find(point)) {
      tokens.push_back(*id);
    } else {
      for (const char byte : point) tokens.push_back(3 + static_cast<unsigned char>(byte));
    }
  }

  bool merge_best(std::vector<token_id>& tokens) const {
    std::optional<std::size_t> best;
    token_id best_id = no_token;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      const auto& left = entries_[static_cast<std::size_t>(tokens[i])].piece;
      const auto& right = entries_[static_cast<std::size_t>(tokens[i + 1])].piece;
      if (tokens[i] < 259 || tokens[i + 1] < 259) continue;
      const auto id = find(left + right);
      if (!id) continue;
      if (!best || score(*id) > score(best_id)) {
        best = i;
        best_id = *id;
      }
    }
    if (!best) return false;
    tokens[*best] = best_id;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(*best) + 1);
    return true;
  }

  [[nodiscard]] float score(token_id id) const { return entries_[static_cast<std::size_t>(id)].score; }

  std::vector<entry> entries_;
};

void append_utf8(std::string& text, std::uint32_t point) {
  const auto byte = [&](std::uint32_t value) { text += static_cast<char>(static_cast<unsigned char>(value)); };
  if (point < 0x80) return byte(point);
  if (point < 0x800) {
    byte(0xC0 | point >> 6);
  } else {
    if (point < 0x10000) {
      byte(0xE0 | point >> 12);
    } else {
      byte(0xF0 | point >> 18);
      byte(0x80 | (point >> 12 & 0x3F));
    }
    byte(0x80 | (point >> 6 & 0x3F));
  }
  byte(0x80 | (point & 0x3F));
}

std::string random_utf8(number_source& numbers, std::size_t points) {
  constexpr std::uint32_t limits[] = {0x80, 0x80, 0x80, 0x800, 0x10000, 0x110000};
  std::string text;
  while (points-- > 0) {
    const auto point = static_cast<std::uint32_t>(numbers.below(limits[numbers.below(6)]));
    append_utf8(text, point >= 0xD800 && point < 0xE000 ? 0x65E5 : point);
  }
  return text;
}

std::string random_bytes(number_source& numbers, std::size_t count) {
  std::string text;
  while (count-- > 0) text += static_cast<char>(static_cast<unsigned char>(numbers.below(256)));
  return text;
}

// Text that is likely to merge: made of the pieces themselves and of stray bytes between them.
std::string random_pieces(number_source& numbers, const std::vector<entry>& entries, std::size_t count) {
  std::string text;
  while (count-- > 0) {
    if (numbers.below(12) == 0) {
      text += static_cast<char>(static_cast<unsigned char>(numbers.below(256)));
    } else {
      text += entries[259 + numbers.below(entries.size() - 259)].piece;
    }
  }
  return text;
}

void check_against_naive(const std::vector<entry>& entries, int rounds, std::uint32_t seed) {
  const tokenizer fast = make(entries);
  const naive_bpe naive(entries);
  number_source numbers(seed);
  for (int round = 0; round < rounds; ++round) {
    const std::string text = round % 3 == 0   ? random_utf8(numbers, numbers.below(20))
                             : round % 3 == 1 ? random_bytes(numbers, numbers.below(20))
                                              : random_pieces(numbers, entries, numbers.below(12));
    const bool dummy = numbers.below(2) == 0;
    const auto tokens = fast.encode(text, {.bos = false, .dummy_space = dummy});
    CHECK(tokens == naive.encode(text, dummy));
  }
}

void check_round_trip(const tokenizer& tokens, std::uint32_t seed, int rounds) {
  number_source numbers(seed);
  for (int round = 0; round < rounds; ++round) {
    const std::string text =
        round % 2 == 0 ? random_utf8(numbers, numbers.below(40)) : random_bytes(numbers, numbers.below(40));
    CHECK(tokens.decode(tokens.encode(text)) == text);
  }
}

error failure(std::span<const std::byte> file, std::size_t vocabulary_size) {
  const auto read = tokenizer::read(file, vocabulary_size);
  REQUIRE_FALSE(read);
  CHECK(read.error().code == error_code::bad_file);
  return read.error();
}

}  // namespace

TEST_CASE("tokenizer: bytes of a token", "[reference][tokenizer]") {
  const tokenizer tokens = make(small_entries());
  CHECK(tokens.size() == small_entries().size());
  for (token_id id = 0; id < 3; ++id) CHECK(tokens.bytes(id).empty());
  for (int byte = 0; byte < 256; ++byte) {
    CHECK(tokens.bytes(3 + byte) == std::string(1, static_cast<char>(static_cast<unsigned char>(byte))));
  }
  CHECK(tokens.bytes(259) == " ");
  CHECK(tokens(266) == "ab");
  CHECK(tokenizer::bos() == 1);
  CHECK(tokenizer::eos() == 2);
}

TEST_CASE("tokenizer: merges by score, then from the left", "[reference][tokenizer]") {
  const tokenizer tokens = make(small_entries(), {.dummy_space = false});
  const auto pieces = [&](std::string_view text) {
    std::vector<std::string> out;
    for (const token_id id : tokens.encode(text, {.bos = false})) out.emplace_back(tokens(id));
    return out;
  };
  CHECK(pieces("aab") == std::vector<std::string>{"aa", "b"});
  CHECK(pieces("abab") == std::vector<std::string>{"abab"});
  CHECK(pieces("bab") == std::vector<std::string>{"ba", "b"});
  CHECK(pieces(" ab") == std::vector<std::string>{" ab"});
  CHECK(pieces("caac") == std::vector<std::string>{"c", "aa", "c"});
}

TEST_CASE("tokenizer: marks, dummy space and the empty text", "[reference][tokenizer]") {
  const tokenizer tokens = make(small_entries());
  CHECK(tokens.encode("") == std::vector<token_id>{1});
  CHECK(tokens.encode("", {.bos = false}).empty());
  CHECK(tokens.encode("", {.bos = true, .eos = true}) == std::vector<token_id>{1, 2});
  const auto spaced = tokens.encode("ab", {.eos = true});
  REQUIRE(spaced.size() == 3);
  CHECK(tokens(spaced[1]) == " ab");
  CHECK(tokens.decode(spaced) == "ab");

  const auto plain = tokens.encode("ab", {.dummy_space = false});
  CHECK(tokens(plain[1]) == "ab");
  CHECK(tokens.encode("ab") == tokens.encode("ab", {.dummy_space = true}));
}

TEST_CASE("tokenizer: decoding leaves out one space, and only after a beginning", "[reference][tokenizer]") {
  const auto entries = small_entries();
  const token_id space_a = 273;
  const tokenizer tokens = make(entries);
  REQUIRE(tokens(space_a) == " a");
  const std::vector<token_id> ids{1, space_a, space_a};
  CHECK(tokens.decode(ids) == "a a");
  CHECK(tokens.decode(std::span(ids).subspan(1)) == " a a");
  CHECK(tokens.decode(tokens.encode("  a")) == "  a");
  CHECK(tokens.decode(tokens.encode(" ")) == " ");

  const tokenizer without = make(entries, {.dummy_space = false});
  CHECK_FALSE(without.dummy_space());
  CHECK(without.decode(ids) == " a a");
  CHECK(without.encode(" a") == std::vector<token_id>{1, space_a});
}

TEST_CASE("tokenizer: text never becomes a mark or a byte by its spelling", "[reference][tokenizer]") {
  auto entries = small_entries();
  for (const char* text : {"<unk>", "\n<s>\n", "\n</s>\n", "<s>", "<0x41>", "a<0x41>b"}) {
    const tokenizer tokens = make(entries);
    for (const token_id id : tokens.encode(text, {.bos = false})) CHECK(id > 2);
    CHECK(tokens.decode(tokens.encode(text)) == text);
  }
}

TEST_CASE("tokenizer: what is no piece falls back to bytes", "[reference][tokenizer]") {
  const tokenizer tokens = make(small_entries(), {.dummy_space = false});
  const std::string emoji = "\xF0\x9F\x98\x80";
  CHECK(tokens.encode(emoji, {.bos = false}) == std::vector<token_id>{3 + 0xF0, 3 + 0x9F, 3 + 0x98, 3 + 0x80});
  const auto mixed = tokens.encode("a" + emoji + "b", {.bos = false});
  CHECK(mixed.size() == 6);
  CHECK(tokens.decode(mixed) == "a" + emoji + "b");
}

TEST_CASE("tokenizer: the heap agrees with the definition", "[reference][tokenizer]") {
  check_against_naive(small_entries(), 3000, 11);
}

TEST_CASE("tokenizer: what is encoded decodes to itself", "[reference][tokenizer]") {
  const bool dummy = GENERATE(true, false);
  check_round_trip(make(small_entries(), {.dummy_space = dummy}), 12, 2000);
  check_round_trip(make(base_entries(), {.dummy_space = dummy}), 13, 500);
}

TEST_CASE("tokenizer: a long text takes no quadratic time", "[reference][tokenizer]") {
  const tokenizer tokens = make(small_entries(), {.dummy_space = false});
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "ab";
  CHECK(tokens.encode(text, {.bos = false}).size() == 50000);  // quadratic: 10^10 look-ups
}

TEST_CASE("tokenizer: a copy stands alone", "[reference][tokenizer]") {
  std::optional<tokenizer> original = make(small_entries());
  const tokenizer copy = *original;
  const auto expected = original->encode("abab c");
  original.reset();
  CHECK(copy.encode("abab c") == expected);
  CHECK(copy.decode(expected) == "abab c");
}

TEST_CASE("tokenizer: the tokens of stories260K", "[reference][tokenizer]") {
  SKIP_WITHOUT_SHARED("models/tok512.bin");
  const auto path = shared_path("models/tok512.bin");
  const auto loaded = tokenizer::load(path, 512);
  REQUIRE(loaded);
  CHECK(loaded->size() == 512);
  check_against_naive(entries_of_file(path, 512), 2000, 14);
  check_round_trip(*loaded, 15, 2000);
  const std::string emoji = "\xF0\x9F\x98\x80";
  const auto tokens = loaded->encode(emoji);
  REQUIRE(tokens.size() >= 5);
  CHECK(std::vector<token_id>(tokens.end() - 4, tokens.end()) ==
        std::vector<token_id>{3 + 0xF0, 3 + 0x9F, 3 + 0x98, 3 + 0x80});
  CHECK_FALSE(tokenizer::load(path, 511));
  CHECK_FALSE(tokenizer::load(path, 513));
}

TEST_CASE("tokenizer: a file that is none", "[reference][tokenizer]") {
  const auto missing = tokenizer::load("no/such/file.bin", 512);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == error_code::not_found);
  const auto directory = tokenizer::load(std::filesystem::temp_directory_path(), 512);
  REQUIRE_FALSE(directory);
  CHECK(directory.error().code == error_code::bad_file);
  CHECK(failure({}, 512).where == "size");
}

TEST_CASE("tokenizer: vocabulary sizes that cannot be", "[reference][tokenizer]") {
  const auto file = file_of(small_entries());
  CHECK(failure(file, 0).where == "vocabulary_size");
  CHECK(failure(file, 258).text() == "vocabulary_size: 258 must be at least 259: three marks and 256 bytes");
  CHECK(failure(file, std::numeric_limits<std::size_t>::max()).where == "vocabulary_size");
  CHECK(failure(file, std::numeric_limits<std::int32_t>::max()).where == "size");
  CHECK(failure(file, small_entries().size() + 1).code == error_code::bad_file);
  CHECK(failure(file, small_entries().size() - 1).where == "size");
}

TEST_CASE("tokenizer: lengths and scores that lie", "[reference][tokenizer]") {
  const auto entries = small_entries();
  const auto file = file_of(entries);
  constexpr std::int32_t greatest = std::numeric_limits<std::int32_t>::max();
  constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min();
  const auto with = [&](std::size_t offset, auto value) {
    auto changed = file;
    std::memcpy(changed.data() + offset, &value, sizeof value);
    return changed;
  };
  for (const std::int32_t longest : {0, -1, least}) {
    CHECK(failure(with(0, longest), entries.size()).where == "max_token_length");
  }
  for (const std::int32_t length : {-1, -5, 28, 1 << 20, greatest, least}) {
    CHECK(failure(with(8, length), entries.size()).where == "length of token 0");
  }
  // With a greatest length that allows anything, the end of the file is the limit.
  auto permissive = with(8, greatest);
  std::memcpy(permissive.data(), &greatest, sizeof greatest);
  const error fault = failure(permissive, entries.size());
  CHECK(fault.where == "length of token 0");
  CHECK(fault.message.find("must not pass the end") != std::string::npos);

  CHECK(failure(with(4, std::numeric_limits<float>::quiet_NaN()), entries.size()).where == "score of token 0");
  CHECK(failure(with(4, -std::numeric_limits<float>::infinity()), entries.size()).where == "score of token 0");

  auto other_byte = entries;
  other_byte[3 + 0x41].piece = "<0x42>";
  CHECK(failure(file_of(other_byte), entries.size()).text() == "bytes of token 68: must be <0x41>");
}

TEST_CASE("tokenizer: truncated anywhere, too long, or corrupted", "[reference][tokenizer]") {
  const auto entries = small_entries();
  auto file = file_of(entries);
  const std::span<const std::byte> whole(file);
  for (std::size_t size = 0; size < file.size(); ++size) failure(whole.first(size), entries.size());

  number_source numbers(16);
  for (int round = 0; round < 2000; ++round) {
    auto corrupted = file;
    for (int i = 0; i < 3; ++i) {
      corrupted[numbers.below(file.size())] = static_cast<std::byte>(numbers.below(256));
    }
    const auto read = tokenizer::read(corrupted, entries.size());
    if (read) CHECK(read->decode(read->encode("ab <s> abc")) == "ab <s> abc");
  }

  file.push_back(std::byte{0});
  CHECK(failure(file, entries.size()).text() == "size: 1 bytes follow the last token, must be none");
}

TEST_CASE("tokenizer: an id outside the vocabulary is misuse", "[reference][tokenizer]") {
  const tokenizer tokens = make(base_entries());
  const token_id id = GENERATE(-1, 259, std::numeric_limits<token_id>::max());
  CHECK_THROWS_AS(tokens.bytes(id), assertion_error);
  const std::vector<token_id> ids{id};
  CHECK_THROWS_AS(tokens.decode(ids), assertion_error);
}
