// SPDX-License-Identifier: MIT
#pragma once

#include <decant/core/candidates.hpp>
#include <decant/core/concepts.hpp>
#include <decant/core/context.hpp>
#include <decant/core/dense_row.hpp>
#include <decant/core/descending_sort.hpp>
#include <decant/core/describe.hpp>
#include <decant/core/draws.hpp>
#include <decant/core/errors.hpp>
#include <decant/core/exponential_race.hpp>
#include <decant/core/law.hpp>
#include <decant/core/listed_row.hpp>
#include <decant/core/mass_search.hpp>
#include <decant/core/row_registry.hpp>
#include <decant/core/stored_row.hpp>
#include <decant/core/swift_sum.hpp>
#include <decant/core/token.hpp>
#include <decant/core/token_counts.hpp>
#include <decant/core/version.hpp>
#include <decant/core/weighed_row.hpp>
