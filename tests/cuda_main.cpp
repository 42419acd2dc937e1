// The main of test programs that need a GPU: without one they say so and count as skipped.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include <cstdio>

#include "trireme/core/error.hpp"
#include "trireme/device/cuda.hpp"

int main(int argc, char** argv) {
  try {
    trireme::device::require_cuda();
  } catch (const trireme::Error& error) {
    std::printf("skipped: %s\n", error.what());
    return 77;
  }
  return Catch::Session().run(argc, argv);
}
