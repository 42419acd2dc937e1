#include "ops/matmul/float8_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/matmul/bias_cuda.hpp"
#include "ops/matmul/float8_on.hpp"
#include "ops/matmul/matmul_plans_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename T>
void Float8Products<Cuda>::amax(const T* x, std::int64_t count, float* result) {
  const Tensor<float, Cuda> parts({cuda::num_amax_parts(count)});
  check_cuda(cuda::amax_parts(x, count, {}, parts.data(), native_stream()), "amax");
  check_cuda(cuda::largest_amax({{parts.data(), parts.numel()}, result}, native_stream()), "amax");
}

template <>
template <typename F>
void Float8Products<Cuda>::scale(const float* amaxes, std::int64_t count, float* scale) {
  check_cuda(cuda::float8_scale(ScaleOfAmaxes<F>{{amaxes, count}, scale}, native_stream()), "float8_scale");
}

template <>
template <typename F, typename T>
void Float8Products<Cuda>::delayed_scale(const T* x, std::int64_t count, const float* history, std::int64_t length,
                                         float* scale) {
  constexpr const char* name = "delayed_float8_scale";
  const Amaxes known{history, length};
  const Tensor<float, Cuda> parts({cuda::num_amax_parts(count)});
  check_cuda(cuda::amax_parts(x, count, known, parts.data(), native_stream()), name);
  check_cuda(cuda::float8_scale(ScaleOfAmaxes<F>{known, scale, {parts.data(), parts.numel()}}, native_stream()), name);
}

template <>
void Float8Products<Cuda>::push(const float* amax, float* history, std::int64_t length) {
  check_cuda(cuda::push_amax({amax, history, length}, native_stream()), "push_amax");
}

template <>
template <typename T, typename F>
void Float8Products<Cuda>::quantize(const T* x, std::int64_t rows, std::int64_t columns, const float* scale, F* codes,
                                    F* transposed, float* amax) {
  require(is_aligned(x) && is_aligned(codes) && is_aligned(transposed),
          "quantize: the tensors must begin at multiples of 16 bytes");
  Tensor<float, Cuda> amaxes;
  if (amax != nullptr) amaxes = Tensor<float, Cuda>({quantize_tiles_along(rows) * quantize_tiles_along(columns)});
  const QuantizeTile<T, F> body{x, rows, columns, scale, codes, transposed, amaxes.data()};
  check_cuda(cuda::quantize(body, native_stream()), "quantize");
  if (amax != nullptr) {
    check_cuda(cuda::largest_amax({{amaxes.data(), amaxes.numel()}, amax}, native_stream()), "quantize");
  }
}

template <>
template <typename F, typename C>
void Float8Products<Cuda>::multiply(const Float8Operand<F, Cuda>& a, const Float8Operand<float8_e4m3, Cuda>& b,
                                    const Tensor<float, Cuda>& bias, Tensor<C, Cuda>& c, bool accumulate) {
  require(is_aligned(a.scale.data()) && is_aligned(b.scale.data()),
          "float8_matmul: scales must begin at multiples of 16 bytes");
  const Tensor<C, Cuda> added = cuda::bias_for<C>(bias);
  const MatmulShape shape{.m = a.codes.dim(0),
                          .n = b.codes.dim(0),
                          .k = a.codes.dim(1),
                          .transpose_b = true,
                          .accumulate = accumulate,
                          .bias = bias.defined(),
                          .operands = dtype_of<F>,
                          .result = dtype_of<C>};
  cuda::run_matmul({.shape = shape}, {.a = a.codes.data(),
                                      .b = b.codes.data(),
                                      .bias = added.data(),
                                      .c = c.data(),
                                      .scale_a = a.scale.data(),
                                      .scale_b = b.scale.data()});
}

TRIREME_INSTANCE(Cuda, push_amax)
TRIREME_INSTANCE(float, amax, Cuda)
TRIREME_INSTANCE(bfloat16, amax, Cuda)
TRIREME_INSTANTIATE(FLOAT8S, float8_scale, Cuda)
TRIREME_INSTANTIATE(FLOAT8S, delayed_float8_scale, float, Cuda)
TRIREME_INSTANTIATE(FLOAT8S, delayed_float8_scale, bfloat16, Cuda)
TRIREME_INSTANCE(float, quantize, float8_e4m3, Cuda)
TRIREME_INSTANCE(float, quantize, float8_e5m2, Cuda)
TRIREME_INSTANCE(bfloat16, quantize, float8_e4m3, Cuda)
TRIREME_INSTANCE(bfloat16, quantize, float8_e5m2, Cuda)
TRIREME_INSTANTIATE(FLOAT8S, float8_matmul, float, Cuda)
TRIREME_INSTANTIATE(FLOAT8S, float8_matmul, bfloat16, Cuda)

}  // namespace trireme::ops
