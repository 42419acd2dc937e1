#include "ops/reduce/block_sums.hpp"
#include "ops/update/optimizer_kernels.hpp"
#include "ops/update/optimizer_on.hpp"
#include "precision/instantiate.hpp"
#include "trireme/ops/reduce/reduce.hpp"

namespace trireme::ops {

template <>
template <typename Update>
void OptimizerPasses<Cpu>::update_elements(const typename Update::Step& step, std::size_t count,
                                           const typename Update::Planes& planes) {
  const Update update(step);
  const UpdateKernel<Update>& kernel = optimizer_kernels().of<typename Update::Planes::T>();
  parallel_elements(static_cast<std::int64_t>(count), [&](std::int64_t begin, std::int64_t end) {
    kernel.update_elements(static_cast<std::size_t>(end - begin), update, planes.from(begin));
  });
}

template <>
template <typename T>
void OptimizerPasses<Cpu>::lamb_moments(const T* weight, const T* gradient, T* first_moment, T* second_moment,
                                        std::size_t count, const LambStep& step, UpdateSquares* squares) {
  const LambUpdate<T> update(step);
  const auto& kernels = optimizer_kernels().of<T>();
  const auto sum = [](const UpdateSquares& a, const UpdateSquares& b) {
    return UpdateSquares{.weight = a.weight + b.weight, .update = a.update + b.update};
  };
  const auto of_range = combine_blocks<UpdateSquares>(
      static_cast<std::int64_t>(count),
      [&](std::int64_t at, std::int64_t part) {
        return kernels.lamb_moments(weight + at, gradient + at, first_moment + at, second_moment + at,
                                    static_cast<std::size_t>(part), update);
      },
      sum);
  *squares = sum(*squares, of_range);
}

template <>
template <typename T>
void OptimizerPasses<Cpu>::lars_squares(const T* weight, const T* gradient, std::size_t count, UpdateSquares* squares) {
  squares->weight += sum_of_squares(weight, count).item();
  squares->update += sum_of_squares(gradient, count).item();
}

TRIREME_EACH(SINGLE_AND_DOUBLE, TRIREME_EACH_UPDATE, Cpu)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, lamb_moments, Cpu)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, lars_squares, Cpu)

}  // namespace trireme::ops
