#include "trireme/ops/optimizer.hpp"

#include "ops/block_sums.hpp"
#include "ops/kernels/tables.hpp"
#include "ops/parallel_for.hpp"

namespace trireme::ops {

template <typename T>
void adamw(T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count, const AdamWStep& step, Cpu) {
  parallel_for(static_cast<std::int64_t>(count), elements_per_part, [&](std::int64_t begin, std::int64_t end) {
    kernels::optimizer<T>().adamw(weight + begin, gradient + begin, first_moment + begin, second_moment + begin,
                                  static_cast<std::size_t>(end - begin), step);
  });
}

template <typename T>
void sgd(T* weight, const T* gradient, T* momentum, std::size_t count, const SgdStep& step, Cpu) {
  parallel_for(static_cast<std::int64_t>(count), elements_per_part, [&](std::int64_t begin, std::int64_t end) {
    kernels::optimizer<T>().sgd(weight + begin, gradient + begin, momentum == nullptr ? nullptr : momentum + begin,
                                static_cast<std::size_t>(end - begin), step);
  });
}

template <typename T>
GradientNorms gradient_norms(const T* gradient, std::size_t count, Cpu) {
  const auto elements = static_cast<std::int64_t>(count);
  return {.sum_of_squares = block_sums(gradient, elements, kernels::reduce<T>().sum_of_squares),
          .max_abs = kernels::reduce<T>().max_abs(gradient, elements)};
}

#define TRIREME_INSTANTIATE(T)                                                   \
  template void adamw(T*, const T*, T*, T*, std::size_t, const AdamWStep&, Cpu); \
  template void sgd(T*, const T*, T*, std::size_t, const SgdStep&, Cpu);         \
  template GradientNorms gradient_norms(const T*, std::size_t, Cpu)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);

}  // namespace trireme::ops
