#include "nn/float8_linear.hpp"
#include "trireme/device/cuda.hpp"

// 8-bit linear layers on the GPU against the same ones on the CPU, whose operands are the same bits.
using namespace trireme;
using namespace trireme::tests;

TEST_CASE("an 8-bit linear layer on the GPU is that of the CPU") {
  if (!device::cuda_device(device::current_cuda_device()).has_float8_products()) return;
  for (const Float8Scaling scaling : {Float8Scaling::current, Float8Scaling::delayed}) {
    Float8Layer<Cpu> here(scaling);
    Float8Layer<Cuda> there(scaling);
    here.initialize({.seed = 4});
    there.initialize({.seed = 4});
    for (const std::uint32_t call : {1, 2, 3}) {
      CAPTURE(static_cast<int>(scaling), call);
      const LayerResults expected = results_of(here, random_rows({2, 16, 48}, call));
      const LayerResults got = results_of(there, random_rows({2, 16, 48}, call));
      CHECK(distance(got.y, expected.y) < 1e-2);
      // A result y that is rounded differently gives another 8-bit code for its gradient.
      CHECK(distance(got.dx, expected.dx) < 2e-2);
      CHECK(distance(got.of_parameters, expected.of_parameters) < 2e-2);
    }
    if (scaling != Float8Scaling::delayed) continue;
    CHECK(distance(there.amaxes("x"), here.amaxes("x")) == 0);
    CHECK(distance(there.amaxes("weight"), here.amaxes("weight")) == 0);
    CHECK(distance(there.amaxes("dy"), here.amaxes("dy")) < 1e-2);
  }
}
