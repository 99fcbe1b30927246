// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <decant/core/concepts.hpp>
#include <decant/core/token.hpp>

namespace decant {

/// The bytes of every token of a vocabulary, copied once into one block, for policies that look at the text.
///
/// Is a TokenBytes function itself. A value: copies share the block, which never changes. The bytes, and 8 more a
/// token.
class vocabulary_bytes {
 public:
  /// Every token has no bytes.
  vocabulary_bytes() = default;

  /// Asks `bytes` for the bytes of tokens 0 .. size - 1; those beyond have none. O(all bytes).
  template <TokenBytes F>
  vocabulary_bytes(const F& bytes, std::size_t size) {
    block made;
    made.ends.reserve(size);
    for (std::size_t i = 0; i < size; ++i) {
      made.text += std::string_view(bytes(static_cast<token_id>(i)));
      made.ends.push_back(made.text.size());
    }
    block_ = std::make_shared<const block>(std::move(made));
  }

  /// The bytes of a token, none for an id outside the vocabulary.
  [[nodiscard]] std::string_view operator()(token_id token) const noexcept {
    if (token < 0 || static_cast<std::size_t>(token) >= size()) return {};
    const auto i = static_cast<std::size_t>(token);
    const std::size_t begin = i == 0 ? 0 : block_->ends[i - 1];
    return std::string_view(block_->text).substr(begin, block_->ends[i] - begin);
  }

  /// The number of tokens.
  [[nodiscard]] std::size_t size() const noexcept { return block_ == nullptr ? 0 : block_->ends.size(); }

 private:
  struct block {
    std::string text;
    std::vector<std::size_t> ends;
  };
  std::shared_ptr<const block> block_;
};

}  // namespace decant
