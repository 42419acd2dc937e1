#include "ops/base/rows.cuh"
#include "ops/loss/loss_body.hpp"
#include "ops/loss/loss_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {
namespace {

// Calls body(CrossEntropyRow) to make the body of a row's team, and launches it for all rows.
template <typename T, typename MakeBody, typename... X>
cudaError_t each_row_of(const CrossEntropyLaunch<T>& launch, MakeBody body, const X*... x) {
  return with_pack_width<T>(
      launch.rows.classes,
      [=](auto pack) {
        const CrossEntropyRow<pack(), T> of{launch.rows, launch.class_weight_sum};
        return each_row(launch.rows.count, launch.rows.classes, launch.stream, body(of));
      },
      launch.rows.logits, x...);
}

template <typename T>
cudaError_t total(const CrossEntropyLaunch<T>& launch, const double* losses, double* sums) {
  return by_one_block(launch.stream, CrossEntropyTotal<1, T>{{launch.rows, launch.class_weight_sum}, losses, sums});
}

}  // namespace

template <typename T>
cudaError_t cross_entropy_sums(const CrossEntropyLaunch<T>& launch, Accumulate<T>* exponentials, double* losses, double* sums) {
  const cudaError_t status = each_row_of(launch, [=]<int Width>(const CrossEntropyRow<Width, T>& of) {
    return CrossEntropyForward<Width, T>{of, exponentials, losses};
  });
  return status == cudaSuccess ? total(launch, losses, sums) : status;
}

template <typename T>
cudaError_t cross_entropy_in_place(const CrossEntropyLaunch<T>& launch, Accumulate<T> scale, T* logits, double* losses,
                                   double* sums) {
  const cudaError_t status = each_row_of(launch, [=]<int Width>(const CrossEntropyRow<Width, T>& of) {
    return CrossEntropyInPlace<Width, T>{of, scale, logits, losses};
  });
  return status == cudaSuccess ? total(launch, losses, sums) : status;
}

template <typename T>
cudaError_t cross_entropy_losses(const CrossEntropyLaunch<T>& launch, const Accumulate<T>* exponentials,
                                 Accumulate<T>* losses) {
  return each_row_of(launch, [=]<int Width>(const CrossEntropyRow<Width, T>& of) {
    return CrossEntropyLosses<Width, T>{of, exponentials, losses};
  });
}

template <typename T>
cudaError_t cross_entropy_backward(const CrossEntropyLaunch<T>& launch, const Accumulate<T>* exponentials,
                                   const CrossEntropyScale<Accumulate<T>>& scale, T* dlogits) {
  return each_row_of(
      launch,
      [=]<int Width>(const CrossEntropyRow<Width, T>& of) {
        return CrossEntropyGradient<Width, T>{of, exponentials, scale, dlogits};
      },
      dlogits);
}

TRIREME_INSTANTIATE(FLOATS, cross_entropy_sums)
TRIREME_INSTANTIATE(FLOATS, cross_entropy_in_place)
TRIREME_INSTANTIATE(FLOATS, cross_entropy_losses)
TRIREME_INSTANTIATE(FLOATS, cross_entropy_backward)

}  // namespace trireme::ops::cuda
