// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include <decant/core/errors.hpp>

namespace decant::detail {

/// Bytes that are already in memory, read front to back. A read past the end fails and consumes nothing.
class memory_source {
 public:
  explicit memory_source(std::span<const std::byte> bytes) noexcept : rest_(bytes) {}

  /// Bytes not read yet.
  [[nodiscard]] std::uint64_t remaining() const noexcept { return rest_.size(); }

  [[nodiscard]] bool read(std::span<std::byte> out) noexcept {
    if (out.size() > rest_.size()) return false;
    std::copy_n(rest_.begin(), out.size(), out.begin());
    rest_ = rest_.subspan(out.size());
    return true;
  }

  [[nodiscard]] bool skip(std::uint64_t count) noexcept {
    if (count > rest_.size()) return false;
    rest_ = rest_.subspan(static_cast<std::size_t>(count));
    return true;
  }

 private:
  std::span<const std::byte> rest_;
};

/// A regular file, read front to back. What it can give is known from the file system, not from its content.
class file_source {
 public:
  file_source(std::ifstream stream, std::uint64_t size) : stream_(std::move(stream)), remaining_(size) {}

  /// Bytes not read yet.
  [[nodiscard]] std::uint64_t remaining() const noexcept { return remaining_; }

  [[nodiscard]] bool read(std::span<std::byte> out) {
    if (out.size() > remaining_) return false;
    stream_.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
    remaining_ -= out.size();
    return stream_.good();  // a file that shrank meanwhile ends early
  }

  [[nodiscard]] bool skip(std::uint64_t count) {
    if (count > remaining_) return false;
    stream_.seekg(static_cast<std::streamoff>(count), std::ios::cur);
    remaining_ -= count;
    return stream_.good();
  }

 private:
  std::ifstream stream_;
  std::uint64_t remaining_;
};

/// Opens a regular file for reading. Errors: not_found; bad_file for a directory, a device or a file without
/// permission.
inline result<file_source> open_file(const std::filesystem::path& path) {
  std::error_code failed;
  const auto status = std::filesystem::status(path, failed);
  if (status.type() == std::filesystem::file_type::not_found) {
    return error{error_code::not_found, path.string(), "does not exist"};
  }
  if (!std::filesystem::is_regular_file(status)) {
    return error{error_code::bad_file, path.string(), "is not a regular file"};
  }
  const std::uintmax_t size = std::filesystem::file_size(path, failed);
  std::ifstream stream(path, std::ios::binary);
  if (failed || !stream) return error{error_code::bad_file, path.string(), "cannot be opened"};
  return file_source(std::move(stream), size);
}

/// Turns 4-byte numbers between the file's order (little-endian) and the machine's.
template <class Number>
  requires(sizeof(Number) == 4)
void from_little_endian(std::span<Number> numbers) noexcept {
  if constexpr (std::endian::native == std::endian::big) {
    for (Number& number : numbers) {
      auto bytes = std::as_writable_bytes(std::span<Number, 1>(&number, 1));
      std::reverse(bytes.begin(), bytes.end());
    }
  }
}

/// Reads as many 4-byte little-endian numbers as `numbers` has room for; false when the source ends before.
template <class Source, class Number>
[[nodiscard]] bool read_numbers(Source& source, std::span<Number> numbers) {
  if (!source.read(std::as_writable_bytes(numbers))) return false;
  from_little_endian(numbers);
  return true;
}

/// Whether a float is neither NaN nor infinite, told by its bits: -ffast-math would assume the answer.
inline bool has_finite_bits(float value) noexcept {
  return (std::bit_cast<std::uint32_t>(value) & 0x7F800000U) != 0x7F800000U;
}

}  // namespace decant::detail
