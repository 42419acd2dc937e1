#include "ops/elementwise/dropout_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/elementwise/dropout_on.hpp"
#include "precision/instantiate.hpp"
#include "trireme/device/graph.hpp"

namespace trireme::ops {

template <>
template <typename T>
void Dropouts<Cuda>::dropout(const Dropout<T>& all) {
  if (all.position == nullptr) device::require_not_capturing("dropout of a tape that is not a StepGraph's");
  device::check_cuda(cuda::dropout(all, device::native_stream()), "dropout");
}

TRIREME_INSTANTIATE(FLOATS, dropout, Cuda)

}  // namespace trireme::ops
