#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// How the samples of a step are divided. All loaders have these options:
//
//   data::WindowLoader windows(tokens, {.batch = {.batch_size = 64, .index = world.rank(), .count = world.size()}, .length =
//   128});
struct BatchOptions {
  std::int64_t batch_size = 32;       // samples of a step, all ranks together
  std::int64_t micro_batch_size = 0;  // samples of one rank that are computed at once; 0: all of its share
  std::uint64_t seed = 1;
  int index = 0;  // which of `count` shares of every batch this rank reads
  int count = 1;
  // Shares need not be equal: the first ranks have a sample more. Each sample counts alike where the model's context knows of
  // it, parallel::model_context(mesh, {.batch_size = ...}), as that of a trainer::Run does.
  bool uneven = false;
};

}  // namespace data
}  // namespace trireme
