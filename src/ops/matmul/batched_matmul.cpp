#include "trireme/ops/matmul/batched_matmul.hpp"

#include <vector>

#include "ops/matmul/batched_matmul_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {
namespace {

using detail::is_batch;
using detail::num_matrices;

// The matrix of an operand for matrix number `index` of `batch`. The last two dims of `batch` are ignored.
std::int64_t place_in(const Shape& operand, const Shape& batch, std::int64_t index) {
  std::int64_t place = 0;
  std::int64_t step = 1;
  for (int dim = -3; - dim <= operand.size(); --dim) {
    if (operand[dim] != 1) place += index % batch[dim] * step;
    step *= operand[dim];
    index /= batch[dim];
  }
  return place;
}

template <typename T>
Tensor<T, Cpu> matrix_at(const Tensor<T, Cpu>& tensor, const Shape& batch, std::int64_t index) {
  const Shape matrix{tensor.dim(-2), tensor.dim(-1)};
  return tensor.reshape({num_matrices(tensor.shape()), matrix[0], matrix[1]})
      .narrow(place_in(tensor.shape(), batch, index), 1)
      .reshape(matrix);
}

}  // namespace

Shape batched_matmul_shape(const Shape& a, const Shape& b) {
  const auto require_fit = [&](bool fit) { require(fit, "batched_matmul: {} and {} do not fit", a, b); };
  require_fit(is_batch(a) && is_batch(b) && a[-1] == b[-2]);
  std::array<std::int64_t, Shape::max_dims> dims{};
  const int size = std::max(a.size(), b.size());
  for (int dim = -3; - dim <= size; --dim) {
    const std::int64_t of_a = -dim <= a.size() ? a[dim] : 1;
    const std::int64_t of_b = -dim <= b.size() ? b[dim] : 1;
    require_fit(of_a == of_b || of_a == 1 || of_b == 1);
    dims[static_cast<std::size_t>(size + dim)] = of_a == 1 ? of_b : of_a;
  }
  dims[static_cast<std::size_t>(size - 2)] = a[-2];
  dims[static_cast<std::size_t>(size - 1)] = b[-1];
  return Shape(std::span(dims.data(), static_cast<std::size_t>(size)));
}

template <>
template <typename T, typename C>
void BatchedMatmul<Cpu>::run(const Tensor<T, Cpu>& a, const Tensor<T, Cpu>& b, Tensor<C, Cpu>& c, const Shape& batch,
                             const MatmulOptions& options) {
  std::vector<bool> written(static_cast<std::size_t>(num_matrices(c.shape())), false);
  for (std::int64_t index = 0; index < num_matrices(batch); ++index) {
    const auto place = static_cast<std::size_t>(place_in(c.shape(), batch, index));
    auto result = matrix_at(c, batch, index);
    auto of_this = options;
    of_this.accumulate = options.accumulate || written[place];
    written[place] = true;
    matmul(matrix_at(a, batch, index), matrix_at(b, batch, index), result, of_this);
  }
  if (num_matrices(batch) == 0 && !options.accumulate) std::fill_n(c.data(), c.numel(), C(0.0f));
}

TRIREME_INSTANTIATE(FLOATS, batched_matmul, Cpu)
TRIREME_EACH(FLOATS, TRIREME_BATCHED_MATMUL_BACKWARD, Cpu)
TRIREME_INSTANTIATE(HALVES, batched_matmul_backward, Cpu, float)

}  // namespace trireme::ops
