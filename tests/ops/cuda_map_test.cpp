#include "ops/cuda_compare.hpp"
#include "ops/cuda_mapped.hpp"
#include "trireme/autograd/record.hpp"

// map() on a GPU against that of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

template <typename D, typename T>
std::vector<Tensor<T>> value_and_gradients(const Tensor<T>& gate, const Tensor<T>& up, const Tensor<T>& upstream) {
  const Tape tape;
  std::vector<Tensor<T>> results(3);
  const auto keep = [&](std::size_t k) {
    return [&results, k](const Tensor<T, D>& dx) { results[k] = dx.template to<Cpu>(); };
  };
  const auto y = tests::gated(watch(gate.template to<D>(), keep(1)), watch(up.template to<D>(), keep(2)));
  results[0] = y.value().template to<Cpu>();
  y.backward(upstream.template to<D>());
  return results;
}

}  // namespace

TEMPLATE_TEST_CASE("map on the GPU", "", float, bfloat16, float16) {
  using T = TestType;
  for (const Shape& shape : {Shape{100, 33}, Shape{33}, Shape{100, 1}}) {
    const auto gate = random_tensor<T>({100, 33}, 1);
    const auto up = random_tensor<T>(shape, 2);
    const auto upstream = random_tensor<T>({100, 33}, 3);
    const auto here = value_and_gradients<Cpu>(gate, up, upstream);
    const auto there = value_and_gradients<Cuda>(gate, up, upstream);
    for (std::size_t k = 0; k < 3; ++k) require_close(there[k], as_doubles(here[k]), 50 * bound<T>());
  }
  const auto x = Tensor<float>::from({3}, {-1, 2, 4});
  require_close(tests::halves_of_squares(x.to<Cuda>()).to<Cpu>(), {0, 2, 8}, 0);
}
