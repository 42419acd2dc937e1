#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// lstm: Hochreiter, Schmidhuber 1997 with the forget gate of Gers, Schmidhuber, Cummins 2000; gates i, f, g, o.
// gru: Cho et al. 2014, arXiv 1406.1078, with the reset gate applied after the product, as in cuDNN; gates r, z, n.
enum class RecurrentCell : std::uint8_t { lstm, gru };

}  // namespace ops
}  // namespace trireme
