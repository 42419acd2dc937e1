#include "ops/elementwise/floats.hpp"
#include "ops/matmul/few_rows_product.hpp"
#include "ops/matmul/matmul_double.hpp"
#include "ops/matmul/matmul_on.hpp"
#include "ops/matmul/matmul_plan.hpp"
#include "ops/matmul/packed_product.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

template <>
template <typename T, typename C>
void Matmul<Cpu>::run(MatmulShape shape, const Tensor<T, Cpu>& a, const Tensor<T, Cpu>& b,
                      const Tensor<Accumulate<T>, Cpu>& bias_or_none, Tensor<C, Cpu>& c) {
  if (shape.m == 0 || shape.n == 0) return;
  const Accumulate<T>* bias = bias_or_none.defined() ? bias_or_none.data() : nullptr;
  if (shape.k == 0) {  // sums over no products
    for (std::int64_t i = 0; i < c.numel() && !shape.accumulate; ++i) {
      c.data()[i] = static_cast<C>(bias != nullptr ? bias[i % shape.n] : Accumulate<T>(0));
    }
    return;
  }
  if constexpr (!std::is_same_v<T, double>) {
    const bool packed = is_half<T> ? !has_matmul(shape.operands) : prefers_packed_product(shape);
    const bool few = (packed || !is_half<T>)&&has_few_rows(shape);
    if (few) return run_few_rows_product(shape, a.data(), b.data(), bias, c.data());
    shape.inference = false;
    if (packed) return run_packed_product(shape, a.data(), b.data(), bias, c.data());
  }
  run_matmul(shape, a.data(), b.data(), bias, c.data());
}

TRIREME_EACH(FLOATS, TRIREME_MATMUL, Cpu)
TRIREME_INSTANTIATE(HALVES, matmul, float, Cpu)
TRIREME_INSTANTIATE(FLOATS, linear, Cpu)

}  // namespace trireme::ops
