#include "ops/update/optimizer_kernels.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

// Calls update(planes[i]...) for every i.
template <typename Update, typename... Planes>
TRIREME_HOST_DEVICE void update_each(std::size_t count, const Update& update, Planes*... planes) {
  const Update of = update;
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) of(planes[i]...);
}

template <typename T>
void adam(T* weight, const T* gradient, T* first_moment, T* second_moment, T* largest, std::size_t count,
          const AdamUpdate<T>& update) {
  if (largest == nullptr) {
    update_each(count, update, gradient, weight, first_moment, second_moment);
  } else {
    update_each(count, update, gradient, weight, first_moment, second_moment, largest);
  }
}

template <typename T>
void sgd(T* weight, const T* gradient, T* momentum, std::size_t count, const SgdUpdate<T>& update) {
  if (momentum == nullptr) {
    update_each(count, update, gradient, weight);
  } else {
    update_each(count, update, gradient, weight, momentum);
  }
}

template <typename T>
void rmsprop(T* weight, const T* gradient, T* square_average, T* average, T* momentum, std::size_t count,
             const RmspropUpdate<T>& update) {
  if (average == nullptr && momentum == nullptr) {
    update_each(count, PlainRmsprop<T>{update}, gradient, weight, square_average);
  } else if (average == nullptr) {
    update_each(count, MomentumRmsprop<T>{update}, gradient, weight, square_average, momentum);
  } else if (momentum == nullptr) {
    update_each(count, CenteredRmsprop<T>{update}, gradient, weight, square_average, average);
  } else {
    update_each(count, CenteredMomentumRmsprop<T>{update}, gradient, weight, square_average, average, momentum);
  }
}

template <typename T>
void adagrad(T* weight, const T* gradient, T* sum_of_squares, std::size_t count, const AdagradUpdate<T>& update) {
  update_each(count, update, gradient, weight, sum_of_squares);
}

template <typename T>
void lion(T* weight, const T* gradient, T* momentum, std::size_t count, const LionUpdate<T>& update) {
  update_each(count, update, gradient, weight, momentum);
}

template <typename T>
UpdateSquares lamb_moments(const T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count,
                           const LambUpdate<T>& update) {
  const LambUpdate<T> of = update;
  constexpr std::size_t lanes = 32;  // independent sums
  double weights[lanes] = {};
  double updates[lanes] = {};
  const auto add = [&](std::size_t i, std::size_t lane) {
    const auto w = static_cast<double>(weight[i]);
    const auto u = static_cast<double>(of.measured(gradient[i], weight[i], first_moment[i], second_moment[i]));
    weights[lane] += w * w;
    updates[lane] += u * u;
  };
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
#pragma omp simd
    for (std::size_t lane = 0; lane < lanes; ++lane) add(i + lane, lane);
  }
  for (; i < count; ++i) add(i, 0);
  UpdateSquares squares;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    squares.weight += weights[lane];
    squares.update += updates[lane];
  }
  return squares;
}

template <typename T>
void lamb(T* weight, const T* first_moment, const T* second_moment, std::size_t count, const LambUpdate<T>& update) {
  update_each(count, update, first_moment, second_moment, weight);
}

template <typename T>
void lars(T* weight, const T* gradient, T* momentum, std::size_t count, const LarsUpdate<T>& update) {
  update_each(count, update, gradient, weight, momentum);
}

template <typename T>
void clip_by_value(T* gradient, std::size_t count, const ClipByValue<T>& clip) {
  update_each(count, clip, gradient);
}

template <typename T>
void move_average(T* average, const T* value, std::size_t count, const MoveAverage<T>& move) {
  update_each(count, move, value, average);
}

template <typename T>
constexpr OptimizerKernels<T> kernels{adam<T>,         sgd<T>,  rmsprop<T>, adagrad<T>,       lion<T>,
                                      lamb_moments<T>, lamb<T>, lars<T>,    clip_by_value<T>, move_average<T>};

}  // namespace

const KernelTable<OptimizerKernels> optimizer_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
