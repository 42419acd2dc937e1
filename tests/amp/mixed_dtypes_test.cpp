// Element types do not mix by mistake: this file compiles only if each call that mixes them is refused and the same call
// without the mistake is accepted.
#include "trireme/ops/matmul/matmul.hpp"
#include "trireme/trireme.hpp"

namespace {

using trireme::bfloat16;
using trireme::Tensor;
using trireme::Variable;

template <typename A, typename B>
concept adds = requires(const Variable<A>& a, const Variable<B>& b) {
  add(a, b);
};
static_assert(adds<bfloat16, bfloat16>);
static_assert(!adds<bfloat16, float>);
static_assert(!adds<bfloat16, trireme::float16>);

template <typename Layer, typename T>
concept takes = requires(const Layer& layer, const Variable<T>& x) {
  layer.forward(x);
};
static_assert(takes<trireme::nn::Linear<trireme::MixedBfloat16>, bfloat16>);
static_assert(!takes<trireme::nn::Linear<trireme::MixedBfloat16>, float>);
static_assert(takes<trireme::nn::LayerNorm<trireme::MixedBfloat16>, float>);
static_assert(!takes<trireme::nn::LayerNorm<trireme::MixedBfloat16>, bfloat16>);

template <typename A, typename B, typename C>
concept multiplies = requires(const Tensor<A>& a, const Tensor<B>& b, Tensor<C>& c) {
  trireme::ops::matmul(a, b, c);
};
static_assert(multiplies<bfloat16, bfloat16, float>);
static_assert(!multiplies<bfloat16, float, float>);
static_assert(!multiplies<bfloat16, bfloat16, double>);

}  // namespace
