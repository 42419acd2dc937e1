#pragma once

#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// y[i] = (first + i) % time. This is the position of row first + i in its sequence, in a batch of [batch * time] rows.
template <typename D>
TRIREME_EXPORT void positions(std::int64_t first, std::int64_t time, Tensor<std::int32_t, D>& y);

}  // namespace ops
}  // namespace trireme
