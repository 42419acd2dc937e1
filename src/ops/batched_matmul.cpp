#include "trireme/ops/batched_matmul.hpp"

#include <numeric>
#include <vector>

#include "ops/check.hpp"
#include "ops/floats.hpp"

namespace trireme::ops {
namespace {

bool is_matrix(const Shape& shape) { return shape.size() >= 2; }

std::int64_t num_matrices(const Shape& shape) {
  return std::accumulate(shape.dims().begin(), shape.dims().end() - 2, std::int64_t{1}, std::multiplies<>());
}

// Which matrix of an operand belongs to matrix `index` of a batch of shape `batch`, whose last two dims are not looked at.
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

bool fits(const Shape& operand, const Shape& batch) {
  if (operand.size() > batch.size()) return false;
  for (int dim = -3; - dim <= operand.size(); --dim) {
    if (operand[dim] != 1 && operand[dim] != batch[dim]) return false;
  }
  return true;
}

template <typename T>
Tensor<T, Cpu> matrix_at(const Tensor<T, Cpu>& tensor, const Shape& batch, std::int64_t index) {
  const Shape matrix{tensor.dim(-2), tensor.dim(-1)};
  return tensor.reshape({num_matrices(tensor.shape()), matrix[0], matrix[1]})
      .narrow(place_in(tensor.shape(), batch, index), 1)
      .reshape(matrix);
}

// c += or = a b over all matrices of `batch`; those of c may be summed over broadcast dims.
template <typename T, typename C>
void multiply_all(const Tensor<T, Cpu>& a, const Tensor<T, Cpu>& b, const Tensor<C, Cpu>& c, const Shape& batch,
                  MatmulOptions options) {
  if constexpr (is_half<C>) {
    if (num_matrices(c.shape()) < num_matrices(batch)) {  // sums are float
      auto rounded = c;
      const Tensor<float, Cpu> sums = options.accumulate ? as_floats(c) : Tensor<float, Cpu>(c.shape());
      multiply_all(a, b, sums, batch, options);
      return cast(sums, rounded);
    }
  }
  const bool accumulate = options.accumulate;
  std::vector<bool> written(static_cast<std::size_t>(num_matrices(c.shape())), false);
  for (std::int64_t index = 0; index < num_matrices(batch); ++index) {
    const auto place = static_cast<std::size_t>(place_in(c.shape(), batch, index));
    auto result = matrix_at(c, batch, index);
    options.accumulate = accumulate || written[place];
    written[place] = true;
    matmul(matrix_at(a, batch, index), matrix_at(b, batch, index), result, options);
  }
  if (num_matrices(batch) > 0 || accumulate) return;
  auto zeros = c;  // of a sum over no matrices
  std::fill_n(zeros.data(), zeros.numel(), C(0.0f));
}

}  // namespace

Shape batched_matmul_shape(const Shape& a, const Shape& b) {
  const auto refuse = [&] { throw Error({.message = fmt::format("batched_matmul: {} and {} do not fit", a, b)}); };
  if (!is_matrix(a) || !is_matrix(b) || a[-1] != b[-2]) refuse();
  std::array<std::int64_t, Shape::max_dims> dims{};
  const int size = std::max(a.size(), b.size());
  for (int dim = -3; - dim <= size; --dim) {
    const std::int64_t of_a = -dim <= a.size() ? a[dim] : 1;
    const std::int64_t of_b = -dim <= b.size() ? b[dim] : 1;
    if (of_a != of_b && of_a != 1 && of_b != 1) refuse();
    dims[static_cast<std::size_t>(size + dim)] = of_a == 1 ? of_b : of_a;
  }
  dims[static_cast<std::size_t>(size - 2)] = a[-2];
  dims[static_cast<std::size_t>(size - 1)] = b[-1];
  return Shape(std::span(dims.data(), static_cast<std::size_t>(size)));
}

template <typename T, typename D>
void batched_matmul(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<T, D>& c, MatmulOptions options) {
  require(is_matrix(a.shape()) && is_matrix(b.shape()) && is_matrix(c.shape()) && fits(a.shape(), c.shape()) &&
              fits(b.shape(), c.shape()),
          "batched_matmul: a {} and b {} do not broadcast to c {}", a.shape(), b.shape(), c.shape());
  // One matrix b for all rows of a: a single product.
  if (b.shape().size() == 2 && !options.transpose_a) return matmul(a, b, c, options);
  multiply_all(a, b, c, c.shape(), options);
}

template <typename T, typename D, typename G>
void batched_matmul_backward(const BatchedMatmulBackward<T, D, G>& pass) {
  const Shape batch = batched_matmul_shape(pass.a.shape(), pass.b.shape());
  require_shape("batched_matmul_backward", "dc", pass.dc.shape(), batch);
  const bool single = pass.b.shape().size() == 2;
  if (pass.da.defined()) {
    require_shape("batched_matmul_backward", "da", pass.da.shape(), pass.a.shape());
    const MatmulOptions options{.transpose_b = true, .accumulate = pass.accumulate_da};
    auto da = pass.da;
    single ? matmul(pass.dc, pass.b, da, options) : multiply_all(pass.dc, pass.b, da, batch, options);
  }
  if (pass.db.defined()) {
    require_shape("batched_matmul_backward", "db", pass.db.shape(), pass.b.shape());
    const MatmulOptions options{.transpose_a = true, .accumulate = pass.accumulate_db};
    auto db = pass.db;
    single ? matmul(pass.a, pass.dc, db, options) : multiply_all(pass.a, pass.dc, db, batch, options);
  }
}

#define TRIREME_INSTANTIATE(T)                                                                                \
  template void batched_matmul(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&, MatmulOptions); \
  template void batched_matmul_backward(const BatchedMatmulBackward<T, Cpu>&);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
TRIREME_INSTANTIATE(bfloat16)
TRIREME_INSTANTIATE(float16)
#undef TRIREME_INSTANTIATE
template void batched_matmul_backward(const BatchedMatmulBackward<bfloat16, Cpu, float>&);
template void batched_matmul_backward(const BatchedMatmulBackward<float16, Cpu, float>&);

}  // namespace trireme::ops
