#include "ops/cuda_compare.hpp"
#include "ops/strided_boxes.hpp"
#include "trireme/ops/array/array.hpp"

// Functions that move elements on a GPU, against those of the CPU.
using namespace trireme;
using namespace trireme::ops;

TEMPLATE_TEST_CASE("strided copies on the GPU", "", float, double, bfloat16, float16, std::int32_t, std::int64_t) {
  using T = TestType;
  for (const bool sums : {false, true}) {
    for (std::uint32_t seed = 1; seed < 80; ++seed) {
      const RandomBox random = random_box(seed, seed % 8 == 0 ? 100 : 9, sums);
      CAPTURE(seed, sums);
      const auto x = random_numbers<T>(random.x_elements, 1);
      for (const bool accumulate : {false, true}) {
        Tensor<T> y = random_numbers<T>(random.y_elements, 2);
        auto y_there = y.template to<Cuda>();
        copy_strided(random.box, x, y, accumulate);
        copy_strided(random.box, x.template to<Cuda>(), y_there, accumulate);
        require_identical(y_there.template to<Cpu>(), y);
      }
    }
  }
}

TEST_CASE("functions that move elements on the GPU") {
  const auto x = arange<float>(2 * 5 * 70).reshape({2, 5, 70});
  const auto there = arange<float, Cuda>(2 * 5 * 70).reshape({2, 5, 70});
  require_identical(there.to<Cpu>(), x);
  require_identical(permute(there, {2, 0, 1}).to<Cpu>(), permute(x, {2, 0, 1}));
  require_identical(slice(there, 2, 1, 60, 3).to<Cpu>(), slice(x, 2, 1, 60, 3));
  require_identical(roll(there, 3, 2).to<Cpu>(), roll(x, 3, 2));
  require_identical(pad(there, {1, 2, 3, 0}, {.value = 7}).to<Cpu>(), pad(x, {1, 2, 3, 0}, {.value = 7}));
  require_identical(pad(there, {3, 4}, {.mode = PadMode::reflect}).to<Cpu>(), pad(x, {3, 4}, {.mode = PadMode::reflect}));
  require_identical(cat({there, flip(there, {0, 2})}, 1).to<Cpu>(), cat({x, flip(x, {0, 2})}, 1));
  require_identical(triu(there, -2).to<Cpu>(), triu(x, -2));
  require_identical(tril(there, 1).to<Cpu>(), tril(x, 1));
  require_identical(eye<bfloat16, Cuda>(5, 3).to<Cpu>(), eye<bfloat16>(5, 3));
  require_same(linspace<double, Cuda>(-1, 3, 77), linspace<double>(-1, 3, 77));  // the GPU rounds once, not twice
  require_identical(transpose(there, 0, 2).to<Cpu>(), transpose(x, 0, 2));
}

TEST_CASE("long sums on the GPU") {
  const auto x = random_tensor<float>({100'000, 3}, 1);
  for (const Shape& of : {Shape{1, 3}, Shape{100'000, 1}, Shape{1, 1}}) {
    const Movement movement = expanded(of, x.shape());
    Tensor<float> dx(of);
    Tensor<float, Cuda> dx_there(of);
    move_gradient(movement, x, dx, false);
    move_gradient(movement, x.to<Cuda>(), dx_there, false);
    require_same(dx_there, dx);
  }
}
