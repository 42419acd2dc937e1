#pragma once

#include <cstdint>
#include <span>

#include "trireme/core/export.hpp"
#include "trireme/data/sources/on_device.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// The target of a place where nothing is to be said: what cross_entropy ignores.
inline constexpr std::int32_t no_target = -100;

// Texts for models that read them to both sides, as BERT: padded to one length, on the host (TextBatch) or on a GPU.
template <typename D>
struct BasicTextBatch {
  Tensor<std::int32_t, D> tokens = {};            // [batch, time]
  Tensor<std::int32_t, D> targets = {};           // [batch, time]: the token at each place; of a classifier [batch]: the class
  Tensor<std::int32_t, D> key_padding_mask = {};  // [batch, time], not 0 where a token is padding; undefined: nowhere
  Tensor<std::int32_t, D> token_types = {};       // [batch, time]: which of two sentences; undefined: all the first, 0
  std::int64_t first_sample = 0;                  // the number of the first row's sample

  std::int64_t rows() const { return tokens.dim(0); }
  std::int64_t time() const { return tokens.dim(1); }
};
using TextBatch = BasicTextBatch<Cpu>;

template <typename D>
BasicTextBatch<D> on_device(const TextBatch& loaded) {
  return {.tokens = on_device<D>(loaded.tokens),
          .targets = on_device<D>(loaded.targets),
          .key_padding_mask = on_device<D>(loaded.key_padding_mask),
          .token_types = on_device<D>(loaded.token_types),
          .first_sample = loaded.first_sample};
}

// [lengths.size(), time], 1 from each row's length on. A length that is not in [0, time] throws Error.
Tensor<std::int32_t> padding_mask(std::span<const std::int64_t> lengths, std::int64_t time);

}  // namespace data
}  // namespace trireme
