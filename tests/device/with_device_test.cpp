#include "trireme/device/with_device.hpp"

#include <type_traits>

#include "catch.hpp"

using namespace trireme;

TEST_CASE("a device is chosen by its name") {
  int calls = 0;
  const auto count = [&]<typename D>(D) { calls += std::is_same_v<D, Cpu> ? 1 : 100; };
  device::with_device("cpu", count);
  CHECK(calls == 1);
  CHECK_THROWS_WITH(device::with_device("tpu", count), ContainsSubstring("use cpu or cuda"));
  if (device::cuda_device_count() == 0) {
    CHECK_THROWS_WITH(device::with_device("cuda", count), ContainsSubstring("use the CPU"));
    CHECK(calls == 1);
  } else {
    device::with_device("cuda", count);
    CHECK(calls == 101);
  }
}
