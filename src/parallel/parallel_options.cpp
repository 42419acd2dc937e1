#include "parallel/parallel_options.hpp"

#include <fmt/format.h>

#include <bit>
#include <variant>

#include "trireme/core/error.hpp"
#include "trireme/monitor/registry.hpp"

namespace trireme::parallel {
namespace {

void check(const FixedBits& fixed, int ranks, const BufferPlane& buffers) {
  const int all = fixed.micro_batches;
  require(all > 0, "FixedBits::micro_batches is the number of a step's micro-batches on all ranks, above 0, and not {}", all);
  require(all % ranks == 0 && std::has_single_bit(static_cast<unsigned>(all / ranks)),
          "the {} micro-batches of FixedBits can't be divided into equal powers of two over {} ranks; {}, {} or {} can", all,
          ranks, ranks, 2 * ranks, 4 * ranks);
  for (int index = 0; index < buffers.size(); ++index) {
    require(buffers.info(index).options.rows.has_value(),
            "with FixedBits a step's result does not depend on how the batch is divided, but that of batch norm and of delayed "
            "8-bit scaling does, and the model has {}: use group norm and current scaling, or Plain",
            buffers.info(index).name);
  }
}

// Hooks are refused on a tensor axis: its ranks hold copies of some parameters, which a hook would round differently on each.
void check(const Hooked& hooked, const FlatStore& store, const ProcessMesh& mesh) {
  require(hooked.compression.hook != nullptr, "Hooked lacks its hook: set CompressionOptions::hook, or use Plain");
  const auto hook = hooked.compression.hook();
  require(hook != nullptr, "the factory of CompressionOptions::hook has made no hook");
  const std::string name = hook->str();
  require(mesh.tensor().size() == 1,
          "compression {} would round parameters that all ranks of a tensor axis hold differently on each: leave it out", name);
  require(store.on_host(), "compression {} works on the host's memory, but the model lies on a GPU", name);
}

void check(const Tuning& tuning, const FlatStore& store, const ProcessMesh& mesh) {
  const bool whole = mesh.tensor().size() == 1 && mesh.pipeline().size() == 1;
  require(whole || tuning.profile.empty(),
          "a bucket profile is one file, for ranks that hold the whole model: leave {} out of a mesh with a pipeline or tensor "
          "axis",
          tuning.profile);
  require(store.on_host() || !tuning.on,
          "tuning times the backward pass on the host, but the model lies on a GPU: choose BucketOptions::bytes");
}

std::string describe(const Plain& /*sum*/) { return "Plain"; }

std::string describe(const FixedBits& sum) { return fmt::format("FixedBits of {} micro-batches", sum.micro_batches); }

std::string describe(const Hooked& sum) {
  const CompressionOptions& options = sum.compression;
  return fmt::format("Hooked by {} from step {}, {} between {}", options.hook()->str(), options.start,
                     options.only_if_faster ? "where faster" : "always",
                     options.between == CompressionBetween::nodes ? "nodes" : "ranks");
}

}  // namespace

bool reaches(const Group& group, const FlatStore& store) { return group.memory()->on_host() == store.on_host(); }

const Tuning& tuning_of(const ParallelOptions& options) {
  static const Tuning off;
  if (const auto* plain = std::get_if<Plain>(&options.sum)) return plain->tuning;
  if (const auto* fixed = std::get_if<FixedBits>(&options.sum)) return fixed->tuning;
  return off;
}

namespace {

// With an expert axis, sums over the data axis lack the samples of the axis' other ranks, except for experts.
void check_expert_axis(const ParallelOptions& options, FlatStore& store, const ProcessMesh& mesh) {
  if (mesh.expert().size() == 1) return;
  const BufferPlane& buffers = store.buffers();
  bool has_statistics = false;
  for (int index = 0; index < buffers.size(); ++index) {
    const BufferOptions& buffer = buffers.info(index).options;
    has_statistics = has_statistics || buffer.reduction != BufferReduction::none || buffer.rows;
  }
  require(std::holds_alternative<Plain>(options.sum) && !tuning_of(options).on && store.on_host() && !has_statistics,
          "with an expert axis gradients are summed by Plain without tuning, on the CPU, and no layer has statistics of the "
          "batch or carries states of its rows: leave out fixed bits, hooks, tuning, batch norm, carried states, or "
          "--expert-parallel");
}

}  // namespace

void check(const ParallelOptions& options, FlatStore& store, const ProcessMesh& mesh) {
  const BucketOptions& buckets = options.buckets;
  require(buckets.bytes > 0 && buckets.first_bytes > 0 && buckets.slice_bytes > 0,
          "BucketOptions are above 0, got {}, {} and {} bytes", buckets.bytes, buckets.first_bytes, buckets.slice_bytes);
  monitor::Registry().gauge(options.metrics_prefix + "loss");  // throws if this is not a valid name
  require(options.check_replicas >= 0, "check_replicas is a number of steps, or 0 for none, got {}", options.check_replicas);
  require(store.on_host() || mesh.data().size() == 1 || reaches(mesh.data(), store),
          "the model lies on a GPU, but the ranks' group reaches only the host's memory: make the mesh of gpu_group(group), or "
          "launch with BackendKind::nccl");
  if (const auto* fixed = std::get_if<FixedBits>(&options.sum)) check(*fixed, mesh.data().size(), store.buffers());
  if (const auto* hooked = std::get_if<Hooked>(&options.sum)) check(*hooked, store, mesh);
  check(tuning_of(options), store, mesh);
  check_expert_axis(options, store, mesh);
}

std::vector<Setting> settings_of(const ParallelOptions& options, bool sharded) {
  const Tuning& tuning = tuning_of(options);
  return {{"sum", std::visit([](const auto& sum) { return describe(sum); }, options.sum)},
          {"sharding", sharded ? "optimizer" : "none"},
          {"buckets.bytes", options.buckets.bytes},
          {"buckets.first_bytes", options.buckets.first_bytes},
          {"buckets.slice_bytes", options.buckets.slice_bytes},
          {"schedule", options.schedule},
          {"tuning", tuning.on},
          {"tuning.profile", tuning.profile},
          {"synchronize_batch_norm", options.synchronize_batch_norm},
          {"check_replicas", options.check_replicas},
          {"loss_scale", fmt::format("from {} on, times {} after {} steps, times {} after an overflow, {} at least{}",
                                     options.loss_scale.init_scale, options.loss_scale.growth_factor,
                                     options.loss_scale.growth_interval, options.loss_scale.backoff_factor,
                                     options.loss_scale.min_scale, options.loss_scale.enabled ? "" : ", off")}};
}

}  // namespace trireme::parallel
