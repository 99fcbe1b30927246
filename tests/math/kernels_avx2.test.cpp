// SPDX-License-Identifier: MIT
#include <decant/math/kernels_avx2.hpp>

#include <vector>

#include <decant/math/kernels.hpp>

#include "support/catch.hpp"

// The agreement of all forms is tested in kernels.test.cpp; here, that this one is not another under its name.

namespace kernels_avx2_test {

using namespace decant::math;

TEST_CASE("the avx2 table holds the avx2 kernels", "[math][kernels]") {
#if DECANT_X86
  CHECK(kernels_for(isa::avx2).which == isa::avx2);
  CHECK(kernels_for(isa::avx2).quick_mass == &avx2::quick_mass);
  CHECK(kernels_for(isa::avx2).peaks_and_mass == &avx2::peaks_and_mass);
#else
  CHECK(kernels_for(isa::avx2).which == isa::portable);
#endif
}

}  // namespace kernels_avx2_test
