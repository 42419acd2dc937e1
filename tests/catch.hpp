#pragma once

// Catch2 v3 where it is found, v2 otherwise: the tests use what both share.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
