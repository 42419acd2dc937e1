#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// How the samples of a step are divided between ranks and micro-batches. All loaders have these options:
//
//   const data::BatchOptions batch{.batch_size = 64, .index = world.rank(), .count = world.size()};
//   data::WindowLoader windows(tokens, {.batch = batch, .length = 128});
struct BatchOptions {
  std::int64_t batch_size = 32;       // samples of a step, over all ranks
  std::int64_t micro_batch_size = 0;  // samples of a micro-batch; 0: one micro-batch, the rank's whole share
  std::uint64_t seed = 1;
  int index = 0;  // of this rank among the `count` ranks that read
  int count = 1;
  // Allows a batch_size that is not a multiple of count: the first ranks get one sample more. For all samples to have the same
  // weight, pass the batch size to parallel::model_context(mesh, {.batch_size = ...}); trainer::Run does this.
  bool uneven = false;
};

}  // namespace data
}  // namespace trireme
