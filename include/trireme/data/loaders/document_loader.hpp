#pragma once

#include <cstdint>
#include <span>

#include "trireme/core/export.hpp"
#include "trireme/data/documents/document_rows.hpp"
#include "trireme/data/sources/dataset_sampler.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

struct DocumentLoaderOptions {
  BatchOptions batch = {};
  Order order = Order::shuffled;
  LastBatch last = LastBatch::filled;
  // Above 0: pads the rows of a step only to the longest row of the step on any rank. This length is rounded up to a multiple
  // of this number, but is at most length(). 0: pads all rows to length(). For rows without packing.
  std::int64_t pad_to_multiple_of = 0;
};

// Reads this rank's micro-batches of every step from rows of documents. The loader has no state: steps can be loaded in any
// order. The documents of a step do not depend on the number of ranks and micro-batches.
//
//   const data::DocumentLoader loader({documents, {.length = 1024, .packing = true}}, {.batch = run.batch()});
//   for (auto& step : run.steps(loader)) {
//     step.backward(model, step.batches());
//   }
class DocumentLoader {
 public:
  // Throws Error if ranks or micro-batches can't share the batch or the last batch equally.
  explicit DocumentLoader(DocumentRows rows, const DocumentLoaderOptions& options = {});

  std::int64_t num_micro_batches() const { return sampler_.num_micro_batches(); }  // of a step
  std::int64_t batch_size() const { return sampler_.batch_size(); }                // rows of step 0, over all ranks
  std::int64_t tokens_per_sample() const { return rows_.length(); }                // with padding: the largest length of a row
  std::int64_t samples_per_epoch() const { return sampler_.samples_per_epoch(); }
  std::int64_t steps_per_epoch() const { return sampler_.steps_per_epoch(); }  // of the first epoch, rounded up
  std::int64_t samples_of_steps(std::int64_t steps) const { return sampler_.samples_of_steps(steps); }
  const DocumentRows& rows() const { return rows_; }
  std::string content() const { return rows_.content(); }

  // Throws Error for a step or micro-batch that does not exist.
  TokenBatch load(std::int64_t step, std::int64_t micro_batch = 0) const;

 private:
  std::int64_t time_of(std::span<const std::int64_t> rows) const;  // the length of a step's rows

  DocumentRows rows_;
  DatasetSampler sampler_;
  DatasetSampler of_all_ranks_;  // its only micro-batch is the whole step
  std::int64_t pad_to_multiple_of_;
};

}  // namespace data
}  // namespace trireme
