#pragma once

#include <numeric>

#include "ops/base/check.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/elementwise/cast.hpp"
#include "trireme/ops/matmul/batched_matmul.hpp"

// The operations of ops/matmul/batched_matmul.hpp for any device: BatchedMatmul<D> multiplies.
namespace trireme::ops {

template <typename D>
struct BatchedMatmul {
  // c = a b, or +=, for all matrices of `batch`, whose last two dims are ignored. Products are summed over the dims that c does
  // not have. If `batch` has no matrix, the sums are 0.
  template <typename T, typename C>
  static void run(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<C, D>& c, const Shape& batch,
                  const MatmulOptions& options);
};

namespace detail {

inline bool is_batch(const Shape& shape) { return shape.size() >= 2; }

inline std::int64_t num_matrices(const Shape& shape) {
  return std::accumulate(shape.dims().begin(), shape.dims().end() - 2, std::int64_t{1}, std::multiplies<>());
}

inline bool broadcasts_to(const Shape& batch, const Shape& operand) {
  if (operand.size() > batch.size()) return false;
  for (int dim = -3; - dim <= operand.size(); --dim) {
    if (operand[dim] != 1 && operand[dim] != batch[dim]) return false;
  }
  return true;
}

// Sums of half types are in float, and rounded at the end.
template <typename T, typename C, typename D>
void multiply_all(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<C, D>& c, const Shape& batch,
                  const MatmulOptions& options) {
  if constexpr (!std::is_same_v<C, Accumulate<C>>) {
    if (num_matrices(c.shape()) < num_matrices(batch)) {
      Tensor<float, D> sums(c.shape());
      if (options.accumulate) cast(c, sums);
      BatchedMatmul<D>::run(a, b, sums, batch, options);
      return cast(sums, c);
    }
  }
  BatchedMatmul<D>::run(a, b, c, batch, options);
}

}  // namespace detail

template <typename T, typename D>
void batched_matmul(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<T, D>& c, MatmulOptions options) {
  require_defined("batched_matmul", "a", a);
  require_defined("batched_matmul", "b", b);
  require_defined("batched_matmul", "c", c);
  require(detail::is_batch(a.shape()) && detail::is_batch(b.shape()) && detail::is_batch(c.shape()) &&
              detail::broadcasts_to(c.shape(), a.shape()) && detail::broadcasts_to(c.shape(), b.shape()),
          "batched_matmul: a {} and b {} do not broadcast to c {}", a.shape(), b.shape(), c.shape());
  // One matrix b for all rows of a: a single product.
  if (b.shape().size() == 2 && !options.transpose_a) return matmul(a, b, c, options);
  detail::multiply_all(a, b, c, c.shape(), options);
}

template <typename T, typename D, typename G>
void batched_matmul_backward(const BatchedMatmulBackward<T, D, G>& pass) {
  require_defined("batched_matmul_backward", "a", pass.a);
  require_defined("batched_matmul_backward", "b", pass.b);
  const Shape batch = batched_matmul_shape(pass.a.shape(), pass.b.shape());
  require_shape("batched_matmul_backward", "dc", pass.dc, batch);
  const bool single = pass.b.shape().size() == 2;
  if (pass.da.defined()) {
    require_shape("batched_matmul_backward", "da", pass.da, pass.a.shape());
    const MatmulOptions options{.transpose_b = true, .accumulate = pass.accumulate_da};
    auto da = pass.da;
    single ? matmul(pass.dc, pass.b, da, options) : detail::multiply_all(pass.dc, pass.b, da, batch, options);
  }
  if (pass.db.defined()) {
    require_shape("batched_matmul_backward", "db", pass.db, pass.b.shape());
    const MatmulOptions options{.transpose_a = true, .accumulate = pass.accumulate_db};
    auto db = pass.db;
    single ? matmul(pass.a, pass.dc, db, options) : detail::multiply_all(pass.a, pass.dc, db, batch, options);
  }
}

#define TRIREME_BATCHED_MATMUL_BACKWARD(T, D) TRIREME_INSTANCE(T, batched_matmul_backward, D, T)

}  // namespace trireme::ops
