#include "nn/float8_linear.hpp"
#include "trireme/device/cuda.hpp"

// 8-bit linear layers on the GPU against the same ones on the CPU, whose operands are the same bits.
using namespace trireme;
using namespace trireme::tests;

TEST_CASE("an 8-bit linear layer on the GPU is that of the CPU") {
  const device::CudaDevice gpu = device::cuda_device(device::current_cuda_device());
  if (10 * gpu.major + gpu.minor < 89) return;  // it has no 8-bit products
  Float8Layer<Cpu> here(true);
  Float8Layer<Cuda> there(true);
  here.initialize({.seed = 4});
  there.initialize({.seed = 4});
  const LayerResults expected = results_of(here);
  const LayerResults got = results_of(there);
  CHECK(distance(got.y, expected.y) < 1e-2);
  // A y that is rounded otherwise makes another code of its gradient.
  CHECK(distance(got.dx, expected.dx) < 2e-2);
  CHECK(distance(got.of_parameters, expected.of_parameters) < 2e-2);
}
