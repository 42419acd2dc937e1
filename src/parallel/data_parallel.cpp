#include "trireme/parallel/data_parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <iterator>
#include <numeric>

#include "parallel/bucket_tuner.hpp"
#include "parallel/compression.hpp"
#include "parallel/gradient_tree.hpp"
#include "parallel/hooked_buckets.hpp"
#include "parallel/planes.hpp"
#include "parallel/replica_check.hpp"
#include "parallel/replica_comparison.hpp"
#include "parallel/sharding.hpp"
#include "parallel/summary_group.hpp"
#include "trireme/core/error.hpp"
#include "trireme/device/stream.hpp"
#include "trireme/parallel/bucket_cuts.hpp"
#include "trireme/parallel/settings.hpp"

namespace trireme::parallel {
namespace {

void check_virtual_shards(const DataParallelOptions& options, int ranks, const BufferPlane& buffers) {
  const int shards = options.virtual_shards;
  require(shards >= 0, "virtual_shards is 0 or more, got {}", shards);
  if (shards == 0) return;
  require(shards % ranks == 0 && std::has_single_bit(static_cast<unsigned>(shards / ranks)),
          "{} virtual shards can't be divided into equal powers of two over {} ranks; {}, {} or {} can", shards, ranks, ranks,
          2 * ranks, 4 * ranks);
  require(
      buffers.size() == 0,
      "with virtual shards a step's result does not depend on how the batch is divided, but that of batch norm and of delayed "
      "8-bit scaling does, and the model has {}: use group norm and current scaling, or no virtual shards",
      buffers.size() == 0 ? "none" : buffers.info(0).name);
}

void check_compression(const DataParallelOptions& options) {
  if (options.compression.hook == nullptr) return;
  const std::string name = options.compression.hook->str();
  require(options.virtual_shards == 0, "compression {} and virtual shards exclude each other: it does not keep the same bits",
          name);
  require(options.sharding != Sharding::on, "a step with compression {} can't be sharded: leave sharding automatic or off",
          name);
}

// Ranks of a tensor axis must treat what all of them hold alike; a profile is one file.
void check_mesh(const DataParallelOptions& options, const ProcessMesh& mesh) {
  const bool whole = mesh.tensor().size() == 1 && mesh.pipeline().size() == 1;
  require(options.compression.hook == nullptr || mesh.tensor().size() == 1,
          "compression {} rounds what the ranks of a tensor axis have in common differently on each: leave it out",
          options.compression.hook == nullptr ? "" : options.compression.hook->str());
  require(whole || options.bucket_profile.empty(),
          "a bucket profile is for ranks that hold the whole model: leave {} out of a mesh with a pipeline or tensor axis",
          options.bucket_profile);
}

// Of a store on the host a group of GPUs reduces the gradients on the host.
bool on_device(const FlatStore& store, const Group& group) { return group.memory()->on_host() == store.on_host(); }

// What a step on a GPU lacks.
void check_device(const DataParallelOptions& options, const FlatStore& store, const Group& group) {
  if (store.on_host()) return;
  require(
      group.size() == 1 || on_device(store, group),
      "the model lies on a GPU, but the ranks' group reaches the host's memory alone: make the mesh of gpu_group(group), or "
      "launch with BackendKind::nccl");
  require(options.compression.hook == nullptr, "compression {} works on the host's memory, but the model lies on a GPU",
          options.compression.hook == nullptr ? "" : options.compression.hook->str());
  require(!options.tune_buckets,
          "tune_buckets times the backward pass on the host, but the model lies on a GPU: choose bucket_bytes");
}

// Whether it is so on all ranks: what those with copies of a parameter decide alike.
bool on_all(const Group& ranks, bool here, std::string_view name) {
  std::array<std::int32_t, 1> all{here ? 1 : 0};
  ranks.all_reduce(std::span(all), ReduceOp::min, name).wait_on_host();
  return all[0] != 0;
}

int tied_parameter(FlatStore& store) {
  for (int index = 0; index < store.num_parameters(); ++index) {
    if (store.parameter(index).tied != nullptr && store.parameter(index).trainable) return index;
  }
  return -1;
}

std::string describe(const CompressionOptions& options) {
  if (options.hook == nullptr) return "none";
  return fmt::format("{} from step {}, {} between {}", options.hook->str(), options.start,
                     options.only_if_faster ? "where faster" : "always",
                     options.between == CompressionBetween::nodes ? "nodes" : "ranks");
}

}  // namespace

DataParallel::DataParallel(FlatStore& store, const ProcessMesh& mesh, const DataParallelOptions& options)
    : store_(store),
      group_(mesh.data()),
      summary_(std::make_shared<const SummaryGroup>(store, mesh)),
      bucket_of_(static_cast<std::size_t>(store.num_parameters()), -1),
      tied_(tied_parameter(store)),
      on_one_node_(on_all(summary_->group(), group_.on_one_node(), "nodes of replicas")),
      first_step_(options.first_step),
      ready_position_(static_cast<std::size_t>(store.num_parameters()), 0),
      virtual_shards_(options.virtual_shards) {
  const Group& group = group_;
  require(options.first_step >= 0, "the first step of a run is 0 or later, got {}", options.first_step);
  require(options.bucket_bytes > 0 && options.first_bucket_bytes > 0, "bucket sizes are above 0, got {} and {} bytes",
          options.bucket_bytes, options.first_bucket_bytes);
  require(options.slice_bytes > 0, "slice_bytes is above 0, got {}", options.slice_bytes);
  require(options.check_replicas >= 0, "check_replicas is a number of steps, or 0 for none, got {}", options.check_replicas);
  check_virtual_shards(options, group.size(), store.buffers());
  check_compression(options);
  check_device(options, store, group);
  const bool by_itself = on_one_node_ && options.virtual_shards == 0 && options.compression.hook == nullptr;
  const bool sharded =
      group.size() > 1 && (options.sharding == Sharding::on || (options.sharding == Sharding::automatic && by_itself));
  check_mesh(options, mesh);
  require_same_replicas(store, group);
  require_matching_parts(store, mesh.tensor());
  require_same_ties(store, mesh.pipeline());
  require_same(summary_->group(), "setting",
               {{"bucket_bytes", std::to_string(options.bucket_bytes)},
                {"first_bucket_bytes", std::to_string(options.first_bucket_bytes)},
                {"first_step", std::to_string(options.first_step)},
                {"compression", describe(options.compression)},
                {"sharding", sharded ? "on" : "off"},
                {"slice_bytes", std::to_string(options.slice_bytes)},
                {"synchronize_batch_norm", options.synchronize_batch_norm ? "on" : "off"},
                {"check_replicas", std::to_string(options.check_replicas)},
                {"tune_buckets", options.tune_buckets ? "on" : "off"},
                {"bucket_profile", options.bucket_profile},
                {"virtual_shards", std::to_string(options.virtual_shards)}});
  if (group.size() > 1 && on_device(store, group)) store.relocate(group.memory());
  store.refresh_compute_copy();
  make_blocks(mesh, options.slice_bytes, sharded);
  const BucketCuts cuts = cut_by_cap(block_bytes_, options.bucket_bytes, options.first_bucket_bytes);
  make_buckets(cuts);
  if (options.tune_buckets && group.size() > 1) start_tuning(cuts, options.bucket_profile, mesh);
  if (options.compression.hook != nullptr) {
    compression_ =
        std::make_shared<Compression>(store, group, summary_->group(), trainable(), options.compression, options.first_step);
  }
  synchronize_buffers(options.synchronize_batch_norm);
  if (virtual_shards_ > 0) tree_ = std::make_shared<GradientTree>(store);
  store.set_shard(shard_);
  if (options.check_replicas > 0 && (group.size() > 1 || mesh.pipeline().size() > 1)) {
    comparison_ =
        std::make_shared<const ReplicaComparison>(store, mesh, options.check_replicas, options.synchronize_batch_norm);
  }
}

// Finds what the ranks reduce after each step, and makes the group in which batch norm adds up where it is synchronised.
void DataParallel::synchronize_buffers(bool synchronize_batch_norm) {
  const BufferPlane& buffers = store_.buffers();
  bool statistics = false;
  for (int index = 0; index < buffers.size() && group_.size() > 1; ++index) {
    const BufferInfo& buffer = buffers.info(index);
    const bool mean = buffer.options.reduction == BufferReduction::mean;
    if (mean && synchronize_batch_norm) {
      statistics = true;
      continue;
    }
    const ReduceOp op = mean ? ReduceOp::mean : ReduceOp::max;
    if (buffer_runs_.empty() || buffer_runs_.back().op != op || buffer_runs_.back().elements.end != buffer.offset) {
      buffer_runs_.push_back({.elements = {buffer.offset, buffer.offset}, .op = op});
    }
    buffer_runs_.back().elements.end += buffer.shape.numel();
  }
  if (statistics) batch_norm_ = std::make_shared<const Group>(group_.split(0, group_.rank(), "batch norm"));
  store_.set_batch_axis(batch_norm_);
}

std::vector<int> DataParallel::trainable() const {
  std::vector<int> parameters;
  std::ranges::copy_if(store_.layout(), std::back_inserter(parameters),
                       [this](int index) { return store_.parameter(index).trainable; });
  return parameters;
}

// Of ranks on a tensor axis the largest part: what all of them hold goes into the same buckets.
std::vector<std::int64_t> DataParallel::parameter_bytes(const ProcessMesh& mesh) const {
  std::vector<std::int64_t> bytes;
  for (const int index : trainable()) {
    bytes.push_back(store_.parameter(index).numel * static_cast<std::int64_t>(size_of(store_.dtype())));
  }
  if (!bytes.empty()) mesh.tensor().all_reduce(std::span(bytes), ReduceOp::max, "sizes of gradients").wait_on_host();
  return bytes;
}

// Where the step is sharded a slice never lies in two buckets.
void DataParallel::make_blocks(const ProcessMesh& mesh, std::int64_t slice_bytes, bool sharded) {
  const std::vector<std::int64_t> bytes = parameter_bytes(mesh);
  if (sharded) {
    ShardMap map(store_, slice_bytes, bytes);
    for (const ShardMap::Block& block : map.blocks()) blocks_.push_back(block.parameters);
    shard_ = std::make_shared<SlicedShard>(store_, group_, std::move(map), virtual_shards_ > 0);
  } else {
    for (const int index : trainable()) blocks_.push_back({index});
  }
  auto next = bytes.begin();
  for (const std::vector<int>& block : blocks_) {
    block_bytes_.push_back(std::accumulate(next, next + std::ssize(block), std::int64_t{0}));
    next += std::ssize(block);
  }
}

void DataParallel::make_buckets(const BucketCuts& cuts) {
  buckets_.clear();
  auto next = blocks_.begin();
  const auto add = [&](int count) {
    if (count == 0) return;
    std::vector<int> parameters;
    for (const auto end = next + count; next != end; ++next) parameters.insert(parameters.end(), next->begin(), next->end());
    const ParameterInfo& first = store_.parameter(parameters.front());
    const ParameterInfo& last = store_.parameter(parameters.back());
    buckets_.push_back(
        {.range = {first.offset, last.offset + last.numel},
         .parameters = std::move(parameters),
         .name = fmt::format("gradient bucket {} ({} to {})", buckets_.size(), first.name, last.name),
         .slices_end =
             shard_ == nullptr ? 0 : shard_->map().blocks()[static_cast<std::size_t>(next - blocks_.begin()) - 1].slices_end});
  };
  for (const int count : cuts) {
    const auto end = next + count;
    const auto tied = std::ranges::find(next, end, std::vector{tied_});
    add(static_cast<int>(tied - next));
    if (tied != end) {
      add(1);
      add(static_cast<int>(end - next));
    }
  }
  order_buckets();
}

// Reductions start in the order of the buckets. Until the first step is done that is the store's order, and where the step is
// sharded it stays so.
void DataParallel::order_buckets() {
  const auto complete = [this](const Bucket& bucket) {
    std::int32_t last = 0;
    for (const int index : bucket.parameters) last = std::max(last, ready_position_[static_cast<std::size_t>(index)]);
    return last;
  };
  if (shard_ == nullptr) std::ranges::stable_sort(buckets_, {}, complete);
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    for (const int index : buckets_[bucket].parameters) bucket_of_[static_cast<std::size_t>(index)] = static_cast<int>(bucket);
  }
}

void DataParallel::agree_on_ready_order() {
  group_.broadcast(std::span(ready_position_), 0, "ready order").wait_on_host();
  order_buckets();
}

void DataParallel::start_tuning(const BucketCuts& initial, const std::string& profile, const ProcessMesh& mesh) {
  block_of_.assign(bucket_of_.size(), -1);
  for (std::size_t block = 0; block < blocks_.size(); ++block) {
    for (const int index : blocks_[block]) block_of_[static_cast<std::size_t>(index)] = static_cast<int>(block);
  }
  // The ranks of a tensor axis hold copies of some parameters, whose gradients are to be reduced alike.
  const Group copies =
      mesh.tensor().size() == 1 ? group_ : mesh.world().split(mesh.pipeline().rank(), mesh.world().rank(), "bucket tuning");
  if (initial.empty()) return;
  tuner_ = std::make_shared<BucketTuner>(group_, copies, block_bytes_, initial, profile);
}

// Between steps nobody needs the gradients. There are some.
double DataParallel::time_reduction(std::int64_t bytes) const {
  const std::int64_t count =
      std::clamp<std::int64_t>(bytes / static_cast<std::int64_t>(size_of(store_.dtype())), 1, store_.trainable_numel());
  group_.barrier("time of a reduction");
  const auto start = std::chrono::steady_clock::now();
  with_gradients(store_, {0, count}, [&](auto gradients) {
    store_.device().zero(gradients.data(), gradients.size_bytes());
    (shard_ == nullptr ? group_.all_reduce(gradients, sum(), "time of a reduction")
                       : group_.reduce_scatter(gradients, sum(), "time of a reduction"))
        .wait_on_host();
  });
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::optional<BucketTuning> DataParallel::tuning() const { return tuner_ == nullptr ? std::nullopt : tuner_->result(); }

std::optional<CompressionDecision> DataParallel::compression_decision() const {
  return compression_ == nullptr ? std::nullopt : compression_->decision();
}

std::vector<NamedTensor> DataParallel::compression_state() const {
  return compression_ == nullptr ? std::vector<NamedTensor>() : compression_->hook().state();
}

void DataParallel::add_to(State& state, const std::string& prefix) const {
  const Group& all = summary_->group();
  for (const auto& [name, values] : compression_state()) {
    state.add({.name = fmt::format("{}{} of {}.{}", prefix, all.rank(), all.size(), name),
               .dtype = DType::float32,
               .shape = values.shape(),
               .pieces = {{.data = values.data(), .elements = {0, values.numel()}}},
               .optional = true});
  }
}

std::uint64_t DataParallel::bytes_sent() const {
  return group_.bytes_sent() + (summary_->whole_model() ? 0 : summary_->group().bytes_sent()) +
         (compression_ == nullptr ? 0 : compression_->bytes_sent());
}

Reduction DataParallel::begin_step(int micro_batches) {
  require(micro_batches > 0, "a step has at least one micro-batch, got {}", micro_batches);
  require(virtual_shards_ == 0 || micro_batches * group_.size() == virtual_shards_,
          "{} virtual shards on {} ranks make steps of {} micro-batches, not {}", virtual_shards_, group_.size(),
          virtual_shards_ / group_.size(), micro_batches);
  if (steps_ == 0) summary_->group().agree([this] { store_.require_values(); }, "begin the first step");
  if (tree_ != nullptr) tree_->clear();
  store_.begin_step();
  if (steps_++ == 1 && group_.size() > 1 && shard_ == nullptr) agree_on_ready_order();
  if (tuner_ != nullptr) {
    if (const auto cuts = tuner_->next_cuts([this](std::int64_t bytes) { return time_reduction(bytes); })) make_buckets(*cuts);
  }
  std::shared_ptr<HookedBuckets> hooked;
  if (compression_ != nullptr &&
      compression_->begin_step(buckets_, [this](std::int64_t bytes) { return time_reduction(bytes); })) {
    hooked = std::make_shared<HookedBuckets>(*compression_, compression_->step());
  }
  return Reduction(*this, micro_batches, std::move(hooked));
}

bool DataParallel::reduce(std::size_t index, std::vector<Pending>& pending) const {
  const Bucket& bucket = buckets_[index];
  if (group_.size() == 1) return true;
  if (shard_ == nullptr) {
    with_gradients(store_, bucket.range,
                   [&](auto gradients) { pending.push_back(group_.all_reduce(gradients, sum(), bucket.name)); });
    return true;
  }
  if (pending.size() < bucket.slices_end) {
    with_gradients(store_, shard_->map().slices()[pending.size()],
                   [&](auto gradients) { pending.push_back(group_.reduce_scatter(gradients, sum(), bucket.name)); });
  }
  return pending.size() == bucket.slices_end;
}

Range DataParallel::slices_of(std::size_t bucket) const {
  const std::size_t begin = bucket == 0 ? 0 : buckets_[bucket - 1].slices_end;
  return {static_cast<std::int64_t>(begin), static_cast<std::int64_t>(buckets_[bucket].slices_end)};
}

std::vector<Pending> DataParallel::reduce_buffers() const {
  std::vector<Pending> pending;
  for (const BufferRun& run : buffer_runs_) {
    with_elements(store_, store_.buffers().plane(), run.elements,
                  [&](auto values) { pending.push_back(group_.all_reduce(values, run.op, "buffers")); });
  }
  return pending;
}

// In evaluation batch norm makes no call that the ranks could compare with those of ranks that train. This is one.
void DataParallel::compare_evaluation() const {
  const std::string modes = batch_norm_ ? store_.modes().str() : "";
  if (!modes.empty()) batch_norm_->barrier((modes == "evaluation" ? "a step in " : "a step with ") + modes);
}

// This rank's GPU may be waiting for other ranks. Who reads its memory would wait for ever where one of them fails; this does
// not.
void DataParallel::wait_for_device() const {
  if (store_.on_host()) return;
  device::Event reached;
  device::current_stream().record(reached);
  group_.wait_until([&] { return reached.is_done(); }, "a step of the GPU");
}

StepRequests DataParallel::exchange(const StepRequests& requests) {
  const Group& ranks = summary_->group();
  std::vector<double> asked{requests.stop ? 1.0 : 0.0, requests.checkpoint ? 1.0 : 0.0};
  ranks.all_reduce(std::span(asked), ReduceOp::sum, "exchange").wait_on_host();
  if (comparison_ != nullptr && ++exchanges_ % comparison_->num_steps() == 0) {
    wait_for_device();
    std::vector<double> digests;
    comparison_->append_all(digests);
    ranks.all_reduce(std::span(digests), ReduceOp::sum, "digests of replicas").wait_on_host();
    comparison_->check(digests, first_step_ + exchanges_ - 1, ranks);
  }
  return {.stop = asked[0] > 0, .checkpoint = asked[1] > 0};
}

void DataParallel::gather_gradients() const {
  if (shard_ == nullptr) return;
  for (const Range& slice : shard_->map().slices()) {
    with_gradients(store_, slice, [&](auto gradients) { group_.all_gather(gradients, "gradients").wait_on_host(); });
  }
}

}  // namespace trireme::parallel
