#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "trireme/amp/grad_scaler.hpp"
#include "trireme/core/export.hpp"
#include "trireme/parallel/hooks/compression.hpp"

namespace trireme TRIREME_EXPORT {
namespace parallel {

// The options of DataParallel: three independent choices (`sum`, `sharding` and `buckets`), and options that go with any
// choice.
//
//   DataParallel data_parallel(model, mesh, {.sum = FixedBits{.micro_batches = 8}, .sharding = Sharding::optimizer});

// Tries several bucket sizes in the first steps (at most 30 steps) and keeps the fastest size, which may be the size in
// BucketOptions. Results change only by rounding, and not at all under fixed bits. Not available on a GPU.
struct Tuning {
  bool on = false;

  // A file in which rank 0 saves the buckets that tuning found. A later run with the same gradients, ranks and nodes uses
  // these buckets and does not tune. A file that does not fit is replaced after tuning (BucketTuning::text says why). Empty:
  // no file.
  std::string profile = {};
};

// Gradients are added directly. The rounding of the sums depends on the number of ranks and on the buckets.
struct Plain {
  Tuning tuning = {};
};

// Bit-identical training. A step has `micro_batches` micro-batches over all ranks; every rank computes the same number, which
// is a power of two. Gradients and losses are added in a fixed tree. The weights then have the same bits for any bucket sizes,
// backend, nodes and number of ranks, on machines with the same instruction set and number of threads per rank. Batch norm and
// delayed 8-bit scaling are refused. If the step is sharded, optimizers that need the norms of parameters (LAMB, LARS) are
// refused too. On a pipeline axis a tied parameter is summed in another order than on one rank.
struct FixedBits {
  int micro_batches = 0;  // above 0
  Tuning tuning = {};
};

// A communication hook sums the gradients, so that fewer bytes cross the network. This needs a float32 store on the CPU and no
// tensor axis.
struct Hooked {
  CompressionOptions compression = {};
};

using GradientSum = std::variant<Plain, FixedBits, Hooked>;

// Which ranks update which parameters.
enum class Sharding : std::uint8_t {
  automatic,  // `optimizer` with Plain if all replicas share the memory of one node, otherwise `none`

  none,  // every rank updates all parameters

  // Every rank updates only its shard, keeps optimizer state only for this shard, and sends the new values to the other ranks
  // (ZeRO 1; Rajbhandari et al. 2020, arXiv 1910.02054). With Plain and FixedBits, slices of the gradients are
  // reduce-scattered, and a shard is a part of each slice (autograd/shard_map.hpp). With Hooked a shard is the parameters that
  // the rank compresses for its node; with CompressionBetween::ranks, or one rank per node, these are all parameters.
  optimizer,
};

struct BucketOptions {
  std::int64_t bytes = std::int64_t{25} << 20;       // a bucket ends with the parameter that reaches this size
  std::int64_t first_bytes = std::int64_t{1} << 20;  // of the first bucket: small, so that communication starts early

  // The largest size of a slice in a sharded step, in bytes; a bucket is one or more neighbouring slices. The shards depend on
  // the model, the ranks and this size, but not on the buckets.
  std::int64_t slice_bytes = std::int64_t{4} << 20;
};

struct ParallelOptions {
  GradientSum sum = {};                     // how gradients are summed
  Sharding sharding = Sharding::automatic;  // which ranks update which parameters
  BucketOptions buckets = {};               // which gradients are reduced together

  // The schedule of a pipeline, one of pipeline_schedule_names(). Empty: 1f1b, or interleaved if ranks have several stages.
  std::string schedule = {};

  // If true, batch norm uses the statistics of the rows of all ranks (PyTorch's SyncBatchNorm), and buffers of
  // BufferReduction::mean that a layer of your own changes are not averaged. A layer takes one all-reduce in the forward pass
  // and one in the backward pass, so all ranks must call the same layers in the same order. The number of rows may differ
  // between ranks, but Loss::nominal_targets must be equal, as in every step. If false, each rank normalises by its own rows,
  // and after each step the running statistics, like all buffers of BufferReduction::mean, are averaged over the ranks. In
  // both cases each micro-batch has statistics of its own.
  bool synchronize_batch_norm = true;

  // In each step the replicas compare a part of the parameters, so that all parameters are compared once in this number of
  // steps; 0: never. If batch norm is synchronised, running statistics are compared too. Tied parameters are compared between
  // stages, and parameters that do not belong to experts are compared between the ranks of an expert axis. On a difference all
  // ranks throw Error{diverged}, which names the difference and the ranks in the minority.
  int check_replicas = 100;

  amp::GradScalerOptions loss_scale = {};  // for models that compute in float16

  // A prefix for the names of metrics, if several models train: "generator.".
  std::string metrics_prefix = {};
};

}  // namespace parallel
}  // namespace trireme
