#include <algorithm>
#include <type_traits>

#include "ops/base/parallel.hpp"
#include "ops/convolution/convolution_columns.hpp"
#include "ops/convolution/convolution_on.hpp"
#include "ops/convolution/convolution_plan.hpp"
#include "ops/convolution/grouped_convolution.hpp"
#include "ops/convolution/winograd.hpp"
#include "ops/elementwise/elementwise_kernels.hpp"
#include "ops/elementwise/floats.hpp"
#include "ops/matmul/matmul_plan.hpp"
#include "precision/instantiate.hpp"
#include "trireme/ops/elementwise/cast.hpp"
#include "trireme/ops/matmul/matmul.hpp"

namespace trireme::ops {
namespace {

// Whether oneDNN computes with operands of type T; if not, they are converted to float.
template <typename T>
bool taken_as_is() {
  return !is_half<T> || has_matmul(dtype_of<T>);
}

template <typename T>
ConvolutionShape shape_for(ConvolutionShape shape) {
  shape.operands = dtype_of<T>;
  return shape;
}

}  // namespace

template <>
template <typename T>
void Convolution<Cpu>::forward(const ConvolutionShape& shape, const Tensor<T, Cpu>& x, const Tensor<T, Cpu>& weight,
                               const Tensor<Accumulate<T>, Cpu>& bias, Tensor<T, Cpu>& y) {
  if constexpr (std::is_same_v<T, float>) {
    if (suits_grouped(shape)) return grouped_forward(shape, x.data(), weight.data(), bias.data(), y.data());
    if (suits_winograd(shape)) return winograd_forward(shape, x.data(), weight.data(), bias.data(), y.data());
    if (suits_columns(shape)) return linear(columns_of(shape, x), weight_matrix(shape, weight), bias, y);
  }
  if constexpr (is_half<T>) {
    if (!taken_as_is<T>() || suits_grouped(shape)) {
      Tensor<float, Cpu> floats(y.shape());
      forward(shape, as_floats(x), as_floats(weight), bias, floats);
      return cast(floats, y);
    }
  }
  run_convolution(shape_for<T>(shape), x.data(), weight.data(), bias.data(), y.data());
}

template <>
template <typename T>
void Convolution<Cpu>::backward_data(const ConvolutionShape& shape, const Tensor<T, Cpu>& dy, const Tensor<T, Cpu>& weight,
                                     Tensor<T, Cpu>& dx) {
  if constexpr (std::is_same_v<T, float>) {
    if (data_suits_grouped(shape)) return grouped_data(shape, dy.data(), weight.data(), dx.data());
    if (suits_winograd(shape)) return winograd_data(shape, dy.data(), weight.data(), dx.data());
    if (shape.is_product()) return matmul(dy, weight_matrix(shape, weight), dx);
    if (gradient_suits_columns(shape)) {
      Tensor<float> columns({dy.shape().rows(), weight.numel() / shape.out});
      matmul(dy, weight_matrix(shape, weight), columns);
      return sum_columns(shape, columns, dx);
    }
  }
  if constexpr (is_half<T>) {
    if (!taken_as_is<T>() || data_suits_grouped(shape)) {
      Tensor<float, Cpu> floats(dx.shape());
      backward_data(shape, as_floats(dy), as_floats(weight), floats);
      return cast(floats, dx);
    }
  }
  run_convolution_data(shape_for<T>(shape), dy.data(), weight.data(), dx.data());
}

template <>
template <typename T>
void Convolution<Cpu>::backward_weight(const ConvolutionShape& shape, const Tensor<T, Cpu>& x, const Tensor<T, Cpu>& dy,
                                       Tensor<Accumulate<T>, Cpu>& dweight) {
  if (shape.batch == 0) {
    std::fill_n(dweight.data(), dweight.numel(), Accumulate<T>{0});
    return;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (weight_suits_grouped(shape)) return grouped_weight(shape, x.data(), dy.data(), dweight.data());
    if (suits_winograd(shape)) return winograd_weight(shape, x.data(), dy.data(), dweight.data());
    if (gradient_suits_columns(shape)) {
      auto matrix = weight_matrix(shape, dweight);
      return matmul(dy, columns_of(shape, x), matrix, {.transpose_a = true});
    }
  }
  if constexpr (is_half<T>) {
    if (!taken_as_is<T>() || weight_suits_grouped(shape)) return backward_weight(shape, as_floats(x), as_floats(dy), dweight);
  }
  run_convolution_weight(shape_for<T>(shape), x.data(), dy.data(), dweight.data());
}

// Adds the bias to blocks of several pixels, because a loop over few channels would be short.
template <>
template <typename T>
void Convolution<Cpu>::add_bias(Tensor<T, Cpu>& images, const Tensor<Accumulate<T>, Cpu>& bias) {
  using A = Accumulate<T>;
  const std::int64_t channels = bias.numel();
  const std::int64_t pixels = 1 + (piece_elements - 1) / channels;
  Tensor<A, Cpu> block({pixels, channels});
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel) std::copy_n(bias.data(), channels, block.data() + pixel * channels);
  const auto& kernels = elementwise_kernels().of<A>();
  parallel_ranges(images.numel(), block.numel(), least_elements, [&](std::int64_t begin, std::int64_t end) {
    for (; begin < end; begin += block.numel()) {
      for_pieces<T>(begin, std::min(begin + block.numel(), end), [&](std::int64_t first, std::int64_t count) {
        Output<T> part(images.data() + first, count, true);
        kernels.add(part.data(), block.data() + (first - begin), part.data(), count);
      });
    }
  });
}

TRIREME_INSTANTIATE(FLOATS, conv2d, Cpu)
TRIREME_INSTANTIATE(FLOATS, conv2d_backward_data, Cpu)
TRIREME_INSTANTIATE(FLOATS, conv2d_backward_weight, Cpu)
TRIREME_INSTANTIATE(FLOATS, conv_transpose2d, Cpu)
TRIREME_INSTANTIATE(FLOATS, conv_transpose2d_backward_data, Cpu)
TRIREME_INSTANTIATE(FLOATS, conv_transpose2d_backward_weight, Cpu)

}  // namespace trireme::ops
