#include "ops/elementwise/dropout_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/elementwise/dropout_on.hpp"
#include "trireme/device/graph.hpp"

namespace trireme::ops {

template <>
template <typename T>
void Dropouts<Cuda>::dropout(const Dropout<T>& all) {
  if (all.position == nullptr) device::require_not_capturing("dropout of a tape that is not a StepGraph's");
  device::check_cuda(cuda::dropout(all, device::native_stream()), "dropout");
}

TRIREME_INSTANTIATE_DROPOUT(float, Cuda);
TRIREME_INSTANTIATE_DROPOUT(double, Cuda);
TRIREME_INSTANTIATE_DROPOUT(bfloat16, Cuda);
TRIREME_INSTANTIATE_DROPOUT(float16, Cuda);

}  // namespace trireme::ops
