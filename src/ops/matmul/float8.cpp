#include <algorithm>

#include "ops/base/parallel.hpp"
#include "ops/matmul/float8_body.hpp"
#include "ops/matmul/float8_on.hpp"
#include "precision/instantiate.hpp"
#include "trireme/ops/elementwise/cast.hpp"
#include "trireme/ops/matmul/matmul.hpp"

namespace trireme::ops {
namespace {

// The numbers that the codes stand for. This is exact, because the scale is a power of two.
template <typename F>
Tensor<float> dequantized(const Float8Operand<F>& operand) {
  const Tensor<float> floats(operand.codes.shape());
  const float inverse = operand.scale.data()[0];
  parallel_elements(floats.numel(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) floats.data()[i] = static_cast<float>(operand.codes.data()[i]) * inverse;
  });
  return floats;
}

}  // namespace

template <>
template <typename T>
void Float8Products<Cpu>::amax(const T* x, std::int64_t count, float* result) {
  float largest = 0;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, finite_magnitude(widened(x[i])));
  *result = largest;
}

template <>
template <typename F>
void Float8Products<Cpu>::scale(const float* amaxes, std::int64_t count, float* scale) {
  scale[1] = power_of_two_scale<F>(*std::max_element(amaxes, amaxes + count));
  scale[0] = 1 / scale[1];
}

template <>
template <typename F, typename T>
void Float8Products<Cpu>::delayed_scale(const T* x, std::int64_t count, const float* history, std::int64_t length,
                                        float* result) {
  float largest = *std::max_element(history, history + length);
  if (largest == 0) amax(x, count, &largest);
  scale<F>(&largest, 1, result);
}

template <>
void Float8Products<Cpu>::push(const float* amax, float* history, std::int64_t length) {
  std::copy_backward(history, history + length - 1, history + length);
  history[0] = *amax;
}

template <>
template <typename T, typename F>
void Float8Products<Cpu>::quantize(const T* x, std::int64_t rows, std::int64_t columns, const float* scale, F* codes,
                                   F* transposed, float* largest) {
  if (largest != nullptr) amax(x, rows * columns, largest);
  parallel_rows(rows, columns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        const F code = quantized<F>(widened(x[row * columns + column]), scale[1]);
        if (codes != nullptr) codes[row * columns + column] = code;
        if (transposed != nullptr) transposed[column * rows + row] = code;
      }
    }
  });
}

template <>
template <typename F, typename C>
void Float8Products<Cpu>::multiply(const Float8Operand<F, Cpu>& a, const Float8Operand<float8_e4m3, Cpu>& b,
                                   const Tensor<float, Cpu>& bias, Tensor<C, Cpu>& c, bool accumulate) {
  if constexpr (std::is_same_v<C, float>) {
    matmul(dequantized(a), dequantized(b), c, {.transpose_b = true, .accumulate = accumulate});
  } else {
    Tensor<float> product(c.shape());
    linear(dequantized(a), dequantized(b), bias, product);
    cast(product, c, accumulate);
  }
}

TRIREME_INSTANCE(Cpu, push_amax)
TRIREME_INSTANCE(float, amax, Cpu)
TRIREME_INSTANCE(bfloat16, amax, Cpu)
TRIREME_INSTANTIATE(FLOAT8S, float8_scale, Cpu)
TRIREME_INSTANTIATE(FLOAT8S, delayed_float8_scale, float, Cpu)
TRIREME_INSTANTIATE(FLOAT8S, delayed_float8_scale, bfloat16, Cpu)
TRIREME_INSTANCE(float, quantize, float8_e4m3, Cpu)
TRIREME_INSTANCE(float, quantize, float8_e5m2, Cpu)
TRIREME_INSTANCE(bfloat16, quantize, float8_e4m3, Cpu)
TRIREME_INSTANCE(bfloat16, quantize, float8_e5m2, Cpu)
TRIREME_INSTANTIATE(FLOAT8S, float8_matmul, float, Cpu)
TRIREME_INSTANTIATE(FLOAT8S, float8_matmul, bfloat16, Cpu)

}  // namespace trireme::ops
