#include "ops/base/parallel.hpp"
#include "ops/elementwise/elementwise_kernels.hpp"
#include "ops/embedding/embedding_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {
namespace {

void require_in_range(std::string_view op, const EmbeddingSizes& sizes, const std::int32_t* index) {
  for (std::int64_t place = 0; place < sizes.places; ++place) {
    const std::int32_t row = index[place];
    require(row >= 0 && row < sizes.rows, "{}: index {} is {}, but must lie in [0, {})", op, place, row, sizes.rows);
  }
}

}  // namespace

std::optional<std::int32_t> padding_row(std::optional<std::int32_t> padding, std::int64_t rows) {
  if (!padding) return padding;
  require(*padding >= -rows && *padding < rows, "padding_idx is {}, but must lie in [{}, {}) for a table of {} rows", *padding,
          -rows, rows, rows);
  return *padding < 0 ? static_cast<std::int32_t>(*padding + rows) : *padding;
}

template <>
template <typename T>
void Embedding<Cpu>::forward(const EmbeddingSizes& sizes, const std::int32_t* index, const T* weight, T* y, bool accumulate) {
  require_in_range("embedding", sizes, index);
  const std::int64_t width = sizes.width;
  const auto& kernels = elementwise_kernels().of<T>();
  parallel_rows(sizes.places, width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t place = begin; place < end; ++place) {
      const T* row = weight + index[place] * width;
      T* to = y + place * width;
      if (accumulate) {
        kernels.add(to, row, to, width);
      } else {
        std::copy_n(row, width, to);
      }
    }
  });
}

template <>
template <typename T>
void Embedding<Cpu>::backward(const EmbeddingSizes& sizes, const std::int32_t* index, const T* dy, T* dweight, bool accumulate,
                              std::int32_t padding) {
  require_in_range("embedding_backward", sizes, index);
  const std::int64_t width = sizes.width;
  const auto& kernels = elementwise_kernels().of<T>();
  // Each thread owns some rows of the table, and goes through all indices.
  parallel_rows(sizes.rows, width, [&](std::int64_t begin, std::int64_t end) {
    if (!accumulate) std::fill(dweight + begin * width, dweight + end * width, T(0));
    for (std::int64_t place = 0; place < sizes.places; ++place) {
      const std::int32_t row = index[place];
      if (row < begin || row >= end || row == padding) continue;
      T* to = dweight + row * width;
      kernels.add(to, dy + place * width, to, width);
    }
  });
}

TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, embedding, Cpu)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, embedding_backward, Cpu)

}  // namespace trireme::ops
