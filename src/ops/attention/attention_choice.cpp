#include "ops/attention/attention_choice.hpp"

namespace trireme::ops {

AttentionChoice choose_attention_kernel(const AttentionCase& attention) {
  const AttentionSizes& sizes = attention.sizes;
  const auto tiles = [](std::string_view reason) { return AttentionChoice{AttentionKernel::tiles, reason}; };
  if (attention.dtype != DType::bfloat16 && attention.dtype != DType::float16) {
    return tiles("cuDNN's attention takes bfloat16 and float16 only");
  }
  if (sizes.size % 8 != 0) return tiles("cuDNN's attention takes head sizes that are multiples of 8 only");
  if (sizes.size > 256) return tiles("cuDNN's attention takes head sizes up to 256 only");
  if (attention.key_padding_mask) return tiles("key_padding_mask hides single keys");
  if (attention.first_keys) return tiles("queries see keys from first_keys on, or in a window");
  if (attention.causal && sizes.queries != sizes.keys) return tiles("there are fewer causal queries than keys");
  if (sizes.keys != sizes.key_rows) return tiles("keys are part of a larger cache: each length would need its own plan");
  if (sizes.queries == 1 || sizes.keys == 1) return tiles("there is only one query or key");
  // cuDNN's backward pass for Hopper reads beyond the keys, which gives nan where log_sum_exp is below -88.
  if (!attention.causal && sizes.keys % 128 == 64) return tiles("keys end in the middle of cuDNN's blocks of 128");
  if (!attention.aligned) return tiles("a tensor is not aligned to 16 bytes");
  return {AttentionKernel::cudnn, "cuDNN plans it"};
}

}  // namespace trireme::ops
