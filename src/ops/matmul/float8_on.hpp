#pragma once

#include "ops/base/check.hpp"
#include "trireme/ops/matmul/float8.hpp"

// The operations of ops/matmul/float8.hpp for any device: Float8Products<D> does the work.
namespace trireme::ops {

template <typename D>
struct Float8Products {
  template <typename T>
  static void amax(const T* x, std::int64_t count, float* result);
  template <typename F>
  static void scale(const float* amaxes, std::int64_t count, float* scale);
  template <typename F, typename T>
  static void delayed_scale(const T* x, std::int64_t count, const float* history, std::int64_t length, float* scale);
  static void push(const float* amax, float* history, std::int64_t length);
  // Results that are null are not computed.
  template <typename T, typename F>
  static void quantize(const T* x, std::int64_t rows, std::int64_t columns, const float* scale, F* codes, F* transposed,
                       float* amax);
  template <typename F, typename C>
  static void multiply(const Float8Operand<F, D>& a, const Float8Operand<float8_e4m3, D>& b, const Tensor<float, D>& bias,
                       Tensor<C, D>& c, bool accumulate);
};

template <typename T, typename D>
void amax(const Tensor<T, D>& x, Tensor<float, D>& result) {
  require_shape("amax", "result", result, {1});
  Float8Products<D>::amax(x.data(), x.numel(), result.data());
}

template <typename F, typename D>
void float8_scale(const Tensor<float, D>& amaxes, Tensor<float, D>& scale) {
  require(amaxes.numel() > 0, "float8_scale: there is no amax");
  require_shape("float8_scale", "scale", scale, {2});
  Float8Products<D>::template scale<F>(amaxes.data(), amaxes.numel(), scale.data());
}

template <typename F, typename T, typename D>
void delayed_float8_scale(const Tensor<T, D>& x, const Tensor<float, D>& history, Tensor<float, D>& scale) {
  require(history.numel() > 0, "delayed_float8_scale: the history is empty");
  require_shape("delayed_float8_scale", "scale", scale, {2});
  Float8Products<D>::template delayed_scale<F>(x.data(), x.numel(), history.data(), history.numel(), scale.data());
}

template <typename D>
void push_amax(const Tensor<float, D>& amax, Tensor<float, D>& history) {
  require_shape("push_amax", "amax", amax, {1});
  require(history.numel() > 0, "push_amax: the history is empty");
  Float8Products<D>::push(amax.data(), history.data(), history.numel());
}

template <typename T, typename F, typename D>
void quantize(const Tensor<T, D>& x, const Quantized<F, D>& y) {
  require(x.shape().size() > 0, "quantize: a scalar is no matrix");
  const std::int64_t rows = x.shape().rows();
  const std::int64_t columns = x.shape().back();
  require(rows % float8_multiple == 0 && columns % float8_multiple == 0,
          "quantize: x is [{}, {}], but 8-bit products need multiples of {}", rows, columns, float8_multiple);
  require_shape("quantize", "scale", y.scale, {2});
  if (y.codes.defined()) require_shape("quantize", "codes", y.codes, {rows, columns});
  if (y.transposed.defined()) require_shape("quantize", "transposed", y.transposed, {columns, rows});
  if (y.amax.defined()) require_shape("quantize", "amax", y.amax, {1});
  Float8Products<D>::quantize(x.data(), rows, columns, y.scale.data(), y.codes.data(), y.transposed.data(), y.amax.data());
}

template <typename F, typename C, typename D>
void float8_matmul(const Float8Operand<F, D>& a, const Float8Operand<float8_e4m3, D>& b, const Tensor<float, D>& bias,
                   Tensor<C, D>& c, bool accumulate) {
  constexpr const char* name = "float8_matmul";
  require(a.codes.shape().size() == 2 && b.codes.shape().size() == 2 && c.shape().size() > 0 &&
              a.codes.dim(0) == c.shape().rows() && b.codes.dim(0) == c.shape().back() && a.codes.dim(1) == b.codes.dim(1),
          "{}: c of shape {} is not a {} times b {} transposed", name, c.shape(), a.codes.shape(), b.codes.shape());
  for (const std::int64_t dim : {a.codes.dim(0), a.codes.dim(1), b.codes.dim(0)}) {
    require(dim > 0 && dim % float8_multiple == 0, "{}: a is {} and b {}, but needs multiples of {}", name, a.codes.shape(),
            b.codes.shape(), float8_multiple);
  }
  require_shape(name, "the scale of a", a.scale, {2});
  require_shape(name, "the scale of b", b.scale, {2});
  if (bias.defined()) {
    require((std::is_same_v<C, bfloat16>), "{}: a bias needs a result of bfloat16", name);
    require(!accumulate, "{}: a bias and accumulate exclude each other", name);
    require_count(name, "bias", bias, c.shape().back());
  }
  Float8Products<D>::multiply(a, b, bias, c, accumulate);
}

}  // namespace trireme::ops
