#include "ops/cuda_compare.hpp"
#include "trireme/ops/reduce/reductions.hpp"

// The reductions of a GPU against those of the CPU.
using namespace trireme;
using namespace trireme::ops;

TEMPLATE_TEST_CASE("reductions on the GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  for (const auto& [shape, dims] : std::vector<std::pair<Shape, Dims>>{{{}, {}},
                                                                       {{1'000'003}, {}},
                                                                       {{4099, 70}, 0},
                                                                       {{4099, 70}, 1},
                                                                       {{7, 40, 60}, {0, 2}},
                                                                       {{2, 3, 4, 5, 6, 7}, {0, 2, 4}},
                                                                       {{3, 0, 2}, 0}}) {
    const auto x = random_tensor<T>(shape, 1);
    const auto x_there = x.template to<Cuda>();
    for (const Reduction kind : {Reduction::sum, Reduction::mean, Reduction::prod, Reduction::max, Reduction::min,
                                 Reduction::var, Reduction::stddev, Reduction::norm1, Reduction::norm2, Reduction::norm_inf}) {
      CAPTURE(shape.str(), operation_name(kind));
      if (shape.size() == 0 && (kind == Reduction::var || kind == Reduction::stddev)) continue;
      const ReductionOptions options{.kind = kind, .dims = dims};
      Tensor<T> y(reduced_shape("test", shape, dims, false)), dx = x.clone();
      Tensor<T, Cuda> y_there(y.shape()), dx_there = x_there.clone();
      reduce(options, x, y);
      reduce(options, x_there, y_there);
      require_same(y_there, y, 4);
      const auto dy = random_tensor<T>(y.shape(), 2);
      for (const bool accumulate : {true, false}) {
        reduce_backward(options, x, y, dy, dx, accumulate);
        reduce_backward(options, x_there, y.template to<Cuda>(), dy.template to<Cuda>(), dx_there, accumulate);
        require_same(dx_there, dx, 4);
      }
    }
    Tensor<T> y(reduced_shape("test", shape, dims, false)), dx = x.clone();
    Tensor<double> exponentials({2, y.numel()});
    Tensor<T, Cuda> y_there(y.shape()), dx_there = x_there.clone();
    Tensor<double, Cuda> exponentials_there(exponentials.shape());
    logsumexp(dims, x, y, exponentials);
    logsumexp(dims, x_there, y_there, exponentials_there);
    require_same(y_there, y, 4);
    const auto dy = random_tensor<T>(y.shape(), 2);
    logsumexp_backward(dims, x, exponentials, dy, dx, true);
    logsumexp_backward(dims, x_there, exponentials_there, dy.template to<Cuda>(), dx_there, true);
    require_same(dx_there, dx, 4);
  }
}

TEST_CASE("reductions of integers and bool on the GPU") {
  Tensor<std::int32_t> x({300, 1000});
  Tensor<bool> mask({4, 30, 5});
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data()[i] = static_cast<std::int32_t>(i * 7919 % 100'001 - 50'000);
  for (std::int64_t i = 0; i < mask.numel(); ++i) mask.data()[i] = i * 7 % 31 == 0;
  for (const Dims& dims : {Dims(), Dims(0), Dims(1)}) {
    CHECK(as_doubles(sum(x.to<Cuda>(), dims).to<Cpu>()) == as_doubles(sum(x, dims)));
    CHECK(as_doubles(max(x.to<Cuda>(), dims).to<Cpu>()) == as_doubles(max(x, dims)));
    CHECK(as_doubles(min(x.to<Cuda>(), dims).to<Cpu>()) == as_doubles(min(x, dims)));
  }
  for (const Dims& dims : {Dims(), Dims(1), Dims{0, 2}}) {
    CHECK(as_doubles(any(mask.to<Cuda>(), dims).to<Cpu>()) == as_doubles(any(mask, dims)));
    CHECK(as_doubles(all(mask.to<Cuda>(), dims).to<Cpu>()) == as_doubles(all(mask, dims)));
  }
}

TEST_CASE("a sum on the GPU has the same bits in every run") {
  const auto x = random_tensor<float>({1'000'003}, 1).to<Cuda>();
  CHECK(sum(x).item() == sum(x).item());
}
