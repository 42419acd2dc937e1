// Compiles as it stands; each MISTAKE mixes element types and must be refused.

#include "trireme/ops/matmul/matmul.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

void use(const Variable<bfloat16>& x, const Variable<float>& wide, const Variable<float16>& half,
         const nn::Linear<MixedBfloat16>& layer, const nn::LayerNorm<MixedBfloat16>& norm) {
  add(x, x);
  layer.forward(x);
  norm.forward(wide);
  Tensor<float> c({2, 2});
  Tensor<double> wider({2, 2});
  ops::matmul(x.value(), x.value(), c);
#if MISTAKE == 1
  add(x, wide);
#elif MISTAKE == 2
  add(x, half);
#elif MISTAKE == 3
  layer.forward(wide);
#elif MISTAKE == 4
  norm.forward(x);
#elif MISTAKE == 5
  ops::matmul(x.value(), wide.value(), c);
#elif MISTAKE == 6
  ops::matmul(x.value(), x.value(), wider);
#endif
  static_cast<void>(half);
}
