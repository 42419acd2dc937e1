#include <thread>

#include "catch.hpp"
#include "trireme/device/cuda.hpp"

using namespace trireme::device;

TEST_CASE("TF32 is allowed where a thread says so, in that thread") {
  CHECK_FALSE(tf32_allowed());
  allow_tf32(true);
  bool elsewhere = true;
  std::thread([&] { elsewhere = tf32_allowed(); }).join();
  CHECK(tf32_allowed());
  CHECK_FALSE(elsewhere);
  allow_tf32(false);
  CHECK_FALSE(tf32_allowed());
}
