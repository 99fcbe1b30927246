// SPDX-License-Identifier: MIT
#pragma once

#include <decant/math/exp2.hpp>
#include <decant/math/half.hpp>
#include <decant/math/hash_kernels.hpp>
#include <decant/math/isa.hpp>
#include <decant/math/kernels.hpp>
#include <decant/math/kernels_avx2.hpp>
#include <decant/math/kernels_avx512.hpp>
#include <decant/math/kernels_portable.hpp>
#include <decant/math/keyed_permutation.hpp>
#include <decant/math/mt19937.hpp>
#include <decant/math/philox.hpp>
#include <decant/math/row_products.hpp>
#include <decant/math/scalar.hpp>
#include <decant/math/splitmix64.hpp>
#include <decant/math/strict.hpp>
#include <decant/math/sum_tree.hpp>
