#include "parallel/data_parallel_parts.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>
#include <variant>

#include "parallel/data_parallel_step.hpp"
#include "parallel/parallel_options.hpp"
#include "parallel/replicas/replica_check.hpp"
#include "trireme/comm/base/require_same.hpp"
#include "trireme/core/error.hpp"

namespace trireme::parallel {
namespace {

// Whether `here` is true on all ranks.
bool on_all(const Group& ranks, bool here, std::string_view name) {
  std::array<std::int32_t, 1> all{here ? 1 : 0};
  ranks.all_reduce(std::span(all), ReduceOp::min, name).wait_on_host();
  return all[0] != 0;
}

// Only float16 needs a loss scale.
amp::GradScalerOptions loss_scale_of(const FlatStore& store, const ParallelOptions& options) {
  amp::GradScalerOptions scale = options.loss_scale;
  scale.enabled = scale.enabled && store.compute_dtype() == DType::float16;
  return scale;
}

// Refuses features that need the same number of samples on all ranks, if the batch does not divide equally.
void require_even_shares(const BatchRows& rows, FlatStore& store, const ParallelOptions& options) {
  if (rows.even()) return;
  const auto refuse = [&rows](const std::string& what) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("a batch of {} samples cannot be shared equally by {} ranks, and {}", rows.batch_size,
                                        rows.ranks, what),
                 .hint = fmt::format("use a batch size that is a multiple of {}", rows.ranks)});
  };
  if (std::holds_alternative<FixedBits>(options.sum)) refuse("fixed bits need equal micro-batches");
  const BufferPlane& buffers = store.buffers();
  for (int index = 0; index < buffers.size(); ++index) {
    const BufferInfo& buffer = buffers.info(index);
    if (buffer.options.reduction == BufferReduction::max) continue;
    refuse(fmt::format("{} {}", buffer.name, buffer.options.rows ? "remembers rows of it" : "is a mean over equal shares"));
  }
}

bool is_sharded(const ParallelOptions& options, const ProcessMesh& mesh, const SummaryGroup& ranks) {
  const bool on_one_node = on_all(ranks.group(), mesh.data().on_one_node(), "nodes of replicas");
  const bool by_itself = on_one_node && std::holds_alternative<Plain>(options.sum);
  return mesh.data().size() > 1 &&
         (options.sharding == Sharding::optimizer || (options.sharding == Sharding::automatic && by_itself));
}

// Checks that all ranks have the same model and options, then moves the store into the group's memory.
Replicas replicas_of(Model& model, const ProcessMesh& mesh, const ParallelOptions& options) {
  FlatStore& store = model.store();
  const SummaryGroup ranks(model, mesh);
  const auto check_all = [&] {
    check(options, store, mesh);
    require_even_shares(model.context().rows, store, options);
  };
  ranks.group().agree(check_all, "options of DataParallel");
  const bool sharded = is_sharded(options, mesh, ranks);
  require_same_replicas(store, mesh.data());
  require_matching_parts(store, mesh.tensor());
  require_matching_parts(store, mesh.expert());
  require_same_ties(store, mesh.pipeline());
  require_same(ranks.group(), "setting", settings_of(options, sharded));
  if (mesh.data().size() > 1 && reaches(mesh.data(), store)) store.relocate(mesh.data().memory());
  store.refresh_compute_copy();
  const auto* fixed = std::get_if<FixedBits>(&options.sum);
  return {model,
          mesh,
          ranks,
          {.sharded = sharded,
           .fixed_micro_batches = fixed == nullptr ? 0 : fixed->micro_batches / mesh.data().size(),
           .synchronize_batch_norm = options.synchronize_batch_norm,
           .check_replicas = options.check_replicas}};
}

std::unique_ptr<Pipeline> pipeline_of(const Replicas& replicas, const ProcessMesh& mesh, const ParallelOptions& options) {
  const ModelContext& context = replicas.model.context();
  if (context.num_stages() > 1) {
    return std::make_unique<Pipeline>(mesh.pipeline(), options.schedule, context.chunks, replicas.store);
  }
  return nullptr;
}

BucketSettings settings_of_buckets(const ParallelOptions& options) {
  const auto* hooked = std::get_if<Hooked>(&options.sum);
  return {.bytes = options.buckets.bytes,
          .first_bytes = options.buckets.first_bytes,
          .slice_bytes = options.buckets.slice_bytes,
          .hooked = hooked == nullptr ? nullptr : &hooked->compression,
          .tune = tuning_of(options).on,
          .profile = tuning_of(options).profile};
}

}  // namespace

DataParallel::Parts::Parts(Model& model, const ProcessMesh& mesh, const ParallelOptions& options)
    : replicas(replicas_of(model, mesh, options)),
      metrics_prefix(options.metrics_prefix),
      pipeline(pipeline_of(replicas, mesh, options)),
      buckets(replicas, mesh, settings_of_buckets(options)),
      state{.scaler = amp::GradScaler(loss_scale_of(replicas.store, options))} {
  if (pipeline != nullptr && replicas.has_fixed_bits()) pipeline->require_one_after_the_other();
  replicas.store.set_shard(buckets.reduction().shard());
}

Step DataParallel::Parts::begin(std::int64_t number, int micro_batches, StepRecording* recording) {
  require(number >= 0, "steps are numbered from 0 on, got {}", number);
  require(micro_batches > 0, "a step has at least one micro-batch, got {}", micro_batches);
  require(!state.is_open, "step {} was begun while step {} is open: call its update(), or let it go out of scope", number,
          state.number);
  if (state.number < 0) {
    replicas.summary.group().agree([this] { replicas.store.require_values(); }, "begin the first step");
  }
  return {number, std::make_shared<DataParallelStep>(*this, number, micro_batches, recording)};
}

std::uint64_t DataParallel::Parts::bytes_sent() const {
  const std::uint64_t of_summaries = replicas.summary.whole_model() ? 0 : replicas.summary.group().bytes_sent();
  return replicas.group.bytes_sent() + of_summaries + buckets.reduction().hook_bytes_sent();
}

}  // namespace trireme::parallel
