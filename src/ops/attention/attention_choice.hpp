#pragma once

#include <cstdint>
#include <string_view>

#include "ops/attention/attention_sizes.hpp"
#include "trireme/core/dtype.hpp"

namespace trireme::ops {

// How a GPU computes attention: by a graph that cuDNN plans, or by the kernels of attention_body.hpp, which support every case.
enum class AttentionKernel : std::uint8_t { cudnn, tiles };

struct AttentionChoice {
  AttentionKernel kernel;
  std::string_view reason;
};

struct AttentionCase {
  DType dtype;
  AttentionSizes sizes;
  bool causal;
  bool key_padding_mask;
  bool first_keys;  // or a window
  bool aligned;     // all tensors, to 16 bytes
};

// If cuDNN is chosen, it may still have no plan for the GPU.
AttentionChoice choose_attention_kernel(const AttentionCase& attention);

}  // namespace trireme::ops
