#include "ops/base/rows.cuh"
#include "ops/reduce/reduce_body.hpp"
#include "ops/reduce/reduce_cuda.hpp"
#include "ops/update/lamb_body.hpp"
#include "ops/update/optimizer_cuda.hpp"
#include "ops/update/update.cuh"

namespace trireme::ops::cuda {
namespace {

// How a kernel makes the update of one element: from the step, with what it reads of it in memory.
template <typename Update, typename Step>
struct MadeOf {
  Step step;

  __device__ bool skipped() const { return is_skipped(step.on_device); }
  __device__ Update operator()() const { return Update(resolved(step)); }
};
template <typename Update, typename Step>
MadeOf<Update, Step> made_of(const Step& step) {
  return {step};
}

template <typename Form>
struct RmspropOf {
  RmspropStep step;

  __device__ bool skipped() const { return is_skipped(step.on_device); }
  __device__ Form operator()() const { return Form{decltype(Form::of)(resolved(step))}; }
};

template <typename Update>
struct Known {
  Update update;

  __device__ bool skipped() const { return false; }
  __device__ Update operator()() const { return update; }
};

}  // namespace

template <typename T>
cudaError_t adam(T* weight, const T* gradient, T* first_moment, T* second_moment, T* largest, std::size_t count,
                 const AdamStep& step, cudaStream_t stream) {
  if (largest == nullptr)
    return update_elements(count, stream, made_of<AdamUpdate<T>>(step), gradient, weight, first_moment, second_moment);
  return update_elements(count, stream, made_of<AdamUpdate<T>>(step), gradient, weight, first_moment, second_moment, largest);
}

template <typename T>
cudaError_t sgd(T* weight, const T* gradient, T* momentum, std::size_t count, const SgdStep& step, cudaStream_t stream) {
  if (momentum == nullptr) return update_elements(count, stream, made_of<SgdUpdate<T>>(step), gradient, weight);
  return update_elements(count, stream, made_of<SgdUpdate<T>>(step), gradient, weight, momentum);
}

template <typename T>
cudaError_t rmsprop(T* weight, const T* gradient, T* square_average, T* average, T* momentum, std::size_t count,
                    const RmspropStep& step, cudaStream_t stream) {
  const auto run = [=](const auto& make, auto*... kept) {
    return update_elements(count, stream, make, gradient, weight, square_average, kept...);
  };
  if (average == nullptr && momentum == nullptr) return run(RmspropOf<PlainRmsprop<T>>{step});
  if (average == nullptr) return run(RmspropOf<MomentumRmsprop<T>>{step}, momentum);
  if (momentum == nullptr) return run(RmspropOf<CenteredRmsprop<T>>{step}, average);
  return run(RmspropOf<CenteredMomentumRmsprop<T>>{step}, average, momentum);
}

template <typename T>
cudaError_t adagrad(T* weight, const T* gradient, T* sum_of_squares, std::size_t count, const AdagradStep& step,
                    cudaStream_t stream) {
  return update_elements(count, stream, made_of<AdagradUpdate<T>>(step), gradient, weight, sum_of_squares);
}

template <typename T>
cudaError_t lion(T* weight, const T* gradient, T* momentum, std::size_t count, const LionStep& step, cudaStream_t stream) {
  return update_elements(count, stream, made_of<LionUpdate<T>>(step), gradient, weight, momentum);
}

template <typename T>
cudaError_t lamb(T* weight, const T* first_moment, const T* second_moment, std::size_t count, const LambStep& step,
                 cudaStream_t stream) {
  return update_elements(count, stream, made_of<LambUpdate<T>>(step), first_moment, second_moment, weight);
}

template <typename T>
cudaError_t lars(T* weight, const T* gradient, T* momentum, std::size_t count, const LarsStep& step, cudaStream_t stream) {
  return update_elements(count, stream, made_of<LarsUpdate<T>>(step), gradient, weight, momentum);
}

template <typename T>
cudaError_t clip_by_value(T* gradient, std::size_t count, const ClipStep& step, cudaStream_t stream) {
  return update_elements(count, stream, made_of<ClipByValue<T>>(step), gradient);
}

template <typename T>
cudaError_t move_average(T* average, const T* value, std::size_t count, const MoveAverage<T>& move, cudaStream_t stream) {
  return update_elements(count, stream, Known<MoveAverage<T>>{move}, value, average);
}

template <typename T>
cudaError_t lamb_moments(const T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count,
                         const LambStep& step, double* sums, UpdateSquares* squares, cudaStream_t stream) {
  const auto elements = static_cast<std::int64_t>(count);
  const std::int64_t parts = num_sum_parts(elements);
  const LambMoments<T> body{weight, gradient, first_moment, second_moment, elements, parts, sums, sums + parts};
  cudaError_t status = update_rows(parts, stream, made_of<LambUpdate<T>>(step), body);
  if (status == cudaSuccess) status = by_one_block(stream, Total{sums, parts, &squares->weight, true});
  if (status == cudaSuccess) status = by_one_block(stream, Total{sums + parts, parts, &squares->update, true});
  return status;
}

#define TRIREME_INSTANTIATE(T)                                                                                         \
  template cudaError_t adam(T*, const T*, T*, T*, T*, std::size_t, const AdamStep&, cudaStream_t);                     \
  template cudaError_t sgd(T*, const T*, T*, std::size_t, const SgdStep&, cudaStream_t);                               \
  template cudaError_t rmsprop(T*, const T*, T*, T*, T*, std::size_t, const RmspropStep&, cudaStream_t);               \
  template cudaError_t adagrad(T*, const T*, T*, std::size_t, const AdagradStep&, cudaStream_t);                       \
  template cudaError_t lion(T*, const T*, T*, std::size_t, const LionStep&, cudaStream_t);                             \
  template cudaError_t lamb(T*, const T*, const T*, std::size_t, const LambStep&, cudaStream_t);                       \
  template cudaError_t lars(T*, const T*, T*, std::size_t, const LarsStep&, cudaStream_t);                             \
  template cudaError_t clip_by_value(T*, std::size_t, const ClipStep&, cudaStream_t);                                  \
  template cudaError_t move_average(T*, const T*, std::size_t, const MoveAverage<T>&, cudaStream_t);                   \
  template cudaError_t lamb_moments(const T*, const T*, T*, T*, std::size_t, const LambStep&, double*, UpdateSquares*, \
                                    cudaStream_t)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);

}  // namespace trireme::ops::cuda
