#include "ops/cuda_compare.hpp"
#include "trireme/ops/search/cumulative.hpp"
#include "trireme/ops/search/sort.hpp"

// The searches of a GPU against those of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

const std::vector<std::pair<Shape, int>> shapes{{{1}, 0},        {{100'003}, 0},   {{70, 4099}, 1},
                                                {{4099, 70}, 0}, {{4, 50, 60}, 1}, {{3, 0, 2}, 0}};

template <typename T>
void require_equal(const Indexed<Tensor<T, Cuda>, Cuda>& got, const Indexed<Tensor<T>, Cpu>& expected) {
  require_identical(got.indices.template to<Cpu>(), expected.indices);
  require_same(got.values, expected.values);
}

}  // namespace

TEMPLATE_TEST_CASE("extremes and sorts on the GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  for (const auto& [shape, dim] : shapes) {
    CAPTURE(shape.str(), dim);
    const auto x = random_tensor<T>(shape, 1);
    const auto x_there = x.template to<Cuda>();
    for (const bool descending : {false, true}) {
      require_equal(sort(x_there, dim, descending), sort(x, dim, descending));
      require_equal(topk(x_there, (shape[dim] + 2) / 3, dim, descending), topk(x, (shape[dim] + 2) / 3, dim, descending));
    }
    if (x.numel() == 0) continue;
    require_equal(max_with_index(x_there, dim), max_with_index(x, dim));
    require_equal(min_with_index(x_there, dim), min_with_index(x, dim));
    CHECK(argmax(x_there).item() == argmax(x).item());
    const auto [values, indices] = topk(x, 1, dim);
    for (const bool accumulate : {false, true}) {
      Tensor<T> dx = x.clone();
      Tensor<T, Cuda> dx_there = x_there.clone();
      take_backward(dim, indices, values, dx, accumulate);
      take_backward(dim, indices.template to<Cuda>(), values.template to<Cuda>(), dx_there, accumulate);
      require_same(dx_there, dx);
    }
  }
}

TEMPLATE_TEST_CASE("cumulative sums and products on the GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  for (const auto& [shape, dim] : shapes) {
    CAPTURE(shape.str(), dim);
    const auto x = random_tensor<T>(shape, 1);
    const auto x_there = x.template to<Cuda>();
    require_same(cumsum(x_there, dim), cumsum(x, dim), sizeof(T) == 8 ? 100 : 4);  // the CPU adds float in double
    require_same(cumprod(x_there, dim), cumprod(x, dim), 4);
    Tensor<T> dx = x.clone();
    Tensor<T, Cuda> dx_there = x_there.clone();
    cumprod_backward(x, dim, x, dx, true);
    cumprod_backward(x_there, dim, x_there, dx_there, true);
    require_same(dx_there, dx, 4);
  }
}

TEST_CASE("searches of integers on the GPU") {
  Tensor<std::int32_t> x({30, 1000});
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data()[i] = static_cast<std::int32_t>(i * 7919 % 1001 - 500);
  const auto x_there = x.to<Cuda>();
  require_identical(argsort(x_there, 0, true).to<Cpu>(), argsort(x, 0, true));
  require_identical(argmin(x_there, 1).to<Cpu>(), argmin(x, 1));
  require_identical(cumsum(x_there, 1).to<Cpu>(), cumsum(x, 1));
}
