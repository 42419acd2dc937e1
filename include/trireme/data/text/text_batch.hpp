#pragma once

#include <cstdint>
#include <span>

#include "trireme/core/export.hpp"
#include "trireme/data/sources/on_device.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// The target of a place that does not count; cross_entropy ignores it.
inline constexpr std::int32_t no_target = -100;

// Texts for bidirectional models such as BERT, padded to one length: on the host (TextBatch) or on a GPU.
template <typename D>
struct BasicTextBatch {
  Tensor<std::int32_t, D> tokens = {};            // [batch, time]
  Tensor<std::int32_t, D> targets = {};           // [batch, time]: the token at each place; for a classifier [batch]: the class
  Tensor<std::int32_t, D> key_padding_mask = {};  // [batch, time], not 0 at padding; undefined: no padding
  Tensor<std::int32_t, D> token_types = {};       // [batch, time]: 0 in the first sentence, 1 in the second; undefined: 0
  std::int64_t first_sample = 0;                  // the sample number of the first row

  std::int64_t rows() const { return tokens.dim(0); }
  std::int64_t time() const { return tokens.dim(1); }
};
using TextBatch = BasicTextBatch<Cpu>;

inline std::int64_t bytes_of(const TextBatch& batch) {
  return bytes_of(batch.tokens) + bytes_of(batch.targets) + bytes_of(batch.key_padding_mask) + bytes_of(batch.token_types);
}

template <typename D>
BasicTextBatch<D> on_device(const TextBatch& loaded) {
  return {.tokens = on_device<D>(loaded.tokens),
          .targets = on_device<D>(loaded.targets),
          .key_padding_mask = on_device<D>(loaded.key_padding_mask),
          .token_types = on_device<D>(loaded.token_types),
          .first_sample = loaded.first_sample};
}

// A mask [lengths.size(), time]: 1 from each row's length on, 0 before. Throws Error for a length outside of [0, time].
Tensor<std::int32_t> padding_mask(std::span<const std::int64_t> lengths, std::int64_t time);

}  // namespace data
}  // namespace trireme
