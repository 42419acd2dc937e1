// The main function of test programs that need a GPU: without one they print so and count as skipped.
#include <cstdio>

#include "catch_session.hpp"
#include "trireme/core/error.hpp"
#include "trireme/device/cuda.hpp"

int main(int argc, char** argv) {
  try {
    trireme::device::require_cuda();
  } catch (const trireme::Error& error) {
    std::printf("skipped: %s\n", error.what());
    return 77;
  }
  return run_tests(argc, argv);
}
