// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <Eigen/Core>

#include <decant/core/errors.hpp>
#include <decant/reference/byte_source.hpp>

namespace decant {

namespace detail {

/// The header of decant's own weight files: four letters, the version, then sizes.
template <std::size_t Sizes, class Source>
result<std::array<Eigen::Index, Sizes>> read_sizes(Source& source, std::string_view letters,
                                                   const std::array<const char*, Sizes>& names) {
  std::array<std::int32_t, Sizes + 2> header{};
  if (source.remaining() < sizeof header) {
    return error{error_code::bad_file, "header",
                 std::to_string(source.remaining()) + " bytes, must have " + std::to_string(sizeof header)};
  }
  if (!read_numbers(source, std::span<std::int32_t>(header))) {
    return error{error_code::bad_file, "header", "cannot be read"};
  }
  std::array<char, 4> found{};
  for (std::size_t i = 0; i < found.size(); ++i) {
    found[i] = static_cast<char>(static_cast<std::uint32_t>(header[0]) >> (8 * i) & 0xFFU);
  }
  if (std::string_view(found.data(), found.size()) != letters) {
    return error{error_code::bad_file, "header", "must begin with \"" + std::string(letters) + "\""};
  }
  if (header[1] != 1) {
    return error{error_code::bad_file, "version", std::to_string(header[1]) + " must be 1"};
  }
  std::array<Eigen::Index, Sizes> sizes{};
  for (std::size_t i = 0; i < Sizes; ++i) {
    sizes[i] = header[i + 2];
    if (sizes[i] <= 0) return error{error_code::bad_file, names[i], std::to_string(sizes[i]) + " must be positive"};
  }
  return sizes;
}

/// Whether what is left is what the sizes need, to the byte. Asked before anything is allocated.
template <class Source>
std::optional<error> size_fault(const Source& source, const std::optional<std::uint64_t>& needed) {
  if (!needed) return error{error_code::bad_file, "header", "its sizes multiply to more than 64 bits can count"};
  if (*needed == source.remaining()) return std::nullopt;
  return error{error_code::bad_file, "size",
               std::to_string(source.remaining()) + " bytes after the header, must be " + std::to_string(*needed) +
                   " by its sizes"};
}

}  // namespace detail

}  // namespace decant
