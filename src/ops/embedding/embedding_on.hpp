#pragma once

#include <string_view>

#include "ops/base/check.hpp"
#include "trireme/ops/embedding/embedding.hpp"

// The operations of ops/embedding/embedding.hpp for any device. The checks of shapes are shared; Embedding<D> does the work.
namespace trireme::ops {

struct EmbeddingSizes {
  std::int64_t places;
  std::int64_t rows;  // of the weight
  std::int64_t width;
};

template <typename D>
struct Embedding {
  template <typename T>
  static void forward(const EmbeddingSizes& sizes, const std::int32_t* index, const T* weight, T* y, bool accumulate);
  template <typename T>
  static void backward(const EmbeddingSizes& sizes, const std::int32_t* index, const T* dy, T* dweight, bool accumulate,
                       std::int32_t padding);  // below 0: none
};

template <typename T, typename D>
EmbeddingSizes embedding_sizes(std::string_view op, const Tensor<std::int32_t, D>& index, const Tensor<T, D>& weight,
                               const Tensor<T, D>& rows) {
  require(weight.shape().size() == 2, "{}: the weight has shape {}, but needs [rows, width]", op, weight.shape());
  require(rows.shape().size() > 0 && rows.shape().back() == weight.dim(1) && rows.numel() == index.numel() * weight.dim(1),
          "{}: an index of shape {} and a weight of shape {} do not fit rows of shape {}", op, index.shape(), weight.shape(),
          rows.shape());
  return {.places = index.numel(), .rows = weight.dim(0), .width = weight.dim(1)};
}

template <typename T, typename D>
void embedding(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& weight, Tensor<T, D>& y, bool accumulate) {
  const auto sizes = embedding_sizes("embedding", index, weight, y);
  Embedding<D>::forward(sizes, index.data(), weight.data(), y.data(), accumulate);
}

template <typename T, typename D>
void embedding_backward(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& dy, Tensor<T, D>& dweight, bool accumulate,
                        std::optional<std::int32_t> padding) {
  const auto sizes = embedding_sizes("embedding_backward", index, dweight, dy);
  Embedding<D>::backward(sizes, index.data(), dy.data(), dweight.data(), accumulate,
                         padding_row(padding, sizes.rows).value_or(-1));
}

}  // namespace trireme::ops
