#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "trireme/amp/grad_scaler.hpp"
#include "trireme/core/export.hpp"
#include "trireme/parallel/hooks/compression.hpp"

namespace trireme TRIREME_EXPORT {
namespace parallel {

// How DataParallel works: three choices that do not depend on each other, `sum`, `sharding` and `buckets`, and what goes with
// any of them.
//
//   DataParallel data_parallel(model, mesh, {.sum = FixedBits{.micro_batches = 8}, .sharding = Sharding::optimizer});

// Lets the first steps, at most 30 of them, find the buckets with the shortest step, starting from those of BucketOptions.
// Numerics do not change beyond rounding, under fixed bits not at all. Not on a GPU.
struct Tuning {
  bool on = false;

  // A file in which rank 0 leaves what tuning has found; a later run with the same gradients, ranks and nodes starts with it
  // and does not tune. One that does not fit is replaced after tuning (BucketTuning::text says why). Empty: none.
  std::string profile = {};
};

// Gradients are added up as they come.
struct Plain {
  Tuning tuning = {};
};

// Bit-identical training. Over all ranks together a step has so many micro-batches; every rank computes equally many, a power
// of two, and their gradients and losses are added in a fixed tree. The weights are then the same bits for any bucket sizes,
// backend, division into nodes and number of ranks, on machines with the same instruction set and as many threads a rank. Not
// with batch norm or delayed 8-bit scaling. Optimizers that need the norms of parameters (LAMB, LARS) are refused where the
// step is sharded. On a pipeline axis a parameter that several stages hold is summed in another order than on one rank.
struct FixedBits {
  int micro_batches = 0;  // above 0
  Tuning tuning = {};
};

// A communication hook sums them, so that they cross a network in fewer bytes. Needs a float32 store; not on a GPU, and not on
// a tensor axis.
struct Hooked {
  CompressionOptions compression = {};
};

using GradientSum = std::variant<Plain, FixedBits, Hooked>;

// Who updates the parameters.
enum class Sharding : std::uint8_t {
  automatic,  // optimizer with Plain where the ranks share the memory of one node, otherwise none

  none,  // every rank updates all

  // Every rank updates what it owns, keeps optimizer state for that alone, and gives the new values to the others (ZeRO 1;
  // Rajbhandari et al. 2020, arXiv 1910.02054). Plain and FixedBits: a part of each slice of the gradients, which are
  // reduce-scattered (autograd/shard_map.hpp). Hooked: on each node the parameters that it compresses are the rank's own, so
  // that with CompressionBetween::ranks, or one rank a node, it owns all.
  optimizer,
};

struct BucketOptions {
  std::int64_t bytes = std::int64_t{25} << 20;       // a bucket ends with the parameter that reaches this size
  std::int64_t first_bytes = std::int64_t{1} << 20;  // small, so that communication starts early

  // Where the step is sharded gradients travel in slices of at most so many bytes; a bucket is some neighbouring slices. Who
  // updates what follows from the model, the ranks and this size, never from the buckets.
  std::int64_t slice_bytes = std::int64_t{4} << 20;
};

struct ParallelOptions {
  GradientSum sum = {};                     // how gradients are summed
  Sharding sharding = Sharding::automatic;  // where optimizer state lies
  BucketOptions buckets = {};               // which gradients are reduced together

  // In a pipeline: who computes what when, one of pipeline_schedule_names(). Empty: 1f1b, or interleaved where ranks have
  // several stages.
  std::string schedule = {};

  // Batch norm by the statistics of all ranks' rows (PyTorch's SyncBatchNorm): a layer takes one all-reduce forward and one
  // backward, so every rank calls the same layers in the same order, with any number of rows (but the same
  // Loss::nominal_targets, as in every step). Otherwise each rank normalises by its own rows, and after each step the running
  // statistics, and all other buffers of BufferReduction::mean, become their average over the ranks. Each micro-batch has
  // statistics of its own. Buffers of that kind that a layer of your own changes are left alone where batch norm is
  // synchronised.
  bool synchronize_batch_norm = true;

  // Every rank compares its parameters, and running statistics where batch norm is synchronised, with those of its replicas,
  // a tied parameter with those of the other stages, and what is no expert's with the other ranks of an expert axis: in each
  // step a part of them, in so many steps all. Error{diverged} on all ranks names what differs and the ranks that hold
  // something else than most. 0: off.
  int check_replicas = 100;

  amp::GradScalerOptions loss_scale = {};  // of models that compute in float16

  // Before the names of what its steps tell monitor::Registry, where several models train: "generator.".
  std::string metrics_prefix = {};
};

}  // namespace parallel
}  // namespace trireme
