#include "ops/elementwise/floats.hpp"
#include "ops/matmul/matmul_double.hpp"
#include "ops/matmul/matmul_on.hpp"
#include "ops/matmul/matmul_plan.hpp"
#include "trireme/ops/elementwise/cast.hpp"

namespace trireme::ops {
namespace {

template <typename T, typename C>
void run_in_float(MatmulShape shape, const Tensor<T, Cpu>& a, const Tensor<T, Cpu>& b, const float* bias, Tensor<C, Cpu>& c) {
  shape.operands = shape.result = DType::float32;
  if constexpr (is_half<C>) {
    const Tensor<float, Cpu> floats = shape.accumulate ? as_floats(c) : Tensor<float, Cpu>(c.shape());
    run_matmul(shape, as_floats(a).data(), as_floats(b).data(), bias, floats.data());
    cast(floats, c);
  } else {
    run_matmul(shape, as_floats(a).data(), as_floats(b).data(), bias, c.data());
  }
}

}  // namespace

template <>
template <typename T, typename C>
void Matmul<Cpu>::run(MatmulShape shape, const Tensor<T, Cpu>& a, const Tensor<T, Cpu>& b,
                      const Tensor<Accumulate<T>, Cpu>& bias_or_none, Tensor<C, Cpu>& c) {
  if (shape.m == 0 || shape.n == 0) return;
  const Accumulate<T>* bias = bias_or_none.defined() ? bias_or_none.data() : nullptr;
  if (shape.k == 0) {  // a sum of nothing
    for (std::int64_t i = 0; i < c.numel() && !shape.accumulate; ++i) {
      c.data()[i] = static_cast<C>(bias != nullptr ? bias[i % shape.n] : Accumulate<T>(0));
    }
    return;
  }
  if constexpr (is_half<T>) {
    if (!has_matmul(shape.operands)) return run_in_float(shape, a, b, bias, c);
  }
  run_matmul(shape, a.data(), b.data(), bias, c.data());
}

TRIREME_INSTANTIATE_MATMUL(float, Cpu);
TRIREME_INSTANTIATE_MATMUL(double, Cpu);
TRIREME_INSTANTIATE_MATMUL(bfloat16, Cpu);
TRIREME_INSTANTIATE_MATMUL(float16, Cpu);
TRIREME_INSTANTIATE_MATMUL_TO_FLOAT(bfloat16, Cpu);
TRIREME_INSTANTIATE_MATMUL_TO_FLOAT(float16, Cpu);

}  // namespace trireme::ops
