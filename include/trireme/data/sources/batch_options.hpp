#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// The samples of a step from step `from_step` on.
struct BatchSizeFrom {
  std::int64_t from_step = 0;
  std::int64_t batch_size = 0;

  bool operator==(const BatchSizeFrom&) const = default;
};

// How the samples of a step are divided between ranks and micro-batches. All loaders have these options:
//
//   const data::BatchOptions batch{.batch_size = 64, .index = world.rank(), .count = world.size()};
//   data::WindowLoader windows(tokens, {.batch = batch, .length = 128});
struct BatchOptions {
  std::int64_t batch_size = 32;  // samples of a step, over all ranks
  // Other sizes for later steps, for example a batch that grows: {{1000, 64}, {5000, 128}}. Steps ascend from 1 on. A step has
  // as many micro-batches as before, of another size.
  std::vector<BatchSizeFrom> batch_size_from_step = {};
  std::int64_t micro_batch_size = 0;  // samples of a micro-batch in step 0; 0: one micro-batch, the rank's whole share
  std::uint64_t seed = 1;
  int index = 0;  // of this rank among the `count` ranks that read
  int count = 1;
  // Allows a batch_size that is not a multiple of count: the first ranks get one sample more. For all samples to have the same
  // weight, pass the batch size to parallel::model_context(mesh, {.batch_size = ...}); trainer::Run does this.
  bool uneven = false;
};

// Batch sizes as text, 64@1000,128@5000: 64 samples from step 1000 on, 128 from step 5000 on. Parsing throws Error for other
// text.
std::vector<BatchSizeFrom> parse_batch_sizes(std::string_view text);
std::string to_text(std::span<const BatchSizeFrom> sizes);

// The samples of a step, over all ranks.
std::int64_t batch_size_of(const BatchOptions& options, std::int64_t step);

}  // namespace data
}  // namespace trireme
