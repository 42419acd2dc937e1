#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// How rotary angles are scaled for sequences longer than in training: the kinds of Hugging Face's `rope_type`.
enum class RotaryScalingKind : std::uint8_t { none, linear, llama3, yarn };

struct RotaryScaling {
  RotaryScalingKind kind = RotaryScalingKind::none;
  double factor = 1;             // longest sequence / longest sequence in training
  double trained_positions = 0;  // llama3 and yarn: the longest sequence in training
  // llama3: elements that make fewer than low_frequency full turns in trained_positions are slowed by `factor`; elements with
  // more than high_frequency turns are unchanged.
  double low_frequency = 1;
  double high_frequency = 4;
  // yarn (Peng et al. 2023, arXiv 2309.00071): as llama3, but with beta_slow and beta_fast as the limits. truncate rounds the
  // limits to whole elements. Cosines and sines are multiplied by attention_factor.
  double beta_fast = 32;
  double beta_slow = 1;
  bool truncate = true;
  double attention_factor = 1;
};

}  // namespace ops
}  // namespace trireme
