// SPDX-License-Identifier: MIT
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include <decant/chain/chain.hpp>
#include <decant/chain/decoder.hpp>
#include <decant/core/concepts.hpp>

namespace decant {

namespace detail {

template <class T>
struct is_decoder : std::false_type {};
template <class P, class S>
struct is_decoder<decoder<P, S>> : std::true_type {};

template <class T>
concept EndsChain = Sampler<T> || is_decoder<T>::value;

template <class P>
std::tuple<P> parts(P processor) {
  return std::tuple<P>(std::move(processor));
}
template <class... Ps>
std::tuple<Ps...> parts(chain<Ps...> composed) {
  return std::move(composed.processors());
}

template <class... Ps>
chain<Ps...> chain_of(std::tuple<Ps...> processors) {
  return chain<Ps...>(std::move(processors));
}

}  // namespace detail

/// `a | b`: processors in order make a chain; a sampler at the end makes a decoder. Nothing can follow a sampler.
/// Found for decant's own types and types derived from them; for two lambdas write chain(a, b).
template <class Left, class Right>
  requires LogitsProcessor<std::remove_cvref_t<Left>> || detail::EndsChain<std::remove_cvref_t<Left>>
[[nodiscard]] auto operator|(Left&& left, Right&& right) {
  using L = std::remove_cvref_t<Left>;
  using R = std::remove_cvref_t<Right>;
  static_assert(!detail::EndsChain<L>, "decant: nothing can follow a sampler; put the processor before it");
  static_assert(
      LogitsProcessor<R> || Sampler<R>,
      "decant: what follows | is neither a processor, callable as void(candidates&, const step_context&), nor "
      "a sampler, callable as token_id(candidates&, const step_context&); a decoder is complete and takes nothing "
      "before it");
  if constexpr (detail::EndsChain<L> || !(LogitsProcessor<R> || Sampler<R>)) {
    return;  // the assertion above has said what is wrong
  } else if constexpr (Sampler<R>) {
    return decoder<L, R>(std::forward<Left>(left), std::forward<Right>(right));
  } else {
    return detail::chain_of(
        std::tuple_cat(detail::parts(L(std::forward<Left>(left))), detail::parts(R(std::forward<Right>(right)))));
  }
}

/// A decoder of a processor (or none) and a sampler: for two lambdas, where `|` cannot be found.
template <LogitsProcessor P, Sampler S>
[[nodiscard]] decoder<P, S> decode_with(P processor, S sampler) {
  return {std::move(processor), std::move(sampler)};
}
template <Sampler S>
[[nodiscard]] decoder<chain<>, S> decode_with(S sampler) {
  return {chain<>(), std::move(sampler)};
}

}  // namespace decant
