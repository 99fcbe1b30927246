// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

#include <Eigen/Core>

namespace decant {

namespace detail {

// Asked through the base class, because a segment of a vector derives from the Block that is its Derived.
template <class V>
concept EigenDense = requires(const V& values) { []<class D>(const Eigen::DenseBase<D>&) {}(values); };

template <class V>
concept OwnsItsNumbers = requires(const V& values) { []<class D>(const Eigen::PlainObjectBase<D>&) {}(values); };

}  // namespace detail

/// An Eigen vector, array, map, or row of a row-major matrix: one-dimensional at compile time, of float, and with its
/// numbers side by side in memory. A column of a row-major matrix is none.
template <class V>
concept EigenRow = detail::EigenDense<V> && std::same_as<typename V::Scalar, float> && bool(V::IsVectorAtCompileTime) &&
                   (int(V::Flags) & int(Eigen::DirectAccessBit)) != 0 && int(V::InnerStrideAtCompileTime) == 1;

/// Eigen logits as a row that `candidates` can bind: no copy, mutable when `values` is.
/// Valid as long as the numbers that `values` owns or shows. O(1). A temporary vector does not compile: it would take
/// its numbers along.
template <class V>
  requires EigenRow<std::remove_cvref_t<V>> &&
           (std::is_lvalue_reference_v<V> || !detail::OwnsItsNumbers<std::remove_cvref_t<V>>)
[[nodiscard]] auto as_row(V&& values) noexcept {
  return std::span(values.data(), static_cast<std::size_t>(values.size()));
}

}  // namespace decant
