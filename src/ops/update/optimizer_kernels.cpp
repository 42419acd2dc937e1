#include "ops/update/optimizer_kernels.hpp"

#include "ops/base/flush_denormals.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

template <typename Update, typename... Planes>
TRIREME_HOST_DEVICE void update_each(std::size_t count, const Update& update, Planes... planes) {
  const Update of = update;
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) of(planes[i]...);
}

template <typename Update>
void update_elements(std::size_t count, const Update& update, const typename Update::Planes& planes) {
  [[maybe_unused]] const FlushDenormals flush(outweighs_denormals(update));
  planes.visit([&](auto... kept) { update_each(count, update, kept...); });
}

template <typename T>
UpdateSquares lamb_moments(const T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count,
                           const LambUpdate<T>& update) {
  [[maybe_unused]] const FlushDenormals flush(outweighs_denormals(update));
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

#define TRIREME_KERNEL(name, Name, T) {update_elements<Name##Update<T>>},
template <typename T>
constexpr OptimizerKernels<T> kernels{TRIREME_EACH_FORMULA(TRIREME_KERNEL, T){lamb_moments<T>}};
#undef TRIREME_KERNEL

}  // namespace

const KernelTable<OptimizerKernels> optimizer_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
