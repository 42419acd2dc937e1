#include "trireme/ops/embedding/positions.hpp"

#include "trireme/core/error.hpp"

namespace trireme::ops {

template <>
void positions(std::int64_t first, std::int64_t time, Tensor<std::int32_t, Cpu>& y) {
  for (std::int64_t i = 0; i < y.numel(); ++i) y.data()[i] = static_cast<std::int32_t>((first + i) % time);
}

}  // namespace trireme::ops
