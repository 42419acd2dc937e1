#include "ops/cuda_compare.hpp"
#include "trireme/ops/norm/norm.hpp"

// The norms of a GPU against those of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

template <typename T>
Tensor<T, Cuda> there(const Tensor<T>& x) {
  return x.defined() ? x.template to<Cuda>() : Tensor<T, Cuda>();
}

template <typename T>
void check(bool layer, const Shape& shape, bool residual, bool weight) {
  using A = Accumulate<T>;
  CAPTURE(layer, shape.rows(), shape.back(), residual, weight);
  const std::int64_t width = shape.back();
  const std::int64_t rows = shape.rows();
  const auto vector = [&](bool wanted, std::uint32_t seed) { return wanted ? random_tensor<A>({width}, seed) : Tensor<A>(); };
  const NormForward<T, Cpu> pass{.x = random_tensor<A>(shape, 1, 2),
                                 .residual = residual ? random_tensor<T>(shape, 2) : Tensor<T>(),
                                 .weight = vector(weight, 3),
                                 .bias = vector(weight && layer, 4),
                                 .x_sum = Tensor<A>(shape),
                                 .y = Tensor<T>(shape),
                                 .mean = Tensor<A>({rows}),
                                 .rstd = Tensor<A>({rows})};
  const NormForward<T, Cuda> pass_there{.x = there(pass.x),
                                        .residual = there(pass.residual),
                                        .weight = there(pass.weight),
                                        .bias = there(pass.bias),
                                        .x_sum = Tensor<A, Cuda>(shape),
                                        .y = Tensor<T, Cuda>(shape),
                                        .mean = Tensor<A, Cuda>({rows}),
                                        .rstd = Tensor<A, Cuda>({rows})};
  layer ? layer_norm(pass) : rms_norm(pass);
  layer ? layer_norm(pass_there) : rms_norm(pass_there);
  require_same(pass_there.y, pass.y, 10);
  require_same(pass_there.rstd, pass.rstd, 10);
  if (layer) require_same(pass_there.mean, pass.mean, 10);
  if (residual) require_same(pass_there.x_sum, pass.x_sum);

  for (const bool accumulate : {false, true}) {
    const NormBackward<T, Cpu> back{.x = residual ? pass.x_sum : pass.x,
                                    .weight = pass.weight,
                                    .mean = pass.mean,
                                    .rstd = pass.rstd,
                                    .dy = random_tensor<T>(shape, 5),
                                    .dx = random_tensor<A>(shape, 6),
                                    .accumulate_dx = accumulate,
                                    .dresidual = residual ? Tensor<T>(shape) : Tensor<T>(),
                                    .dweight = random_tensor<A>({width}, 7),
                                    .accumulate_dweight = accumulate,
                                    .dbias = vector(layer, 8),
                                    .accumulate_dbias = accumulate};
    const NormBackward<T, Cuda> back_there{.x = there(back.x),
                                           .weight = there(back.weight),
                                           .mean = there(back.mean),
                                           .rstd = there(back.rstd),
                                           .dy = there(back.dy),
                                           .dx = there(back.dx),
                                           .accumulate_dx = accumulate,
                                           .dresidual = there(back.dresidual),
                                           .dweight = there(back.dweight),
                                           .accumulate_dweight = accumulate,
                                           .dbias = there(back.dbias),
                                           .accumulate_dbias = accumulate};
    layer ? layer_norm_backward(back) : rms_norm_backward(back);
    layer ? layer_norm_backward(back_there) : rms_norm_backward(back_there);
    require_same(back_there.dx, back.dx, 30);
    if (residual) require_same(back_there.dresidual, back.dresidual, 2);
    require_same(back_there.dweight, back.dweight, 300);
    if (layer) require_same(back_there.dbias, back.dbias, 300);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("norms on the GPU", "", float, double, bfloat16, float16) {
  for (const bool layer : {true, false}) {
    check<TestType>(layer, {1, 1, 16}, false, true);
    check<TestType>(layer, {3, 47, 7}, true, false);
    check<TestType>(layer, {2, 1024, 768}, true, true);
    check<TestType>(layer, {9000, 100}, false, true);
    check<TestType>(layer, {140, 1600}, true, true);  // threads beside the row
    check<TestType>(layer, {37, 4096}, true, true);
    check<TestType>(layer, {17, 12'800}, false, true);  // sums that shared memory does not hold
  }
}
