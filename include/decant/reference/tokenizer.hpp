// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <decant/core/errors.hpp>
#include <decant/core/token.hpp>
#include <decant/reference/byte_source.hpp>

namespace decant {

struct tokenizer_options {
  /// Whether texts are encoded with a space in front that decoding takes away again, as llama2.c and Llama 2 do.
  bool dummy_space = true;
};

struct encode_options {
  bool bos = true;                                 ///< begin with the token that begins a text
  bool eos = false;                                ///< end with the token that ends a text
  std::optional<bool> dummy_space = std::nullopt;  ///< overrides the tokenizer's own, for a text that continues another
};

/// Byte-pair encoding by merge score, with every byte as a fallback: reads the tokenizer.bin files of llama2.c.
///
/// Ids 0, 1 and 2 are unknown, beginning and end of text; they stand for no bytes and never match text. Ids 3 .. 258
/// are the bytes 0x00 .. 0xFF; they never match text either, and never merge. All others are pieces of text. Every
/// string of bytes can be encoded, and decodes to itself.
/// A value: copies are independent, and const use from several threads is safe.
class tokenizer {
 public:
  /// Reads a file. The format does not say how many tokens it has: the model does.
  /// Errors: not_found; bad_file with `where` naming the field, as in "length of token 17".
  static result<tokenizer> load(const std::filesystem::path& path, std::size_t vocabulary_size,
                                const tokenizer_options& options = {}) {
    auto source = detail::open_file(path);
    if (!source) return source.error();
    return read_from(*source, vocabulary_size, options);
  }

  /// Reads the content of such a file: int32 greatest length, then for each id a float32 score, an int32 length and so
  /// many bytes, all little-endian. No length is believed before the bytes are known to be there.
  static result<tokenizer> read(std::span<const std::byte> bytes, std::size_t vocabulary_size,
                                const tokenizer_options& options = {}) {
    detail::memory_source source(bytes);
    return read_from(source, vocabulary_size, options);
  }

  /// The tokens of a text. Code points that are pieces become these, others their bytes; then, until nothing fits, the
  /// two neighbours whose union is the piece with the best score are joined, the leftmost on a tie.
  /// An empty text gets no dummy space. O(n log n) for n bytes.
  [[nodiscard]] std::vector<token_id> encode(std::string_view text, const encode_options& options = {}) const {
    const bool with_space = options.dummy_space.value_or(dummy_space_) && !text.empty();
    std::string input(with_space ? " " : "");
    input += text;

    std::vector<symbol> symbols = split(input, with_space ? 1 : 0);
    merge(input, symbols);

    std::vector<token_id> tokens;
    if (options.bos) tokens.push_back(bos());
    for (const symbol& part : symbols) {
      if (part.id != no_token) tokens.push_back(part.id);
    }
    if (options.eos) tokens.push_back(eos());
    return tokens;
  }

  /// The text of tokens: their bytes one after the other. With a dummy space, one space at the front of the token right
  /// after a beginning of text is left out.
  [[nodiscard]] std::string decode(std::span<const token_id> tokens) const {
    std::string text;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::string_view piece = bytes(tokens[i]);
      if (dummy_space_ && i > 0 && tokens[i - 1] == bos() && piece.starts_with(' ')) piece.remove_prefix(1);
      text += piece;
    }
    return text;
  }

  /// The bytes that a token stands for: none for ids 0 .. 2. Valid as long as the tokenizer.
  [[nodiscard]] std::string_view bytes(token_id id) const {
    DECANT_ASSERT(id >= 0 && static_cast<std::size_t>(id) < size(), "token id outside the vocabulary");
    return pieces_[static_cast<std::size_t>(id)];
  }
  /// The same, for whoever wants a function from id to bytes.
  [[nodiscard]] std::string_view operator()(token_id id) const { return bytes(id); }

  [[nodiscard]] static constexpr token_id bos() noexcept { return 1; }
  [[nodiscard]] static constexpr token_id eos() noexcept { return 2; }
  [[nodiscard]] std::size_t size() const noexcept { return pieces_.size(); }
  [[nodiscard]] bool dummy_space() const noexcept { return dummy_space_; }

 private:
  static constexpr token_id first_byte = 3;
  static constexpr token_id first_piece = first_byte + 256;
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  // Lets the table be asked with a view of the text, without a copy.
  struct text_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };

  // A stretch of the input that is one token; no_token once it has joined its left neighbour.
  struct symbol {
    std::size_t begin;
    std::size_t length;
    std::size_t previous;
    std::size_t next;
    token_id id;
  };

  // Two neighbours that could become `merged`. Out of date when either has changed since.
  struct candidate {
    float score;
    std::size_t left;
    token_id left_id;
    token_id right_id;
    token_id merged;

    bool operator<(const candidate& other) const noexcept {
      return score != other.score ? score < other.score : left > other.left;
    }
  };
  using candidate_queue = std::priority_queue<candidate>;

  explicit tokenizer(const tokenizer_options& options) : dummy_space_(options.dummy_space) {}

  template <class Source>
  static result<tokenizer> read_from(Source& source, std::size_t vocabulary_size, const tokenizer_options& options) {
    const auto fault = [](const std::string& where, const std::string& message) {
      return error{error_code::bad_file, where, message};
    };
    constexpr std::size_t entry_size = 8;  // of a token without bytes
    const std::uint64_t size = source.remaining();
    if (vocabulary_size < static_cast<std::size_t>(first_piece)) {
      return fault("vocabulary_size", std::to_string(vocabulary_size) + " must be at least " +
                                          std::to_string(first_piece) + ": three marks and 256 bytes");
    }
    if (vocabulary_size > static_cast<std::size_t>(std::numeric_limits<token_id>::max())) {
      return fault("vocabulary_size", std::to_string(vocabulary_size) + " must fit a token id");
    }
    if (size < sizeof(std::int32_t) || (size - sizeof(std::int32_t)) / entry_size < vocabulary_size) {
      return fault("size", std::to_string(size) + " bytes cannot hold " + std::to_string(vocabulary_size) + " tokens");
    }
    std::int32_t longest = 0;
    if (!detail::read_numbers(source, std::span(&longest, 1))) return fault("max_token_length", "cannot be read");
    if (longest <= 0) return fault("max_token_length", std::to_string(longest) + " must be positive");

    tokenizer made(options);
    made.pieces_.reserve(vocabulary_size);
    made.scores_.reserve(vocabulary_size);
    for (std::size_t id = 0; id < vocabulary_size; ++id) {
      const std::string token = " of token " + std::to_string(id);
      std::array<std::int32_t, 2> entry{};
      if (!detail::read_numbers(source, std::span<std::int32_t>(entry))) return fault("entry" + token, "is missing");
      const auto score = std::bit_cast<float>(entry[0]);
      const std::int32_t length = entry[1];
      if (!detail::has_finite_bits(score)) return fault("score" + token, "must be finite");
      if (length < 0 || length > longest) {
        return fault("length" + token,
                     std::to_string(length) + " must be between 0 and max_token_length = " + std::to_string(longest));
      }
      if (static_cast<std::uint64_t>(length) > source.remaining()) {
        return fault("length" + token, std::to_string(length) + " must not pass the end, " +
                                           std::to_string(source.remaining()) + " bytes away");
      }
      std::string piece(static_cast<std::size_t>(length), '\0');
      if (!source.read(std::as_writable_bytes(std::span(piece)))) return fault("bytes" + token, "cannot be read");
      if (auto failure = made.add(std::move(piece), score)) return *std::move(failure);
    }
    if (source.remaining() != 0) {
      return fault("size", std::to_string(source.remaining()) + " bytes follow the last token, must be none");
    }
    return made;
  }

  std::optional<error> add(std::string piece, float score) {
    const auto id = static_cast<token_id>(pieces_.size());
    if (is_byte(id)) {
      const std::string expected = byte_name(id);
      if (piece != expected) {
        return error{error_code::bad_file, "bytes of token " + std::to_string(id), "must be " + expected};
      }
      piece = std::string(1, static_cast<char>(static_cast<unsigned char>(id - first_byte)));
    } else if (id < first_byte) {
      piece.clear();
    } else if (!piece.empty()) {
      ids_.try_emplace(piece, id);  // of equal pieces the lower id serves
    }
    pieces_.push_back(std::move(piece));
    scores_.push_back(score);
    return std::nullopt;
  }

  [[nodiscard]] static constexpr bool is_byte(token_id id) noexcept { return id >= first_byte && id < first_piece; }

  [[nodiscard]] static std::string byte_name(token_id id) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    const auto byte = static_cast<std::size_t>(id - first_byte);
    return {'<', '0', 'x', digits[byte / 16], digits[byte % 16], '>'};
  }

  [[nodiscard]] token_id find(std::string_view text) const {
    const auto found = ids_.find(text);
    return found == ids_.end() ? no_token : found->second;
  }

  // Cuts the input into code points, the first `lead` bytes by themselves. Invalid UTF-8 is cut the way llama2.c does:
  // any byte takes up to three continuation bytes with it.
  [[nodiscard]] std::vector<symbol> split(std::string_view input, std::size_t lead) const {
    const auto continues = [&](std::size_t i) {
      return i < input.size() && (static_cast<unsigned char>(input[i]) & 0xC0U) == 0x80U;
    };
    std::vector<symbol> symbols;
    symbols.reserve(input.size());
    for (std::size_t begin = 0; begin < input.size();) {
      std::size_t length = 1;
      while (begin >= lead && length < 4 && continues(begin + length)) ++length;
      const token_id id = find(input.substr(begin, length));
      if (id != no_token) {
        add_symbol(symbols, begin, length, id);
      } else {
        for (std::size_t i = begin; i < begin + length; ++i) {
          add_symbol(symbols, i, 1, first_byte + static_cast<unsigned char>(input[i]));
        }
      }
      begin += length;
    }
    return symbols;
  }

  static void add_symbol(std::vector<symbol>& symbols, std::size_t begin, std::size_t length, token_id id) {
    const std::size_t index = symbols.size();
    if (index > 0) symbols.back().next = index;
    symbols.push_back({begin, length, index > 0 ? index - 1 : none, none, id});
  }

  void merge(std::string_view input, std::vector<symbol>& symbols) const {
    candidate_queue queue;
    for (std::size_t i = 0; i < symbols.size(); ++i) propose(input, symbols, i, queue);
    while (!queue.empty()) {
      const candidate best = queue.top();
      queue.pop();
      if (!is_current(best, symbols)) continue;
      join(symbols, best);
      propose(input, symbols, symbols[best.left].previous, queue);
      propose(input, symbols, best.left, queue);
    }
  }

  // Queues the merge of a symbol with its right neighbour, if their union is a piece. Byte tokens never merge: text
  // that fell back to bytes is not made of pieces.
  void propose(std::string_view input, const std::vector<symbol>& symbols, std::size_t left,
               candidate_queue& queue) const {
    if (left == none || symbols[left].next == none) return;
    const symbol& first = symbols[left];
    const symbol& second = symbols[first.next];
    if (is_byte(first.id) || is_byte(second.id)) return;
    const token_id merged = find(input.substr(first.begin, first.length + second.length));
    if (merged == no_token) return;
    queue.push({scores_[static_cast<std::size_t>(merged)], left, first.id, second.id, merged});
  }

  [[nodiscard]] static bool is_current(const candidate& pair, const std::vector<symbol>& symbols) {
    const symbol& left = symbols[pair.left];
    return left.id == pair.left_id && left.next != none && symbols[left.next].id == pair.right_id;
  }

  static void join(std::vector<symbol>& symbols, const candidate& pair) {
    symbol& left = symbols[pair.left];
    symbol& right = symbols[left.next];
    left.id = pair.merged;
    left.length += right.length;
    left.next = right.next;
    right.id = no_token;
    if (left.next != none) symbols[left.next].previous = pair.left;
  }

  bool dummy_space_;
  std::vector<std::string> pieces_;
  std::vector<float> scores_;
  std::unordered_map<std::string, token_id, text_hash, std::equal_to<>> ids_;
};

}  // namespace decant
