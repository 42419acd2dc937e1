#pragma once

#include <cstdint>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/sources/on_device.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Sequences of tokens: on the host, as loaders return them (TokenBatch), or on a GPU.
template <typename D>
struct BasicTokenBatch {
  Tensor<std::int32_t, D> tokens = {};   // [batch, length]
  Tensor<std::int32_t, D> targets = {};  // [batch, length]: the next token of each token
  // [batch, length]: for each token, the place in the row where its document starts, for example {0, 0, 0, 3, 3, 5} for three
  // documents. Tokens attend only within their document. Undefined: each row is one document.
  Tensor<std::int32_t, D> document_starts = {};
  std::int64_t first_sample = 0;  // the sample number of the first row
  std::int64_t first_row = 0;     // the place of the first row in the step's batch of all ranks
  // Where micro-batches have different numbers of tokens: about how many one has, the same number in all of a step, see
  // Loss::nominal_targets. 0: all have the same.
  std::int64_t nominal_targets = 0;
  bool continues = false;  // each row continues the same row of the previous step (WindowOrder::continued)

  std::int64_t rows() const { return tokens.dim(0); }
  std::int64_t time() const { return tokens.dim(1); }  // the length of a sequence
};
using TokenBatch = BasicTokenBatch<Cpu>;

// Joins the rows of several batches of one length into one batch with the first_sample of the first batch. If only some batches
// have document_starts, each row of the other batches is one document.
TokenBatch joined_rows(std::vector<TokenBatch> batches);

inline std::int64_t bytes_of(const TokenBatch& batch) {
  return bytes_of(batch.tokens) + bytes_of(batch.targets) + bytes_of(batch.document_starts);
}

template <typename D>
BasicTokenBatch<D> on_device(const TokenBatch& loaded) {
  return {.tokens = on_device<D>(loaded.tokens),
          .targets = on_device<D>(loaded.targets),
          .document_starts = on_device<D>(loaded.document_starts),
          .first_sample = loaded.first_sample,
          .first_row = loaded.first_row,
          .nominal_targets = loaded.nominal_targets,
          .continues = loaded.continues};
}

}  // namespace data
}  // namespace trireme
