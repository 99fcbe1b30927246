// SPDX-License-Identifier: MIT
#include <decant/core/candidates.hpp>

#include "core/naive_row.hpp"
#include "math/bits.hpp"
#include "support/catch.hpp"

#include <decant/testing/counting_allocator.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace candidates_test {

using namespace test_bits;
using decant::bfloat16;
using decant::candidates;
using decant::draw_stream;
using decant::entry;
using decant::float16;
using decant::gone;
using decant::no_token;
using decant::row_status;
using decant::token_id;
using ids_list = std::vector<token_id>;

const float nan_value = float_of(0x7FC00000U);
const float plus_infinity = float_of(0x7F800000U);

static_assert(!std::is_copy_constructible_v<candidates> && !std::is_copy_assignable_v<candidates>);
static_assert(std::is_default_constructible_v<candidates>);

template <class Row>
concept bindable = requires(candidates& row, Row&& logits) { row.bind(std::forward<Row>(logits)); };
static_assert(bindable<std::vector<float>&> && bindable<const std::vector<float>&> && bindable<std::span<float>> &&
              bindable<std::span<const float>> && bindable<std::vector<bfloat16>&> &&
              bindable<std::span<const float16>> && bindable<std::array<float, 3>&> && bindable<float (&)[3]>);
static_assert(!bindable<std::vector<float>> && !bindable<const std::vector<float>>);

/// Under which hand a row is held: in place with undo, read only, or 16 bits wide.
enum class hold : std::uint8_t { in_place, read_only, bf16, fp16 };
constexpr hold every_hold[] = {hold::in_place, hold::read_only, hold::bf16, hold::fp16};

/// One row in four storages. The floats are the values that the storage holds exactly.
struct stored_row {
  std::vector<float> f32;
  std::vector<bfloat16> b16;
  std::vector<float16> h16;

  stored_row(hold how, splitmix& next, std::size_t size) : how_(how) {
    for (std::size_t i = 0; i < size; ++i) {
      const auto z = static_cast<float>(next.between(-8, 8));
      if (how == hold::bf16) {
        b16.push_back({static_cast<std::uint16_t>(bits_of(z) >> 16)});
        f32.push_back(decant::math::to_float(b16.back()));
      } else if (how == hold::fp16) {
        // Any finite half: sign, exponents 10 to 18 (2^-5 to 2^3), ten bits.
        const auto bits = static_cast<std::uint16_t>((next() & 0x83FF) | (10 + next.below(9)) << 10);
        h16.push_back({bits});
        f32.push_back(decant::math::to_float(h16.back()));
      } else {
        f32.push_back(next.below(4) == 0 && i > 0 ? f32[next.below(i)] : z);  // with ties
      }
    }
  }

  void bind(candidates& row) {
    switch (how_) {
      case hold::in_place: return row.bind(f32);
      case hold::read_only: return row.bind(std::as_const(f32));
      case hold::bf16: return row.bind(std::as_const(b16));
      case hold::fp16: return row.bind(h16);
    }
  }

 private:
  hold how_;
};

/// Everything that can be asked, against the naive row. `questions` varies which are asked, and in which order.
void compare(candidates& row, const naive::row& plain, splitmix& next) {
  const std::uint64_t questions = next();
  if ((questions & 1) != 0) {
    REQUIRE(row.status() == (plain.size() > 0 ? row_status::ok : row_status::empty));
    REQUIRE(row.size() == plain.size());
  }
  if ((questions & 2) != 0) {
    for (std::size_t i = 0; i < plain.length(); i += 1 + plain.length() / 300) {
      if (bits_of(row.logit(static_cast<token_id>(i))) != bits_of(plain.logit(i))) {
        FAIL("logit of " << i << " is " << row.logit(static_cast<token_id>(i)) << ", not " << plain.logit(i));
      }
    }
  }
  if ((questions & 4) != 0 && plain.size() > 0) {
    const auto order = plain.order();
    const std::size_t count = 1 + next.below(next.below(4) == 0 ? plain.size() + 3 : 40);
    const auto prefix = row.descending(count);
    REQUIRE(prefix.size() == std::min(count, order.size()));
    for (std::size_t i = 0; i < prefix.size(); ++i) {
      REQUIRE(static_cast<std::size_t>(prefix[i].id) == order[i]);
      REQUIRE(bits_of(prefix[i].logit) == bits_of(plain.logit(order[i])));
    }
    REQUIRE(static_cast<std::size_t>(row.argmax()) == order[0]);
    REQUIRE(row.max() == Approx(plain.exact(order[0])).epsilon(1e-12).margin(1e-12));
  }
  if ((questions & 8) != 0 && plain.size() > 0) {
    const auto p = plain.probabilities();
    const decant::law law = row.probabilities();
    std::size_t place = 0;
    double worst = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const bool listed = place < law.ids.size() && static_cast<std::size_t>(law.ids[place]) == i;
      const double got = listed ? law.weights[place++] / law.total : 0;
      if (listed) REQUIRE(plain.there(i));
      worst = std::max(worst, std::abs(got - p[i]) / (p[i] + 1e-30));
    }
    REQUIRE(place == law.ids.size());
    REQUIRE(worst < 1e-4);
    for (int i = 0; i < 3; ++i) {
      const draw_stream draws = draw_stream(next()).at(next.below(100));
      const token_id drawn = row.draw(draws);
      REQUIRE(drawn == decant::draw(law, draws));
      REQUIRE(plain.there(static_cast<std::size_t>(drawn)));
    }
  }
  if ((questions & 16) != 0 && plain.size() > 0) {
    const auto p = plain.probabilities();
    long double sum = 0, entropy = 0;
    double top = plain.exact(plain.order()[0]);
    for (std::size_t i = 0; i < p.size(); ++i) {
      if (!plain.there(i)) continue;
      sum += std::exp(static_cast<long double>(plain.exact(i)) - static_cast<long double>(top));
      if (p[i] > 0) entropy -= static_cast<long double>(p[i]) * std::log(static_cast<long double>(p[i]));
    }
    REQUIRE(row.log_sum() == Approx(top + static_cast<double>(std::log(sum))).epsilon(1e-11).margin(1e-9));
    REQUIRE(row.entropy() == Approx(static_cast<double>(entropy)).epsilon(1e-9).margin(1e-9));
  }
  REQUIRE(naive::survivors(std::as_const(row)) == naive::survivors(plain));
}

/// One random edit or narrowing of both.
std::string change(candidates& row, naive::row& plain, splitmix& next, bool narrow) {
  const std::size_t n = plain.length();
  const auto id = static_cast<token_id>(next.below(n));
  const auto i = static_cast<std::size_t>(id);
  const auto value = static_cast<float>(next.between(-9, 9));
  switch (next.below(narrow ? 13 : 8)) {
    case 0: return row.set(id, value), plain.set(i, value), "set";
    case 1: return row.add(id, value), plain.add(i, value), "add";
    case 2: return row.ban(id), plain.set(i, gone), "ban";
    case 3: {
      const double scale = std::exp(next.between(-1.5, 1.5)), shift = next.below(2) == 0 ? 0 : next.between(-3, 3);
      return row.affine(scale, shift), plain.affine(scale, shift), "affine";
    }
    case 4: {
      if (next.below(2) == 0) {
        std::vector<std::uint64_t> chosen((n + 63) / 64);
        for (auto& word : chosen) word = next();
        const double amount = next.below(2) == 0 ? static_cast<double>(value) : next.between(-4, 4);
        row.raise(chosen, amount);
        plain.transform([&](token_id t, float logit) {
          const auto place = static_cast<std::size_t>(t);
          const bool up = (chosen[place / 64] >> (place % 64) & 1) != 0;
          return up ? static_cast<float>(static_cast<double>(logit) + amount) : logit;
        });
        return "raise";
      }
      const auto f = [value](token_id t, float logit) { return t % 11 == 3 ? logit + value : logit * 0.75F; };
      return row.transform(f), plain.transform(f), "transform";
    }
    case 5: {
      std::vector<std::uint64_t> mask((n + 63) / 64);
      for (auto& word : mask) word = next() | next() | next() | next();
      if (next.below(8) == 0) mask.pop_back();
      row.allow(mask);
      plain.allow([&](std::size_t t) { return t / 64 < mask.size() && (mask[t / 64] >> (t % 64) & 1) != 0; });
      return "allow mask";
    }
    case 6: {
      std::vector<token_id> allowed;
      std::vector<bool> member(n, false);
      for (std::size_t t = 0; t < n; ++t) {
        if (next.below(10) != 0) allowed.push_back(static_cast<token_id>(t)), member[t] = true;
      }
      std::ranges::reverse(allowed);
      row.allow(std::span<const token_id>(allowed));
      plain.allow([&](std::size_t t) { return member[t]; });
      return "allow ids";
    }
    case 7: {
      if (next.below(4) != 0) return row.set(id, value), plain.set(i, value), "set";
      const auto f = [value](token_id t, float logit) { return decant::is_gone(logit) && t % 5 == 0 ? value : logit; };
      return row.rewrite(f), plain.rewrite(f), "rewrite";
    }
    case 8: {
      const std::size_t count = next.below(plain.size() + 3);
      return row.keep_largest(count), plain.keep_largest(count), "keep_largest";
    }
    case 9: {
      if (plain.size() == 0) return "nothing";
      const double threshold = plain.exact(plain.order()[next.below(plain.size())]);
      const std::size_t min_keep = next.below(4);
      return row.keep_above(threshold, min_keep), plain.keep_above(threshold, min_keep), "keep_above";
    }
    case 10: {
      const double p = next.between(0.5, 1.05);
      return row.keep_mass(p, 2), plain.keep_mass(p, 2), "keep_mass";
    }
    case 11: {
      const double p = next.between(0.5, 1), around = next.between(-9, 9);
      return row.keep_mass_around(p, 1, around), plain.keep_mass_around(p, 1, around), "keep_mass around";
    }
    default: return row.keep_above(-4, 1), plain.keep_above(-4, 1), "keep_above";
  }
}

/// A row that came out empty stays so; only rewrite brings it back.
void random_chain(candidates& row, hold how, splitmix& next, std::size_t size, int changes) {
  stored_row store(how, next, size);
  const auto floats = store.f32;
  const auto narrow = store.b16;
  naive::row plain(floats);
  store.bind(row);
  std::string story;
  for (int step = 0; step < changes; ++step) {
    story += change(row, plain, next, next.below(3) != 0) + ", ";
    INFO(story << "on " << size << " logits, held " << static_cast<int>(how));
    compare(row, plain, next);
    if (plain.size() == 0) break;
  }
  row.release();
  for (std::size_t i = 0; i < floats.size(); ++i) REQUIRE(bits_of(store.f32[i]) == bits_of(floats[i]));
}

TEST_CASE("random chains of edits and narrowings equal the naive row: short rows", "[core][candidates]") {
  splitmix next(31);
  candidates row;
  for (int round = 0; round < 30; ++round) {
    for (std::size_t size = 1; size <= 70; size += 1 + next.below(3)) {
      for (const hold how : every_hold) random_chain(row, how, next, size, 8);
    }
  }
}

TEST_CASE("random chains of edits and narrowings equal the naive row: rows longer than the compact limit",
          "[core][candidates]") {
  splitmix next(32);
  candidates row;
  for (const std::size_t size :
       {std::size_t{4095}, std::size_t{4096}, std::size_t{4097}, std::size_t{5000}, std::size_t{9001}}) {
    for (int round = 0; round < 4; ++round) {
      for (const hold how : every_hold) random_chain(row, how, next, size, 6);
    }
  }
}

TEST_CASE("random chains of edits and narrowings equal the naive row: many", "[core][candidates][long]") {
  splitmix next(33);
  candidates row;
  for (int round = 0; round < 600; ++round) {
    for (const hold how : every_hold) {
      random_chain(row, how, next, 1 + next.below(300), 12);
      random_chain(row, how, next, 4000 + next.below(4000), 8);
    }
  }
}

TEST_CASE("rows as large as those of real models", "[core][candidates]") {
  splitmix next(34);
  candidates row;
  for (const std::size_t size : {std::size_t{32001}, std::size_t{151937}}) {
    for (const hold how : {hold::in_place, hold::read_only}) random_chain(row, how, next, size, 5);
  }
}

// ---- binding

TEST_CASE("a fresh row is all there and ends where the vocabulary ends", "[core][candidates]") {
  splitmix next(41);
  candidates row;
  for (std::size_t size = 1; size <= 70; ++size) {
    for (const std::size_t padding : {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{64}}) {
      auto logits = naive::random_row(next, size + padding);
      for (std::size_t i = size; i < logits.size(); ++i)
        logits[i] = 100 + static_cast<float>(i);  // would win, were it a token
      row.bind(logits, size);
      CHECK(row.vocabulary_size() == size);
      CHECK(row.size() == size);
      CHECK(static_cast<std::size_t>(row.argmax()) < size);
      CHECK(naive::ids(row).size() == size);
      CHECK(row.probabilities().size() == size);
      CHECK_THROWS_AS(row.logit(static_cast<token_id>(size)), assertion_error);
      row.release();
    }
  }
}

TEST_CASE("a temporary that owns its elements cannot be bound", "[core][candidates]") {
  CHECK_FALSE(bindable<std::vector<float>>);
  CHECK_FALSE(bindable<std::array<float, 3>>);
  CHECK_FALSE(bindable<const std::array<float, 3>>);
}

TEST_CASE("what lies past the vocabulary is never read: NaN, infinity", "[core][candidates]") {
  std::vector<float> logits{1, 2, 3, nan_value, plus_infinity};
  candidates row;
  row.bind(logits, 3);
  CHECK(row.status() == row_status::ok);
  CHECK(row.argmax() == 2);
  row.bind(std::as_const(logits), 4);
  CHECK(row.status() == row_status::not_finite);
}

TEST_CASE("misuse of binding is caught", "[core][candidates]") {
  std::vector<float> logits{1, 2, 3}, none;
  candidates row;
  CHECK_THROWS_AS(row.bind(none), assertion_error);
  CHECK_THROWS_AS(row.bind(std::as_const(none)), assertion_error);
  CHECK_THROWS_AS(row.bind(logits, 0), assertion_error);
  CHECK_THROWS_AS(row.bind(logits, 4), assertion_error);
  CHECK_THROWS_AS(row.bind(std::vector<bfloat16>{}.empty() ? std::span<const bfloat16>{} : std::span<const bfloat16>{}),
                  assertion_error);
  row.bind(logits);
  CHECK(row.size() == 3);
}

TEST_CASE("ids outside the vocabulary are caught by every call that takes one", "[core][candidates]") {
  std::vector<float> logits{1, 2, 3};
  candidates row;
  row.bind(logits);
  for (const token_id id : {-1, 3, 4, std::numeric_limits<token_id>::max(), std::numeric_limits<token_id>::min()}) {
    CAPTURE(id);
    CHECK_THROWS_AS(row.logit(id), assertion_error);
    CHECK_THROWS_AS(row.contains(id), assertion_error);
    CHECK_THROWS_AS(row.set(id, 1), assertion_error);
    CHECK_THROWS_AS(row.add(id, 1), assertion_error);
    CHECK_THROWS_AS(row.ban(id), assertion_error);
    const token_id list[] = {0, id};
    CHECK_THROWS_AS(row.allow(std::span<const token_id>(list)), assertion_error);
  }
  CHECK(row.size() == 3);
}

TEST_CASE("affine takes finite numbers and a positive scale only", "[core][candidates]") {
  std::vector<float> logits{1, 2, 3};
  candidates row;
  row.bind(logits);
  for (const double bad : {0.0, -1.0, double_of(0x7FF0000000000000U), double_of(0x7FF8000000000000U)}) {
    CHECK_THROWS_AS(row.affine(bad), assertion_error);
  }
  CHECK_THROWS_AS(row.affine(1, double_of(0x7FF0000000000000U)), assertion_error);
  CHECK_THROWS_AS(row.affine(1, double_of(0x7FF8000000000000U)), assertion_error);
}

TEST_CASE("asking without a row, or after its release, is misuse", "[core][candidates]") {
  candidates row;
  CHECK_THROWS_AS(row.status(), assertion_error);
  CHECK_THROWS_AS(row.logit(0), assertion_error);
  std::vector<float> logits{1, 2, 3};
  row.bind(logits);
  CHECK(row.size() == 3);
  row.release();
  CHECK(row.vocabulary_size() == 0);
  CHECK_THROWS_AS(row.status(), assertion_error);
  CHECK_THROWS_AS(row.size(), assertion_error);
  CHECK_THROWS_AS(row.max(), assertion_error);
  CHECK_THROWS_AS(row.argmax(), assertion_error);
  CHECK_THROWS_AS(row.logit(0), assertion_error);
}

// ---- the caller's row

TEST_CASE("a mutable row is restored bit for bit, whatever its values", "[core][candidates]") {
  std::vector<float> logits;
  for (const std::uint32_t bits : {0x7FC12345U, 0xFFC00001U, 0x7F800001U, 0x00000001U, 0x807FFFFFU, 0x80000000U,
                                   0x00000000U, 0xFF800000U, 0x7F800000U, 0x3F800000U, 0xC2FF1234U}) {
    logits.push_back(float_of(bits));
  }
  std::vector<std::uint32_t> before;
  for (const float z : logits) before.push_back(bits_of(z));
  candidates row;
  for (int ending = 0; ending < 3; ++ending) {
    row.bind(logits);
    for (int again = 0; again < 3; ++again) {  // the same ids edited again and again
      for (std::size_t i = 0; i < logits.size(); ++i) {
        row.set(static_cast<token_id>(i), static_cast<float>(again + 1));
        row.add(static_cast<token_id>(i), 0.5F);
      }
    }
    row.ban(9);
    row.affine(2, 1);
    row.set(10, -3);
    if (ending == 0) row.keep_largest(3);
    if (ending == 1) row.transform([](token_id, float z) { return z + 1; });
    if (ending == 2) {
      candidates other;
      std::vector<float> other_row{1};
      other.bind(other_row);
      row.bind(other_row.data() == nullptr ? std::span<const float>() : std::span<const float>(other_row));
    }
    row.release();
    for (std::size_t i = 0; i < logits.size(); ++i) CHECK(bits_of(logits[i]) == before[i]);
  }
  {
    candidates scoped;
    scoped.bind(logits);
    scoped.set(9, 7);
    CHECK(logits[9] == 7);  // in place
  }
  for (std::size_t i = 0; i < logits.size(); ++i) CHECK(bits_of(logits[i]) == before[i]);
}

TEST_CASE("const and 16-bit rows are never written", "[core][candidates]") {
  const std::vector<float> logits{1, 2, 3, 4};
  const std::vector<bfloat16> wide(200, bfloat16{0x3F80});
  candidates row;
  row.bind(logits);
  row.set(0, 9);
  row.ban(3);
  row.transform([](token_id, float z) { return -z; });
  row.rewrite([](token_id, float) { return 1.0F; });
  CHECK(logits == std::vector<float>{1, 2, 3, 4});
  row.bind(wide);
  row.set(130, 5);
  row.set(199, 7);
  CHECK(row.argmax() == 199);
  CHECK(row.logit(130) == 5);
  CHECK(row.logit(131) == 1);
  CHECK(row.size() == 200);
}

TEST_CASE("a mutable 16-bit row is not written either", "[core][candidates]") {
  std::vector<float16> logits(70, float16{0x3C00});
  candidates row;
  row.bind(logits);
  row.set(69, -5);
  row.add(0, 1);
  for (const float16 h : logits) CHECK(h.bits == 0x3C00);
  CHECK(row.logit(69) == -5);
  CHECK(row.logit(0) == 2);
}

TEST_CASE("a visit or transform that throws leaves the row restored", "[core][candidates]") {
  splitmix next(42);
  auto logits = naive::random_row(next, 5000);
  const auto before = logits;
  const auto thrower = [](token_id id, float z) -> float {
    if (id == 4000) throw std::runtime_error("stop");
    return z;
  };
  {
    candidates row;
    row.bind(logits);
    row.set(3, 100);
    CHECK_THROWS_AS(row.transform(thrower), std::runtime_error);
  }
  CHECK(logits == before);
  {
    candidates row;
    row.bind(logits);
    row.set(3, 100);
    CHECK_THROWS_AS(row.rewrite(thrower), std::runtime_error);
  }
  CHECK(logits == before);
  {
    candidates row;
    row.bind(logits);
    row.set(3, 100);
    CHECK_THROWS_AS(row.visit([&](token_id id, float z) { (void)thrower(id, z); }), std::runtime_error);
  }
  CHECK(logits == before);
}

// ---- edits

TEST_CASE("gone stays gone under every edit, and rewrite alone revives", "[core][candidates]") {
  for (const bool narrowed : {false, true}) {
    std::vector<float> logits{1, gone, 3, 4, 5};
    candidates row;
    row.bind(logits);
    row.ban(3);
    if (narrowed) row.keep_largest(3);
    row.set(1, 9);
    row.set(3, 9);
    row.add(1, 9);
    row.add(3, 9);
    const token_id list[] = {1, 3, 0, 2, 4};
    row.allow(std::span<const token_id>(list));
    row.transform([](token_id, float z) { return z + 1; });
    CHECK(naive::ids(row) == ids_list{0, 2, 4});
    CHECK_FALSE(row.contains(1));
    CHECK_FALSE(row.contains(3));
    CHECK(decant::is_gone(row.logit(3)));
    row.rewrite([](token_id, float z) { return decant::is_gone(z) ? 0.5F : z; });
    CHECK(naive::ids(row) == ids_list{0, 1, 2, 3, 4});
    CHECK(row.logit(1) == 0.5F);
    CHECK(row.logit(4) == 6);
    row.release();
    CHECK(logits == std::vector<float>{1, gone, 3, 4, 5});
  }
}

TEST_CASE("rewrite gives every id once, in order, gone ones as -inf", "[core][candidates]") {
  std::vector<float> logits(130, 1.0F);
  candidates row;
  row.bind(logits);
  row.affine(2, 3);
  row.set(7, 100);
  row.keep_largest(10);
  token_id expected = 0;
  row.rewrite([&](token_id id, float z) {
    CHECK(id == expected++);
    if (id == 7) {
      CHECK(z == 100);
    } else if (id < 10) {
      CHECK(z == 5);
    } else {
      CHECK(decant::is_gone(z));
    }
    return z;
  });
  CHECK(expected == 130);
  CHECK(row.size() == 10);
}

TEST_CASE("adding -inf bans, and so do set and transform with it", "[core][candidates]") {
  std::vector<float> logits{1, 2, 3, 4};
  candidates row;
  row.bind(logits);
  row.affine(0.5, 1);
  row.add(3, gone);
  row.set(2, gone);
  row.transform([](token_id id, float z) { return id == 1 ? gone : z; });
  CHECK(naive::ids(row) == ids_list{0});
  CHECK(row.argmax() == 0);
  CHECK(row.draw(draw_stream(1)) == 0);
}

TEST_CASE("affine is lazy, composes, and edits after it have the value they name", "[core][candidates]") {
  std::vector<float> logits{1, 2, 3, -4};
  candidates row;
  row.bind(logits);
  row.affine(2);
  row.affine(1, 10);
  row.affine(0.5, -1);
  CHECK(logits == std::vector<float>{1, 2, 3, -4});
  CHECK(row.logit(0) == 5);  // ((1 * 2) + 10) / 2 - 1
  CHECK(row.logit(3) == 0);
  row.set(1, 7);
  CHECK(row.logit(1) == 7);
  row.add(2, 1.5F);
  CHECK(row.logit(2) == 8.5F);
  CHECK(row.argmax() == 2);
  CHECK(row.max() == 8.5);
}

TEST_CASE("edits of many tokens are those of one after the other, however the row stands", "[core][candidates]") {
  splitmix next(77);
  // What has happened to a row before: it is fresh, has been read, edited, masked, scaled, rewritten, bounded, listed.
  const std::vector<std::function<void(candidates&)>> pasts{
      [](candidates&) {},
      [](candidates& row) { static_cast<void>(row.argmax()); },
      [](candidates& row) { row.set(70, 3.5F), row.ban(71); },
      [](candidates& row) { row.allow(std::vector<std::uint64_t>(100, 0xF0F0F0F0F0F0F0F0U)); },
      [](candidates& row) { row.affine(0.7, -3); },
      [](candidates& row) { row.transform([](token_id, float z) { return z / 2; }); },
      [](candidates& row) { row.keep_largest(5000); },
      [](candidates& row) { row.keep_largest(300); },
  };
  struct change {
    token_id id;
    float amount;
  };
  std::vector<float> logits = naive::random_row(next, 6000);
  const std::vector<float> before = logits;
  std::vector<bfloat16> wide;
  for (const float z : logits) wide.push_back({static_cast<std::uint16_t>(bits_of(z) >> 16)});
  std::vector<change> changes;
  for (std::size_t i = 0; i < 200; ++i) {
    // Some twice, some next to each other, some bans, some too large for a float.
    const auto id = i % 3 == 0 ? static_cast<token_id>(next.below(100)) : static_cast<token_id>(next.below(6000));
    const float amount = i % 17 == 0 ? gone : i % 19 == 0 ? 3e38F : 0.25F * static_cast<float>(next.below(16)) - 2;
    changes.push_back({id, amount});
  }
  for (const auto& past : pasts) {
    for (const bool adds : {false, true}) {
      const auto agree = [&](auto bind) {
        std::vector<float> together, single;
        candidates row;
        for (const bool at_once : {true, false}) {
          bind(row);
          past(row);
          const auto edited = [](float amount, float z) { return std::isfinite(amount) ? z / 2 + 1 : amount; };
          if (at_once && adds) row.add_each(changes, [](const change& c) { return c.amount; });
          if (at_once && !adds) {
            row.edit_each(changes, [&](const change& c, float z) { return edited(c.amount, z); });
          }
          for (const change& c : changes) {
            if (at_once) break;
            if (adds) row.add(c.id, c.amount);
            if (!adds) row.set(c.id, edited(c.amount, row.logit(c.id)));
          }
          std::vector<float>& out = at_once ? together : single;
          for (token_id id = 0; id < 6000; ++id) out.push_back(row.logit(id));
          out.push_back(static_cast<float>(row.argmax()));
          out.push_back(static_cast<float>(row.size()));
        }
        CHECK(std::ranges::equal(together, single, [](float x, float y) { return bits_of(x) == bits_of(y); }));
      };
      agree([&](candidates& row) { row.bind(std::span<float>(logits)); });
      CHECK(logits == before);
      agree([&](candidates& row) { row.bind(std::span<const float>(logits)); });
      agree([&](candidates& row) { row.bind(wide); });
    }
  }
}

TEST_CASE("histories are counted once for all who ask", "[core][candidates]") {
  std::vector<float> logits(20, 1);
  candidates row;
  row.bind(logits);
  const ids_list text{5, 2, 5, 7};
  for (int i = 0; i < 3; ++i) {
    const auto seen = row.occurrences(std::span(text).first(static_cast<std::size_t>(i) + 2));
    REQUIRE(seen.size() == (i == 2 ? 3 : 2));
    CHECK(seen[0].id == 5);
    CHECK(seen[0].count == (i == 0 ? 1 : 2));
  }
}

TEST_CASE("an edited token under a bound keeps the fate it had when it was edited", "[core][candidates]") {
  // 6,000 tokens, 5,000 of them kept: too many for a list, so the bound itself is what remembers.
  std::vector<float> logits(6000);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = -0.001F * static_cast<float>(i);
  for (const bool constant : {false, true}) {
    candidates row;
    if (constant) {
      row.bind(std::as_const(logits));
    } else {
      row.bind(logits);
    }
    row.keep_largest(5000);
    CHECK(row.size() == 5000);
    row.set(10, -100);  // far below the bound: it was let through, it stays
    row.add(11, -100);
    row.set(5500, 100);  // far above: it was removed, it stays so
    CHECK(row.contains(10));
    CHECK(row.logit(10) == -100);
    CHECK(row.contains(11));
    CHECK_FALSE(row.contains(5500));
    CHECK(row.size() == 5000);
    row.ban(12);
    CHECK(row.size() == 4999);
    const token_id list[] = {10, 12, 13, 4999, 5000, 5500};
    row.allow(std::span<const token_id>(list));
    CHECK(naive::ids(row) == ids_list{10, 13, 4999});
    row.transform([](token_id, float z) { return -z; });
    CHECK(row.argmax() == 10);
    row.release();
    CHECK(logits[10] == -0.001F * 10);
    CHECK(logits[5500] == -0.001F * 5500);
  }
}

TEST_CASE("masks, bounds and transforms in every order over a window", "[core][candidates]") {
  splitmix next(43);
  const auto logits = naive::random_row(next, 10000);
  const auto mask_rule = [](std::size_t t) { return t % 7 != 0; };
  std::vector<std::uint64_t> mask((logits.size() + 63) / 64, 0);
  for (std::size_t t = 0; t < logits.size(); ++t) {
    if (mask_rule(t)) mask[t / 64] |= std::uint64_t{1} << (t % 64);
  }
  const auto f = [](token_id id, float z) { return id % 3 == 0 ? z - 4 : z; };
  std::array<int, 4> order{0, 1, 2, 3};
  candidates row;
  do {
    naive::row plain(logits);
    row.bind(logits);
    for (const int what : order) {
      if (what == 0) row.allow(mask), plain.allow(mask_rule);
      if (what == 1) row.keep_largest(7000), plain.keep_largest(7000);
      if (what == 2) row.transform(f), plain.transform(f);
      if (what == 3)
        row.set(5, 3), plain.set(5, 3), row.ban(6), plain.set(6, gone), row.affine(0.7), plain.affine(0.7, 0);
      REQUIRE(naive::survivors(row) == naive::survivors(plain));
    }
    row.keep_largest(4500);
    plain.keep_largest(4500);
    REQUIRE(naive::survivors(row) == naive::survivors(plain));
    row.keep_largest(100);
    plain.keep_largest(100);
    REQUIRE(naive::survivors(row) == naive::survivors(plain));
    REQUIRE(row.size() == plain.size());
  } while (std::ranges::next_permutation(order).found);
}

TEST_CASE("a mask shorter than the vocabulary ends it, a longer one does not lengthen it", "[core][candidates]") {
  std::vector<float> logits(100, 1.0F);
  candidates row;
  row.bind(logits);
  row.allow(std::vector<std::uint64_t>{~std::uint64_t{0}});
  CHECK(row.size() == 64);
  row.bind(logits);
  row.allow(std::vector<std::uint64_t>(9, ~std::uint64_t{0}));
  CHECK(row.size() == 100);
  row.allow(std::span<const std::uint64_t>());
  CHECK(row.status() == row_status::empty);
  CHECK(row.draw(draw_stream(1)) == no_token);
}

TEST_CASE("allowing a set, then setting, forces a token; forcing a gone one empties the row", "[core][candidates]") {
  std::vector<float> logits{1, gone, 3};
  candidates row;
  const token_id first[] = {0}, missing[] = {1};
  row.bind(logits);
  row.allow(std::span<const token_id>(first));
  row.set(0, 0);
  CHECK(row.draw(draw_stream(5)) == 0);
  CHECK(row.probabilities().probability(0) == 1);
  row.bind(logits);
  row.allow(std::span<const token_id>(missing));
  row.set(1, 0);
  CHECK(row.status() == row_status::empty);
  CHECK(row.draw(draw_stream(5)) == no_token);
  CHECK(row.argmax() == no_token);
}

TEST_CASE("extreme scales keep the order and the argmax", "[core][candidates]") {
  for (double scale = 1e-300; scale < 2e300; scale *= 1e12) {
    CAPTURE(scale);
    std::vector<float> logits{1, 3, 2, 3, -1000};
    candidates row;
    row.bind(logits);
    row.affine(scale);
    CHECK(row.status() == row_status::ok);
    CHECK(row.argmax() == 1);
    const auto order = row.descending(5);
    const ids_list expected{1, 3, 2, 0, 4};
    for (std::size_t i = 0; i < 5; ++i) CHECK(order[i].id == expected[i]);
    CHECK_FALSE(nan_bits(row.entropy()));
    CHECK(row.entropy() >= 0);
    CHECK(row.entropy() <= std::log(5.0) + 1e-12);
    const decant::law law = row.probabilities();
    double sum = 0;
    for (const double w : law.weights) sum += w / law.total;
    CHECK(sum == Approx(1));
    CHECK(law.probability(1) == law.probability(3));
    const token_id drawn = row.draw(draw_stream(3));
    CHECK(law.probability(drawn) > 0);
  }
}

TEST_CASE("an edit that a scaled float cannot hold is still what was asked for", "[core][candidates]") {
  std::vector<float> logits{1, 3, 2};
  candidates row;
  for (const double scale : {1e-300, 1e-60, 1e-39}) {
    CAPTURE(scale);
    row.bind(logits);
    row.affine(scale);
    row.set(0, 5);  // 5 / scale is no float
    CHECK(row.logit(0) == 5);
    CHECK(row.argmax() == 0);
    row.add(2, 7);
    CHECK(row.logit(2) == Approx(7));
    CHECK(row.argmax() == 2);
    CHECK(row.status() == row_status::ok);
    row.release();
    CHECK(logits == std::vector<float>{1, 3, 2});
  }
  row.bind(logits);
  row.affine(1e300);
  row.set(0, -5);
  CHECK(row.argmax() == 1);
  row.keep_largest(2);
  CHECK(naive::ids(row) == ids_list{1, 2});
}

TEST_CASE("folding the scale in does not hide an infinity from the status", "[core][candidates]") {
  // Logits read as clamped to the largest float; the row must not become a good one through that.
  std::vector<float> logits{1, plus_infinity, 2};
  candidates row;
  row.bind(logits);
  row.affine(0.5);
  row.transform([](token_id, float z) { return z; });
  CHECK(row.status() == row_status::not_finite);
  row.bind(logits);
  row.affine(1e-60);
  row.set(0, 5);
  CHECK(row.status() == row_status::not_finite);
}

TEST_CASE("log-probabilities shift a row without changing what it means", "[core][candidates]") {
  // A shift of any size cancels: masses, entropy and spread are about differences.
  const std::vector<float> logits{2, 1, 0.5F, 0, -1, -3};
  candidates row;
  row.bind(logits);
  const double entropy = row.entropy(), sigma = row.sigma();
  for (const double shift : {1e3, -1e9, 1e12, -1e15, 1e18, 1e30}) {
    CAPTURE(shift);
    row.bind(logits);
    row.affine(1, shift);
    CHECK(row.entropy() == Approx(entropy).epsilon(1e-9));
    CHECK(row.sigma() == Approx(sigma).epsilon(1e-9));
    row.keep_mass(0.8);
    CHECK(naive::ids(row) == ids_list{0, 1, 2});
  }
}

// ---- steady state

/// One round over everything that candidates can do, on all storages.
void use_everything(candidates& row, decant::law& law, std::span<float> in_place, std::span<const bfloat16> wide,
                    std::span<const std::uint64_t> mask, std::span<const token_id> list) {
  const std::span<const float> constant = in_place;
  std::uint64_t seed = 0;
  const auto finish = [&] {
    ++seed;
    (void)row.draw(draw_stream(seed));
    row.probabilities(law);
    (void)row.draw(draw_stream(seed + 100));
    (void)row.descending(40);
    (void)row.entropy();
    (void)row.sigma();
    row.release();
  };
  for (int shape = 0; shape < 9; ++shape) {
    for (int storage = 0; storage < 3; ++storage) {
      if (storage == 0) row.bind(in_place);
      if (storage == 1) row.bind(constant);
      if (storage == 2) row.bind(wide);
      row.set(3, 2);
      row.add(64, 1);
      row.affine(0.8, 0.1);
      if (shape == 1) row.allow(mask);
      if (shape == 2) row.allow(list);
      if (shape == 3) row.transform([](token_id, float z) { return z * 0.5F; });
      if (shape == 4) row.rewrite([](token_id, float z) { return z; });
      if (shape == 5) row.keep_largest(in_place.size() - 10), row.set(7, 1);
      if (shape == 6) row.keep_largest(30), row.ban(3);
      if (shape == 7) row.keep_mass(0.7), row.keep_above(0.5);
      if (shape == 8) row.keep_mass_around(0.9, 1, 0.3);
      finish();
    }
  }
}

TEST_CASE("in steady state nothing allocates, whatever is done", "[core][candidates]") {
  splitmix next(48);
  for (const std::size_t size : {std::size_t{500}, std::size_t{9000}}) {
    auto logits = naive::random_row(next, size);
    std::vector<bfloat16> wide;
    for (const float z : logits) wide.push_back({static_cast<std::uint16_t>(bits_of(z) >> 16)});
    const std::vector<std::uint64_t> mask((size + 63) / 64, 0x7777777777777777U);
    ids_list list;
    for (std::size_t t = 0; t < size; t += 2) list.push_back(static_cast<token_id>(t));
    candidates row;
    decant::law law;
    use_everything(row, law, logits, wide, mask, list);
    const std::size_t before = decant::testing::allocations();
    use_everything(row, law, logits, wide, mask, list);
    use_everything(row, law, logits, wide, mask, list);
    const std::size_t made = decant::testing::allocations() - before;
    CHECK(made == 0);
    // The counter itself counts.
    const std::size_t start = decant::testing::allocations();
    ::operator delete(::operator new(1));  // a direct call: a new expression may be optimised away
    CHECK(decant::testing::allocations() > start);
  }
}

// ---- numbers

TEST_CASE("the golden numbers of a small row", "[core][candidates]") {
  const std::vector<float> logits{2, 1, 0.5F, 0, -1, -3};
  const double p[] = {0.560893422, 0.206341159, 0.125152239, 0.075908670, 0.027925239, 0.003779270};
  candidates row;
  row.bind(logits);
  const auto law = row.probabilities();
  for (std::size_t i = 0; i < 6; ++i) CHECK(law.probability(static_cast<token_id>(i)) == Approx(p[i]).epsilon(3e-7));
  CHECK(row.entropy() == Approx(1.226783295532).epsilon(1e-12));
  CHECK(row.sigma() == Approx(1.592081097879).epsilon(1e-12));
  CHECK(row.max() == 2);
  double sum = 0, squares = 0, roots = 0, inverse = 0;
  for (const float z : logits) {
    sum += std::exp(static_cast<double>(z));
    squares += std::exp(2 * static_cast<double>(z));
    roots += std::exp(0.5 * static_cast<double>(z));
    inverse += std::exp(-static_cast<double>(z));
  }
  CHECK(row.log_sum() == Approx(std::log(sum)).epsilon(1e-14));
  CHECK(row.log_sum(2) == Approx(std::log(squares)).epsilon(1e-14));
  CHECK(row.log_sum(0.5) == Approx(std::log(roots)).epsilon(1e-14));
  CHECK(row.log_sum(-1) == Approx(std::log(inverse)).epsilon(1e-14));
  CHECK(row.log_sum(0) == Approx(std::log(6.0)).epsilon(1e-14));
  row.affine(2);
  CHECK(row.probabilities().probability(0) == Approx(0.829213426).epsilon(1e-6));
}

TEST_CASE("a token's distance from the largest, and what it is when it is gone", "[core][candidates]") {
  const std::vector<float> logits{2, 1, gone, -3};
  candidates row;
  row.bind(std::span<const float>(logits));
  row.affine(0.5, 1e9);
  CHECK(row.below_max(0) == 0);
  CHECK(row.below_max(1) == -0.5);
  CHECK(row.below_max(2) == static_cast<double>(gone));
  CHECK(row.below_max(3) == -2.5);  // a float near 1e9 could not hold it
  row.ban(0);
  CHECK(row.below_max(3) == -2);
  CHECK_THROWS_AS(row.below_max(4), assertion_error);
}

TEST_CASE("the quick sum is near the exact one, and the same whatever was asked before", "[core][candidates]") {
  for (const std::size_t size : {10U, 4096U, 4097U, 20'000U}) {
    std::vector<float> logits(size);
    const draw_stream draws(size);
    for (std::size_t i = 0; i < size; ++i) {
      const auto id = static_cast<token_id>(i);
      logits[i] = i % 7 == 3 ? gone : static_cast<float>(3 * draws.gumbel(decant::purpose::user, id));
    }
    candidates asked, fresh;
    asked.bind(std::span<const float>(logits));
    fresh.bind(std::span<const float>(logits));
    const double exact = asked.log_sum();
    CHECK(asked.quick_log_sum() == fresh.quick_log_sum());
    CHECK(fresh.quick_log_sum() == Approx(exact).margin(4e-6).epsilon(0));
    if (size <= candidates::compact_limit) CHECK(fresh.quick_log_sum() == exact);
    for (candidates* row : {&asked, &fresh}) {
      row->affine(1.5, -2);
      row->set(5, 9);
      row->keep_above(1);
    }
    CHECK(asked.quick_log_sum() == fresh.quick_log_sum());
    CHECK(fresh.quick_log_sum() == Approx(asked.log_sum()).margin(4e-6).epsilon(0));
  }
  const std::vector<float> none(5000, gone);
  candidates row;
  row.bind(std::span<const float>(none));
  CHECK(row.quick_log_sum() == static_cast<double>(gone));
}

TEST_CASE("equal logits of any size are uniform (ollama PR9631, tensorflow#2774)", "[core][candidates]") {
  for (const float level : {1000.0F, -1000.0F, 3e38F, -3e38F, 0.0F, 1e-38F}) {
    std::vector<float> logits(5, level);
    candidates row;
    row.bind(logits);
    const auto law = row.probabilities();
    for (token_id id = 0; id < 5; ++id) CHECK(law.probability(id) == 0.2);
    CHECK(row.entropy() == Approx(std::log(5.0)));
    CHECK(row.sigma() == 0);
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      const token_id drawn = row.draw(draw_stream(seed));
      CHECK(drawn >= 0);
      CHECK(drawn < 5);
    }
  }
}

TEST_CASE("logits far below zero are no different from logits near it (MNN)", "[core][candidates]") {
  std::vector<float> low{-250, -251, -252.5F, -300}, high{-50, -51, -52.5F, -100};
  candidates a, b;
  a.bind(low);
  b.bind(high);
  CHECK(a.probabilities() == b.probabilities());
  CHECK(a.argmax() == 0);
  a.keep_mass(0.7);
  b.keep_mass(0.7);
  CHECK(naive::ids(a) == naive::ids(b));
  for (std::uint64_t seed = 0; seed < 50; ++seed) CHECK(a.draw(draw_stream(seed)) == b.draw(draw_stream(seed)));
}

TEST_CASE("entropy and sigma look at what is there (trl#7221, koboldcpp PR1400)", "[core][candidates]") {
  std::vector<float> one{0, gone}, some{1, gone, 3, gone, 5};
  candidates row;
  row.bind(one);
  CHECK(row.entropy() == 0);
  CHECK(row.sigma() == 0);
  CHECK(row.log_sum() == 0);
  row.bind(some);
  CHECK(row.sigma() == Approx(std::sqrt(8.0 / 3)));
  row.keep_largest(2);
  CHECK(row.sigma() == Approx(1));
}

TEST_CASE("facts are dropped by every edit and narrowing", "[core][candidates]") {
  std::vector<float> logits{2, 1, 0.5F, 0, -1, -3};
  candidates row;
  const auto ask = [&] {
    (void)row.size();
    (void)row.log_sum();
    (void)row.entropy();
    (void)row.descending(3);
  };
  row.bind(logits);
  ask();
  row.set(5, 10);
  CHECK(row.max() == 10);
  CHECK(row.descending(1)[0].id == 5);
  CHECK(row.entropy() < 0.01);
  ask();
  row.add(5, -13);
  CHECK(row.max() == 2);
  CHECK(row.log_sum() == Approx(2 - std::log(0.560893422)).epsilon(1e-8));
  ask();
  row.affine(2, 1);
  CHECK(row.max() == 5);
  CHECK(row.entropy() == Approx(0.6090329358).epsilon(1e-9));
  CHECK(row.descending(2)[0].logit == 5);
  ask();
  row.ban(0);
  CHECK(row.size() == 5);
  CHECK(row.max() == 3);
  ask();
  const token_id list[] = {2, 3, 4};
  row.allow(std::span<const token_id>(list));
  CHECK(row.size() == 3);
  CHECK(row.argmax() == 2);
  ask();
  row.keep_largest(2);
  CHECK(row.size() == 2);
  CHECK(row.descending(9).size() == 2);
  CHECK(row.log_sum() == Approx(std::log(std::exp(2.0) + std::exp(1.0))));
  ask();
  row.transform([](token_id id, float) { return id == 3 ? 4.0F : 1.0F; });
  CHECK(row.argmax() == 3);
  ask();
  row.rewrite([](token_id id, float) { return static_cast<float>(id); });
  CHECK(row.size() == 6);
  CHECK(row.argmax() == 5);
}

TEST_CASE("a long row is walked down to its end in order, with weights beside it", "[core][candidates]") {
  for (const std::size_t limit : {candidates::compact_limit, std::size_t{30'000}}) {
    std::vector<float> logits;
    const draw_stream draws(7);
    for (std::uint32_t i = 0; i < 20'000; ++i) {
      const double u = draws.uniform(decant::purpose::user, i);
      logits.push_back(u < 0.1 ? gone : u < 0.3 ? 0.5F : static_cast<float>(20 * u - 10));
    }
    std::vector<entry> sorted;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (!decant::is_gone(logits[i])) sorted.push_back({static_cast<token_id>(i), logits[i]});
    }
    std::ranges::sort(sorted, decant::detail::before);
    candidates row(limit);
    row.bind(std::span<const float>(logits));
    row.affine(0.7, 3);
    for (std::size_t reach = 1; reach < 4 * sorted.size(); reach *= 3) {
      const std::size_t size = std::min(reach, sorted.size());
      const auto walked = row.descending(reach);
      REQUIRE(walked.size() == size);
      for (std::size_t i = 0; i < size; ++i) REQUIRE(walked[i].id == sorted[i].id);
      const auto weights = row.descending_weights(reach);
      REQUIRE(weights.size() == size);
      for (std::size_t i = 0; i < size; ++i) REQUIRE(weights[i] == decant::math::exp(row.below_max(sorted[i].id)));
    }
  }
}

TEST_CASE("the descending prefix grows on demand and survives being asked for less", "[core][candidates]") {
  splitmix next(44);
  const auto logits = naive::random_row(next, 3000);
  const auto order = naive::row(logits).order();
  candidates row;
  row.bind(logits);
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{31}, std::size_t{33}, std::size_t{5}, std::size_t{100},
        std::size_t{64}, std::size_t{2999}, std::size_t{5000}, std::size_t{7}}) {
    const auto prefix = row.descending(count);
    REQUIRE(prefix.size() == std::min<std::size_t>(count, 3000));
    for (std::size_t i = 0; i < prefix.size(); ++i) REQUIRE(static_cast<std::size_t>(prefix[i].id) == order[i]);
  }
  row.keep_largest(50);
  CHECK(row.descending(100).size() == 50);
  row.ban(static_cast<token_id>(order[0]));
  CHECK(static_cast<std::size_t>(row.descending(1)[0].id) == order[1]);
  CHECK(row.descending(100).size() == 49);
}

// ---- narrowing

TEST_CASE("ties go to the lower id at every border of a block and of the compact form", "[core][candidates]") {
  candidates row;
  for (const std::size_t size : {std::size_t{4095}, std::size_t{4096}, std::size_t{4097}, std::size_t{8200}}) {
    const std::vector<float> level(size, 0.25F);
    for (const std::size_t count :
         {std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{65}, std::size_t{128}, std::size_t{4094},
          std::size_t{4095}, std::size_t{4096}, std::size_t{4097}, std::size_t{8199}}) {
      if (count > size) continue;
      CAPTURE(size, count);
      row.bind(level);
      row.keep_largest(count);
      const auto kept = naive::ids(row);
      REQUIRE(kept.size() == count);
      REQUIRE(row.size() == count);
      REQUIRE(static_cast<std::size_t>(kept.back()) == count - 1);
      REQUIRE(row.logit(static_cast<token_id>(count - 1)) == 0.25F);
      if (count < size) REQUIRE_FALSE(row.contains(static_cast<token_id>(count)));
      // Again, now from whichever form it has.
      if (count > 2) {
        row.ban(0);
        row.keep_largest(count - 2);
        REQUIRE(naive::ids(row).size() == count - 2);
        REQUIRE(static_cast<std::size_t>(naive::ids(row).back()) == count - 2);
      }
    }
  }
}

TEST_CASE("ties through keep_above and keep_mass", "[core][candidates]") {
  std::vector<float> logits{1, 2, 2, 1, 2, 0};
  candidates row;
  row.bind(logits);
  row.keep_above(2);
  CHECK(naive::ids(row) == ids_list{1, 2, 4});
  row.bind(logits);
  row.keep_above(100, 2);
  CHECK(naive::ids(row) == ids_list{1, 2});
  row.bind(logits);
  row.keep_above(2, 4);
  CHECK(naive::ids(row) == ids_list{0, 1, 2, 4});
  const std::vector<float> level(8, 0.0F);
  for (std::size_t count = 1; count <= 8; ++count) {
    row.bind(level);
    row.keep_mass(static_cast<double>(count) / 8);
    CHECK(row.size() == count);
    row.bind(level);
    row.keep_mass(static_cast<double>(count) / 8 - 0.01);
    CHECK(row.size() == count);
    if (count < 8) CHECK_FALSE(row.contains(static_cast<token_id>(count)));
  }
  // -0 and 0 are equal: the lower id first.
  std::vector<float> zeros{-0.0F, 0.0F, -0.0F};
  row.bind(zeros);
  row.keep_largest(2);
  CHECK(naive::ids(row) == ids_list{0, 1});
}

TEST_CASE("a nucleus is the smallest prefix that reaches p (FlashInfer #2202, llama.cpp PR1953)",
          "[core][candidates]") {
  candidates row;
  const auto kept = [&](const std::vector<float>& logits, double p, std::size_t min_keep = 1) {
    row.bind(logits);
    row.keep_mass(p, min_keep);
    return naive::ids(row);
  };
  CHECK(kept(naive::logs({.4, .3, .2, .1}), .8) == ids_list{0, 1, 2});
  CHECK(kept(naive::logs({.3, .1, .1, .5}), .75) == ids_list{0, 3});
  CHECK(kept(naive::logs({.3, .1, .1, .5}), .81) == ids_list{0, 1, 3});
  CHECK(kept(naive::logs({.95, .05}), .9) == ids_list{0});
  CHECK(kept(naive::logs({.2, .5, .3}), 0) == ids_list{1});
  CHECK(kept(naive::logs({.2, .5, .3}), -1) == ids_list{1});
  CHECK(kept(naive::logs({.2, .5, .3}), 0, 2) == ids_list{1, 2});
  CHECK(kept(naive::logs({.2, .5, .3}), 0, 9) == ids_list{0, 1, 2});
  CHECK(kept(naive::logs({.2, .5, .3}), 1) == ids_list{0, 1, 2});
  CHECK(kept(naive::logs({.2, .5, .3}), 7) == ids_list{0, 1, 2});
  // Rare tokens survive p = 1 and are not lost by renormalising (FlashInfer #708).
  const auto rare = naive::logs({1 - 2e-9, 1e-9, 1e-9});
  row.bind(rare);
  row.keep_mass(1);
  CHECK(row.probabilities().size() == 3);
  splitmix next(45);
  for (int round = 0; round < 200; ++round) {
    const auto logits = naive::random_row(next, 500, -3, 3);
    const double p = next.unit();
    const auto all = naive::row(logits).probabilities();
    row.bind(logits);
    row.keep_mass(p);
    double mass = 0;
    for (const token_id id : naive::ids(row)) mass += all[static_cast<std::size_t>(id)];
    CHECK(mass >= p - 1e-12);
    CHECK(mass - all[static_cast<std::size_t>(row.descending(500).back().id)] < p);
  }
}

TEST_CASE("after a cut, masses are those of what is left (mlx-lm PR388)", "[core][candidates]") {
  const auto logits = naive::logs({.4, .3, .2, .1});
  candidates row;
  row.bind(logits);
  row.keep_largest(2);
  row.keep_mass(.5);
  CHECK(naive::ids(row) == ids_list{0});
  row.bind(logits);
  row.keep_largest(1);
  row.keep_mass(.8);
  CHECK(naive::ids(row) == ids_list{0});
  // Not idempotent: renormalised, the nucleus shrinks again.
  const auto again = naive::logs({.6, .15, .15, .1});
  row.bind(again);
  row.keep_mass(.7);
  CHECK(naive::ids(row) == ids_list{0, 1});
  row.keep_mass(.7);
  CHECK(naive::ids(row) == ids_list{0});
}

TEST_CASE("mass can be gathered around a value, which may leave the largest out", "[core][candidates]") {
  const std::vector<float> logits{2, 1, 0.5F, 0, -1, -3};
  candidates row;
  const auto typical = [&](double p, std::size_t min_keep = 1) {
    row.bind(logits);
    row.keep_mass_around(p, min_keep, row.log_sum() - row.entropy());
    return naive::ids(row);
  };
  CHECK(typical(.2) == ids_list{1});
  CHECK(typical(.5) == ids_list{0, 1});
  CHECK(typical(.9) == ids_list{0, 1, 2, 3});
  CHECK(typical(0) == ids_list{1});
  CHECK(typical(0, 3) == ids_list{0, 1, 2});
  CHECK(typical(1) == ids_list{0, 1, 2, 3, 4, 5});
  CHECK(row.argmax() == 0);
  row.bind(logits);
  row.keep_mass_around(.2, 1, row.log_sum() - row.entropy());
  CHECK(row.argmax() == 1);
  CHECK(row.max() == 1);
}

TEST_CASE("a threshold on probabilities keeps what the exact probabilities say, also at the border itself",
          "[core][candidates]") {
  splitmix next(90);
  for (const std::size_t size : {std::size_t{7}, std::size_t{300}, std::size_t{9000}}) {
    for (int round = 0; round < 12; ++round) {
      const auto logits = naive::random_row(next, size);
      const double scale = next.between(0.3, 3), power = static_cast<double>(next.below(3));
      candidates exact;
      exact.bind(logits);
      exact.affine(scale);
      const double log_mass = exact.log_mass();
      // Every other time the border is a token's own probability, which a quick sum cannot decide.
      const auto at = static_cast<token_id>(next.below(size));
      double log_p = next.between(-12, -1);
      if (round % 2 == 0 && exact.contains(at)) log_p = exact.log_probability(at) + power * log_mass;
      const double least = log_p + (power == 1 ? 0 : decant::math::product(1 - power, log_mass));
      std::vector<token_id> expected;
      exact.visit_below_max([&](token_id id, double below) {
        if (below >= least) expected.push_back(id);
      });
      INFO(size << " tokens, round " << round << ", power " << power);

      candidates row;  // nothing has been summed here
      row.bind(logits);
      row.affine(scale);
      CHECK(row.count_probable({log_p, power}) == expected.size());
      if (expected.empty()) expected.assign(1, row.argmax());
      row.keep_probable({log_p, power});
      std::vector<token_id> kept;
      row.visit([&](token_id id, float) { kept.push_back(id); });
      CHECK(kept == expected);
    }
  }
}

TEST_CASE("tokens picked block by block are there, and none weighs more than its block", "[core][candidates]") {
  splitmix next(92);
  for (const std::size_t size : {std::size_t{70}, std::size_t{700}, std::size_t{9000}}) {
    const auto logits = naive::random_row(next, size);
    for (const std::size_t count : {size, std::size_t{40}}) {
      candidates row;
      row.bind(logits);
      row.keep_largest(count);
      for (int bans = 0; bans < 9; ++bans) row.ban(row.descending(20)[next.below(20)].id);  // some of them listed
      std::vector<std::pair<token_id, double>> all, picked;
      row.visit_below_max([&](token_id id, double below) { all.emplace_back(id, below); });
      double bound = 0;
      row.visit_below_max(
          [&](token_id first, double most) {
            CHECK(first % 64 == 0);
            bound = most;
            return ~std::uint64_t{0};
          },
          [&](token_id id, double below) {
            picked.emplace_back(id, below);
            if (std::exp(below) > bound) FAIL("token " << id << " weighs more than its block");
          });
      CHECK(picked == all);
      CHECK(picked.size() == row.size());
      picked.clear();
      constexpr std::uint64_t some = 0xF000000000000F0F;
      row.visit_below_max([](token_id, double) { return some; },
                          [&](token_id id, double below) { picked.emplace_back(id, below); });
      std::erase_if(all, [](const auto& token) { return (some >> (token.first % 64) & 1) == 0; });
      CHECK(picked == all);
    }
  }
}

TEST_CASE("the measure of a law is its total, and outlives a narrowing", "[core][candidates]") {
  splitmix next(91);
  for (const std::size_t size : {std::size_t{5}, std::size_t{700}, std::size_t{9000}}) {
    const auto logits = naive::random_row(next, size);
    candidates row;
    row.bind(logits);
    row.affine(1.5);
    const decant::law whole = row.probabilities();
    const auto measure = row.measure_law();
    const bool quickly = size > candidates::compact_limit;
    if (!quickly) CHECK(measure.total == whole.total);
    CHECK(measure.total == Approx(whole.total).epsilon(4e-6));
    const token_id first = row.argmax();
    CHECK(std::abs(row.quick_log_probability(first) - row.log_probability(first)) < (quickly ? 4e-6 : 1e-300));
    row.keep_largest(3);
    if (!quickly) CHECK(row.log_probability(first, measure) == whole.log_probability(first));
    CHECK(std::abs(row.log_probability(first, measure) - whole.log_probability(first)) < 4e-6);
    CHECK(row.quick_log_probability(first) == row.log_probability(first));
    row.ban(first);
    CHECK(decant::is_gone(static_cast<float>(row.quick_log_probability(first))));
    CHECK(decant::is_gone(static_cast<float>(row.log_probability(first, measure))));
  }
  const std::vector<float> nothing(3, decant::gone);
  candidates bad;
  bad.bind(nothing);
  CHECK(bad.measure_law().total == 0);
}

TEST_CASE("mass around a value over more tokens than a list holds", "[core][candidates]") {
  splitmix next(46);
  const auto logits = naive::random_row(next, 12000, -2, 2);
  candidates row;
  for (const double around : {0.0, 0.7, 1.9, -5.0}) {
    for (const double p : {0.2, 0.6, 0.9}) {
      naive::row plain(logits);
      row.bind(logits);
      row.affine(1.25, 0.5);
      plain.affine(1.25, 0.5);
      row.keep_mass_around(p, 1, around);
      plain.keep_mass_around(p, 1, around);
      CHECK(naive::survivors(row) == naive::survivors(plain));
      row.keep_largest(4200);
      plain.keep_largest(4200);
      CHECK(naive::survivors(row) == naive::survivors(plain));
    }
  }
}

TEST_CASE("narrowing keeps at least one, and counts past the size keep all", "[core][candidates]") {
  std::vector<float> logits{1, 3, 2};
  candidates row;
  row.bind(logits);
  row.keep_largest(std::numeric_limits<std::size_t>::max());
  row.keep_largest(3);
  row.keep_above(-100);
  row.keep_above(-1e308);
  CHECK(row.size() == 3);
  row.keep_largest(0);
  CHECK(naive::ids(row) == ids_list{1});
  row.keep_above(1e308, 0);
  row.keep_mass(0, 0);
  row.keep_largest(0);
  CHECK(naive::ids(row) == ids_list{1});
  CHECK(row.draw(draw_stream(9)) == 1);
}

// ---- data that is bad

TEST_CASE("NaN and +inf make a row bad wherever they stand (colibri#369, FlashInfer #2402, rten#1089)",
          "[core][candidates]") {
  candidates row;
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{3}, std::size_t{64}, std::size_t{65}, std::size_t{200}, std::size_t{5000}}) {
    for (const std::size_t place : {std::size_t{0}, size / 2, size - 1}) {
      for (const float bad : {nan_value, plus_infinity, float_of(0xFFC00001U), float_of(0x7F800001U)}) {
        CAPTURE(size, place);
        std::vector<float> logits(size, 0.5F);
        logits[place] = bad;
        row.bind(logits);
        CHECK(row.status() == row_status::not_finite);
        CHECK(row.draw(draw_stream(1)) == no_token);
        CHECK(row.argmax() == no_token);
        CHECK(row.probabilities().empty());
        CHECK(row.descending(5).empty());
        CHECK(bits_of(row.max()) == 0xFFF0000000000000U);
        row.keep_largest(1);
        row.keep_above(0);
        row.keep_mass(0.5);
        row.keep_mass_around(0.5, 1, 0);
        row.set(0, 1);
        row.add(0, 1);
        row.affine(2);
        row.transform([](token_id, float) { return 1.0F; });
        const token_id list[] = {0};
        row.allow(std::span<const token_id>(list));
        CHECK(row.status() == row_status::not_finite);
        CHECK(row.draw(draw_stream(1)) == no_token);
        row.rewrite([](token_id id, float) { return static_cast<float>(id % 2); });
        CHECK(row.status() == row_status::ok);
        CHECK(row.size() == size);
      }
    }
  }
}

TEST_CASE("each way of reading a row finds that it is bad", "[core][candidates]") {
  std::vector<float> logits{1, nan_value, 2};
  const auto fresh = [&](auto ask) {
    candidates row;
    row.bind(logits);
    ask(row);
    return row.status();
  };
  CHECK(fresh([](candidates& r) { (void)r.size(); }) == row_status::not_finite);
  CHECK(fresh([](candidates& r) { (void)r.max(); }) == row_status::not_finite);
  CHECK(fresh([](candidates& r) { (void)r.log_sum(); }) == row_status::not_finite);
  CHECK(fresh([](candidates& r) { (void)r.log_sum(2); }) == row_status::not_finite);
  CHECK(fresh([](candidates& r) { CHECK(r.entropy() == 0); }) == row_status::not_finite);
  CHECK(fresh([](candidates& r) { CHECK(r.sigma() == 0); }) == row_status::not_finite);
  CHECK(fresh([](candidates& r) { r.keep_largest(1); }) == row_status::not_finite);
  CHECK(fresh([](candidates& r) { r.keep_above(0); }) == row_status::not_finite);
  CHECK(fresh([](candidates& r) { r.keep_mass(0.5); }) == row_status::not_finite);
  CHECK(fresh([](candidates& r) { (void)r.probabilities(); }) == row_status::not_finite);
}

TEST_CASE("NaN and +inf at tokens that are gone before the row is read do no harm", "[core][candidates]") {
  std::vector<float> logits{nan_value, 1, plus_infinity, 3};
  candidates row;
  row.bind(logits);
  row.ban(0);
  row.ban(2);
  CHECK(row.status() == row_status::ok);
  CHECK(row.argmax() == 3);
  row.bind(logits);
  const token_id list[] = {1, 3};
  row.allow(std::span<const token_id>(list));
  CHECK(row.status() == row_status::ok);
  CHECK(row.size() == 2);
  row.bind(logits);
  row.set(0, 2);  // an edit does not read: it may repair
  row.transform([](token_id id, float z) { return id == 2 ? gone : z; });
  CHECK(row.status() == row_status::ok);
  CHECK(naive::ids(row) == ids_list{0, 1, 3});
  row.release();
  CHECK(bits_of(logits[0]) == bits_of(nan_value));
  CHECK(bits_of(logits[2]) == bits_of(plus_infinity));
}

TEST_CASE("logit, set, add and affine do not read the row", "[core][candidates]") {
  std::vector<float> logits{nan_value, 1, 2};
  candidates row;
  row.bind(logits);
  CHECK(row.logit(1) == 1);
  row.set(1, 5);
  row.add(2, 1);
  row.affine(2);
  CHECK(row.logit(1) == 10);
  CHECK(row.logit(2) == 6);
  row.ban(0);
  CHECK(row.status() == row_status::ok);
}

TEST_CASE("an edit can make a row bad, and it is found out", "[core][candidates]") {
  for (const float bad : {nan_value, plus_infinity}) {
    for (const bool scaled : {false, true}) {
      for (const bool narrowed : {false, true}) {
        std::vector<float> logits{1, 2, 3};
        candidates row;
        row.bind(logits);
        if (scaled) row.affine(0.3, 1);
        if (narrowed) row.keep_largest(2);
        row.set(2, bad);
        CHECK(row.status() == row_status::not_finite);
        CHECK(row.draw(draw_stream(1)) == no_token);
        row.release();
        CHECK(logits == std::vector<float>{1, 2, 3});
      }
    }
  }
}

TEST_CASE("a row of -inf is empty, a row with one number left is certain", "[core][candidates]") {
  for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{64}, std::size_t{5000}}) {
    std::vector<float> logits(size, gone);
    candidates row;
    row.bind(logits);
    CHECK(row.status() == row_status::empty);
    CHECK(row.size() == 0);
    CHECK(row.draw(draw_stream(1)) == no_token);
    CHECK(row.argmax() == no_token);
    CHECK(row.entropy() == 0);
    row.keep_largest(1);
    CHECK(row.status() == row_status::empty);
    for (const std::size_t place : {std::size_t{0}, size / 2, size - 1}) {
      logits[place] = -3e38F;
      row.bind(logits);
      CHECK(row.status() == row_status::ok);
      CHECK(row.size() == 1);
      CHECK(row.draw(draw_stream(1)) == static_cast<token_id>(place));
      CHECK(row.probabilities().probability(static_cast<token_id>(place)) == 1);
      row.ban(static_cast<token_id>(place));
      CHECK(row.status() == row_status::empty);
      row.release();
      logits[place] = gone;
    }
  }
}

TEST_CASE("the next row after a bad one is a fresh start", "[core][candidates]") {
  std::vector<float> bad{nan_value, 1}, good{1, 2};
  candidates row;
  row.bind(bad);
  CHECK(row.status() == row_status::not_finite);
  row.bind(good);
  CHECK(row.status() == row_status::ok);
  CHECK(row.argmax() == 1);
  row.keep_largest(1);
  row.affine(3);
  row.bind(good);
  CHECK(row.size() == 2);
  CHECK(row.logit(1) == 2);
}

TEST_CASE("denormal logits read as 0 and are restored as they were", "[core][candidates]") {
  std::vector<float> logits{float_of(5), float_of(0x80000007U), 0.0F, float_of(0x00800000U)};
  std::vector<bfloat16> wide{{0x0001}, {0x0080}, {0x8001}};
  candidates row;
  row.bind(logits);
  CHECK(bits_of(row.logit(0)) == 0);
  CHECK(row.argmax() == 3);
  row.ban(3);
  CHECK(row.argmax() == 0);
  row.affine(1e30);
  CHECK(row.logit(0) == 0);
  row.bind(logits);
  row.set(1, float_of(77));
  CHECK(bits_of(row.logit(1)) == 0);
  row.transform([](token_id, float z) { return decant::is_gone(z) ? z : float_of(123); });
  CHECK(row.max() == 0);
  row.release();
  CHECK(bits_of(logits[0]) == 5);
  CHECK(bits_of(logits[1]) == 0x80000007U);
  row.bind(wide);
  CHECK(row.argmax() == 1);
  CHECK(row.logit(0) == 0);
}

TEST_CASE("sums have the same bits however the build is optimised", "[core][candidates][golden]") {
  splitmix next(47);
  hash all;
  candidates row;
  for (int round = 0; round < 50; ++round) {
    const auto logits = naive::random_row(next, 300);
    row.bind(logits);
    // One by one: the order in which arguments are evaluated is the compiler's choice.
    const double scale = next.between(0.2, 3);
    const double shift = next.between(-2, 2);
    const auto id = static_cast<token_id>(next.below(300));
    const auto value = static_cast<float>(next.between(-5, 5));
    row.affine(scale, shift);
    row.set(id, value);
    all.add(row.log_sum());
    all.add(row.entropy());
    all.add(row.sigma());
    all.add(row.max());
    row.visit([&](token_id, float z) { all.add(z); });
  }
  CHECK(all.value() == 0xA434BB5F78B68373U);
}

TEST_CASE("what quick sums decide is what exact ones say, in every form and on rows of every kind",
          "[core][candidates]") {
  splitmix next(2024);
  const auto best = decant::math::best_isa();
  for (int round = 0; round < 160; ++round) {
    const std::size_t size = 4097 + next.below(round % 20 == 0 ? 120'000 : 9000);
    std::vector<float> logits(size);
    const auto kind = round % 8;
    const double shift = kind == 4 ? 1000 : kind == 5 ? -300 : 0, spread = kind == 1 ? 1 : kind == 2 ? 0.01 : 2;
    for (float& z : logits) {
      double sum = 0;
      for (int i = 0; i < 4; ++i) sum += next.unit() - 0.5;
      z = static_cast<float>(shift + spread * sum * 1.7);
      if (kind == 3) z = static_cast<float>(static_cast<int>(z));
      if (kind == 6 && next.below(50) == 0) z = decant::gone;
    }
    const std::size_t raised = kind == 0 || kind == 6 ? 300 : kind == 7 ? 4000 : 0;
    for (std::size_t r = 0; r < raised; ++r) {
      logits[next.below(size)] =
          static_cast<float>(shift + 15 - (kind == 7 ? 0.9 : 1.3) * std::log(1.0 + static_cast<double>(r)));
    }
    const double scale = round % 3 == 0 ? 1 : next.between(0.3, 3), p = next.between(0.05, 0.999);
    const double log_p = next.between(-13, -0.1), power = static_cast<double>(next.below(3));
    const double entropies = next.below(3) == 0 ? next.between(0.2, 1.2) : 0, sigmas = next.between(0, 3);
    for (const auto which : {decant::math::isa::portable, decant::math::isa::avx2, decant::math::isa::avx512}) {
      if (which > best) continue;
      decant::math::use_kernels(which);
      INFO(to_string(which) << ", " << size << " tokens, kind " << kind << ", scale " << scale);
      for (int what = 0; what < 5; ++what) {
        const auto narrow = [&](candidates& row) {
          if (what == 0) row.keep_mass(p);
          if (what == 1) row.keep_probable({log_p, power});
          if (what == 2) row.keep_probable({log_p / 4, power, entropies});
          if (what == 3) row.keep_within_sigmas(sigmas, 1, static_cast<std::size_t>(round % 2));
          if (what == 4) row.keep_typical_mass(p);
        };
        candidates quick, exact;
        quick.bind(std::as_const(logits));
        quick.affine(scale);
        exact.bind(std::as_const(logits));
        exact.affine(scale);
        static_cast<void>(exact.log_sum());
        narrow(quick);
        narrow(exact);
        INFO("narrowing " << what << ", p " << p << ", log p " << log_p << ", power " << power << ", " << sigmas);
        CHECK(naive::ids(quick) == naive::ids(exact));
      }
    }
  }
  decant::math::use_kernels(best);
}

}  // namespace candidates_test
