#pragma once

#include <dnnl.hpp>

#include "trireme/core/dtype.hpp"

namespace trireme::ops {

// Of the operands that oneDNN gets: bfloat16, or float32.
inline dnnl::memory::data_type onednn_type(DType dtype) {
  return dtype == DType::bfloat16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

}  // namespace trireme::ops
