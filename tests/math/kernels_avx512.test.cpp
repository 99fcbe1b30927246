// SPDX-License-Identifier: MIT
#include <decant/math/kernels_avx512.hpp>

#include <vector>

#include <decant/math/kernels.hpp>

#include "support/catch.hpp"

// The agreement of all forms is tested in kernels.test.cpp; here, that this one is not another under its name.

namespace kernels_avx512_test {

using namespace decant::math;

TEST_CASE("the avx512 table holds the avx512 kernels", "[math][kernels]") {
#if DECANT_X86
  CHECK(kernels_for(isa::avx512).which == isa::avx512);
  CHECK(kernels_for(isa::avx512).quick_mass == &avx512::quick_mass);
  CHECK(kernels_for(isa::avx512).peaks_and_mass == &avx512::peaks_and_mass);
#else
  CHECK(kernels_for(isa::avx512).which == isa::portable);
#endif
}

}  // namespace kernels_avx512_test
