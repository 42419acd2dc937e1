#include "ops/loss/loss_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/loss/loss_on.hpp"
#include "ops/reduce/reduce_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

namespace {

// The sum of the class weights, which only label smoothing needs.
template <typename T>
Tensor<double, Cuda> class_weight_sum(const CrossEntropyRows<T>& rows) {
  if (rows.class_weight == nullptr || rows.label_smoothing == 0) return {};
  const Tensor<double, Cuda> sums({cuda::num_sum_parts(rows.classes)});
  Tensor<double, Cuda> total({1});
  check_cuda(cuda::sum(rows.class_weight, rows.classes, sums.data(), total.data(), native_stream()), "cross_entropy");
  return total;
}

}  // namespace

template <>
template <typename T>
void CrossEntropy<Cuda>::sums(const CrossEntropyRows<T>& rows, Accumulate<T>* exponentials, double* sums) {
  const auto weight_sum = class_weight_sum(rows);
  const Tensor<double, Cuda> losses({rows.count});
  check_cuda(cuda::cross_entropy_sums<T>({rows, weight_sum.data(), native_stream()}, exponentials, losses.data(), sums),
             "cross_entropy");
}

template <>
template <typename T>
void CrossEntropy<Cuda>::in_place(const CrossEntropyRows<T>& rows, Accumulate<T> scale, T* logits, double* sums) {
  const auto weight_sum = class_weight_sum(rows);
  const Tensor<double, Cuda> losses({rows.count});
  check_cuda(cuda::cross_entropy_in_place<T>({rows, weight_sum.data(), native_stream()}, scale, logits, losses.data(), sums),
             "cross_entropy_in_place");
}

template <>
template <typename T>
void CrossEntropy<Cuda>::losses(const CrossEntropyRows<T>& rows, const Accumulate<T>* exponentials, Accumulate<T>* losses) {
  const auto weight_sum = class_weight_sum(rows);
  check_cuda(cuda::cross_entropy_losses<T>({rows, weight_sum.data(), native_stream()}, exponentials, losses),
             "cross_entropy_rows");
}

template <>
template <typename T>
void CrossEntropy<Cuda>::backward(const CrossEntropyRows<T>& rows, const Accumulate<T>* exponentials,
                                  const CrossEntropyScale<Accumulate<T>>& scale, T* dlogits) {
  const auto weight_sum = class_weight_sum(rows);
  check_cuda(cuda::cross_entropy_backward<T>({rows, weight_sum.data(), native_stream()}, exponentials, scale, dlogits),
             "cross_entropy_backward");
}

TRIREME_INSTANTIATE(FLOATS, cross_entropy_sums, Cuda)
TRIREME_INSTANTIATE(FLOATS, cross_entropy_in_place, Cuda)
TRIREME_INSTANTIATE(FLOATS, cross_entropy, Cuda)
TRIREME_INSTANTIATE(FLOATS, cross_entropy_backward, Cuda)
TRIREME_INSTANTIATE(FLOATS, cross_entropy_rows, Cuda)
TRIREME_INSTANTIATE(FLOATS, cross_entropy_rows_backward, Cuda)
TRIREME_INSTANCE(Cuda, cross_entropy_result)

}  // namespace trireme::ops
