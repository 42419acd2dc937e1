#include <cuda_fp8.h>

#include <bit>

#include "catch.hpp"
#include "trireme/core/float8.hpp"

// NVIDIA's conversion on the host, which gives the same as on the GPU.
using namespace trireme;

namespace {

template <typename F>
std::int64_t num_differences(__nv_fp8_interpretation_t type) {
  constexpr std::uint64_t step = 1021;  // a prime: all low bits come up
  std::int64_t different = 0;
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += step) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    different += F(x).bits() != __nv_cvt_float_to_fp8(x, __NV_SATFINITE, type);
  }
  return different;
}

}  // namespace

TEST_CASE("float becomes 8-bit types as on a GPU") {
  CHECK(num_differences<float8_e4m3>(__NV_E4M3) == 0);
  CHECK(num_differences<float8_e5m2>(__NV_E5M2) == 0);
}
