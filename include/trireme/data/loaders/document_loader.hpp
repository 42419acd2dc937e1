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
  // Above 0: a step's rows are as long as the longest of them on any rank, rounded up to a multiple of this, but no longer than
  // rows are. 0: each step's rows are as long as rows are. For rows without packing.
  std::int64_t pad_to_multiple_of = 0;
};

// Reads this rank's micro-batches of every step from rows of documents. It keeps no position: any step can be asked for, in any
// order, and the documents of a step depend neither on the number of ranks nor on micro-batches.
//
//   const data::DocumentLoader loader({documents, {.length = 1024, .packing = true}}, {.batch = run.batch()});
//   for (auto& step : run.steps(loader)) {
//     step.backward(model, step.batches());
//   }
class DocumentLoader {
 public:
  // Shares, micro-batches or a last batch that do not come out even throw Error.
  explicit DocumentLoader(DocumentRows rows, const DocumentLoaderOptions& options = {});

  std::int64_t num_micro_batches() const { return sampler_.num_micro_batches(); }  // of a step
  std::int64_t batch_size() const { return sampler_.batch_size(); }                // rows of a step, all ranks together
  std::int64_t tokens_per_sample() const { return rows_.length(); }                // with padding, the longest there are
  std::int64_t samples_per_epoch() const { return sampler_.samples_per_epoch(); }
  std::int64_t steps_per_epoch() const { return sampler_.steps_per_epoch(); }  // rounded up
  std::int64_t samples_of_steps(std::int64_t steps) const { return sampler_.samples_of_steps(steps); }
  const DocumentRows& rows() const { return rows_; }
  std::string content() const { return rows_.content(); }

  // A step or micro-batch that does not exist throws Error.
  TokenBatch load(std::int64_t step, std::int64_t micro_batch = 0) const;

 private:
  std::int64_t time_of(std::span<const std::int64_t> rows) const;  // of a step

  DocumentRows rows_;
  DatasetSampler sampler_;
  DatasetSampler of_all_ranks_;  // whose only micro-batch is a step
  std::int64_t pad_to_multiple_of_;
};

}  // namespace data
}  // namespace trireme
