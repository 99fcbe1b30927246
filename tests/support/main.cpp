// SPDX-License-Identifier: MIT
// Catch2's main function, for 2.13 and 3.x alike; compiled once, because 2.13's takes ten seconds and more.
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
int main(int count, char* arguments[]) { return Catch::Session().run(count, arguments); }
#else
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
