#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// How a model that was trained on short sequences turns at positions beyond them: the kinds of Hugging Face's `rope_type`.
enum class RotaryScalingKind : std::uint8_t { none, linear, llama3, yarn };

struct RotaryScaling {
  RotaryScalingKind kind = RotaryScalingKind::none;
  double factor = 1;             // by which sequences are longer than in training
  double trained_positions = 0;  // llama3 and yarn: the longest sequence in training
  // llama3: turns of fewer than low_frequency full circles in training are slowed by the factor, of more than high_frequency
  // not at all.
  double low_frequency = 1;
  double high_frequency = 4;
  // yarn (Peng et al. 2023, arXiv 2309.00071): the same for beta_slow and beta_fast, at elements rounded to whole ones where
  // truncate is set; cosines and sines are multiplied by attention_factor.
  double beta_fast = 32;
  double beta_slow = 1;
  bool truncate = true;
  double attention_factor = 1;
};

}  // namespace ops
}  // namespace trireme
