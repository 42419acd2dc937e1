#include "ops/cuda_compare.hpp"
#include "trireme/ops/norm/group_norm.hpp"

// The group norm of a GPU against that of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

template <typename T>
Tensor<T, Cuda> there(const Tensor<T>& x) {
  return x.defined() ? x.template to<Cuda>() : Tensor<T, Cuda>();
}

template <typename T>
void check(const Shape& shape, int groups, bool weighted) {
  using A = Accumulate<T>;
  CAPTURE(shape.numel(), shape.back(), groups, weighted);
  const std::int64_t channels = shape.back();
  const Shape of_groups{shape[0], groups};
  const auto vector = [&](std::uint32_t seed) { return weighted ? random_tensor<A>({channels}, seed) : Tensor<A>(); };
  const GroupNormForward<T, Cpu> pass{.x = random_tensor<T>(shape, 1, 2),
                                      .groups = groups,
                                      .weight = vector(2),
                                      .bias = vector(3),
                                      .y = Tensor<T>(shape),
                                      .mean = Tensor<double>(of_groups),
                                      .rstd = Tensor<double>(of_groups)};
  const GroupNormForward<T, Cuda> pass_there{.x = there(pass.x),
                                             .groups = groups,
                                             .weight = there(pass.weight),
                                             .bias = there(pass.bias),
                                             .y = Tensor<T, Cuda>(shape),
                                             .mean = Tensor<double, Cuda>(of_groups),
                                             .rstd = Tensor<double, Cuda>(of_groups)};
  group_norm(pass);
  group_norm(pass_there);
  require_same(pass_there.y, pass.y, 10);
  require_close(pass_there.mean.template to<Cpu>(), as_doubles(pass.mean), 1e-9);
  require_close(pass_there.rstd.template to<Cpu>(), as_doubles(pass.rstd), 1e-9);

  for (const bool accumulate : {false, true}) {
    const GroupNormBackward<T, Cpu> back{.x = pass.x,
                                         .groups = groups,
                                         .weight = pass.weight,
                                         .mean = pass.mean,
                                         .rstd = pass.rstd,
                                         .dy = random_tensor<T>(shape, 4),
                                         .dx = random_tensor<T>(shape, 5),
                                         .accumulate_dx = accumulate,
                                         .dweight = random_tensor<A>({channels}, 6),
                                         .accumulate_dweight = accumulate,
                                         .dbias = random_tensor<A>({channels}, 7),
                                         .accumulate_dbias = accumulate};
    const GroupNormBackward<T, Cuda> back_there{.x = there(back.x),
                                                .groups = groups,
                                                .weight = there(back.weight),
                                                .mean = there(back.mean),
                                                .rstd = there(back.rstd),
                                                .dy = there(back.dy),
                                                .dx = there(back.dx),
                                                .accumulate_dx = accumulate,
                                                .dweight = there(back.dweight),
                                                .accumulate_dweight = accumulate,
                                                .dbias = there(back.dbias),
                                                .accumulate_dbias = accumulate};
    group_norm_backward(back);
    group_norm_backward(back_there);
    require_same(back_there.dx, back.dx, 10);
    require_same(back_there.dweight, back.dweight, 300);
    require_same(back_there.dbias, back.dbias, 300);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("group norm on the GPU", "", float, double, bfloat16, float16) {
  check<TestType>({1, 1, 4}, 2, true);
  check<TestType>({5, 3, 7, 12}, 4, false);
  check<TestType>({8, 32, 32, 64}, 32, true);
  check<TestType>({3, 50, 128}, 1, true);
}
