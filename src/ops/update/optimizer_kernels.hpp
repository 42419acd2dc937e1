#pragma once

#include <cstddef>

#include "ops/base/table.hpp"
#include "trireme/ops/update/each_optimizer.hpp"

namespace trireme::ops {

template <typename Update>
struct UpdateKernel {
  void (*update_elements)(std::size_t count, const Update& update, const typename Update::Planes& planes);
};

template <typename T>
struct LambMomentsKernel {
  UpdateSquares (*lamb_moments)(const T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count,
                                const LambUpdate<T>& update);
};

#define TRIREME_KERNEL(name, Name, T) UpdateKernel<Name##Update<T>>,
template <typename T>
struct OptimizerKernels : TRIREME_EACH_FORMULA(TRIREME_KERNEL, T) LambMomentsKernel<T> {};
#undef TRIREME_KERNEL

TRIREME_KERNEL_TABLE(KernelTable<OptimizerKernels>, optimizer_kernels)

}  // namespace trireme::ops
