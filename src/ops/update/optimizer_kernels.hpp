#pragma once

#include <cstddef>

#include "ops/base/table.hpp"
#include "ops/update/optimizer_body.hpp"

namespace trireme::ops {

template <typename T>
struct OptimizerKernels {
  // What a variant does not keep is null: largest, momentum, average.
  void (*adam)(T* weight, const T* gradient, T* first_moment, T* second_moment, T* largest, std::size_t count,
               const AdamUpdate<T>& update);
  void (*sgd)(T* weight, const T* gradient, T* momentum, std::size_t count, const SgdUpdate<T>& update);
  void (*rmsprop)(T* weight, const T* gradient, T* square_average, T* average, T* momentum, std::size_t count,
                  const RmspropUpdate<T>& update);
  void (*adagrad)(T* weight, const T* gradient, T* sum_of_squares, std::size_t count, const AdagradUpdate<T>& update);
  void (*lion)(T* weight, const T* gradient, T* momentum, std::size_t count, const LionUpdate<T>& update);
  UpdateSquares (*lamb_moments)(const T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count,
                                const LambUpdate<T>& update);
  void (*lamb)(T* weight, const T* first_moment, const T* second_moment, std::size_t count, const LambUpdate<T>& update);
  void (*lars)(T* weight, const T* gradient, T* momentum, std::size_t count, const LarsUpdate<T>& update);
  void (*clip_by_value)(T* gradient, std::size_t count, const ClipByValue<T>& clip);
  void (*move_average)(T* average, const T* value, std::size_t count, const MoveAverage<T>& move);
};

TRIREME_KERNEL_TABLE(KernelTable<OptimizerKernels>, optimizer_kernels)

}  // namespace trireme::ops
