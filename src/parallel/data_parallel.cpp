#include "trireme/parallel/data_parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <variant>

#include "parallel/all_reduce.hpp"
#include "parallel/bucket_tuner.hpp"
#include "parallel/hooked_reduction.hpp"
#include "parallel/micro_batch_sum.hpp"
#include "parallel/parallel_options.hpp"
#include "parallel/pipeline.hpp"
#include "parallel/planes.hpp"
#include "parallel/reduce_scatter.hpp"
#include "parallel/reduction.hpp"
#include "parallel/replica_check.hpp"
#include "parallel/replica_comparison.hpp"
#include "parallel/summary_group.hpp"
#include "trireme/comm/base/require_same.hpp"
#include "trireme/core/error.hpp"
#include "trireme/device/stream.hpp"
#include "trireme/parallel/bucket_cuts.hpp"

namespace trireme::parallel {
namespace {

// Whether it is so on all ranks: what those with copies of a parameter decide alike.
bool on_all(const Group& ranks, bool here, std::string_view name) {
  std::array<std::int32_t, 1> all{here ? 1 : 0};
  ranks.all_reduce(std::span(all), ReduceOp::min, name).wait_on_host();
  return all[0] != 0;
}

// Only float16 gradients leave their range.
amp::GradScalerOptions loss_scale_of(const FlatStore& store, const ParallelOptions& options) {
  amp::GradScalerOptions scale = options.loss_scale;
  scale.enabled = scale.enabled && store.compute_dtype() == DType::float16;
  return scale;
}

// What takes every rank's samples for as many as another's.
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

}  // namespace

DataParallel::DataParallel(Model& model, const ProcessMesh& mesh, const ParallelOptions& options)
    : model_(model),
      store_(model.store()),
      group_(mesh.data()),
      summary_(std::make_shared<const SummaryGroup>(model, mesh)),
      bucket_of_(static_cast<std::size_t>(store_.num_parameters()), -1),
      scaler_(loss_scale_of(store_, options)),
      metrics_prefix_(options.metrics_prefix),
      ready_position_(static_cast<std::size_t>(store_.num_parameters()), 0) {
  const auto check_all = [&] {
    check(options, store_, mesh);
    require_even_shares(model.context().rows, store_, options);
  };
  summary_->group().agree(check_all, "options of DataParallel");
  const bool on_one_node = on_all(summary_->group(), group_.on_one_node(), "nodes of replicas");
  const bool by_itself = on_one_node && std::holds_alternative<Plain>(options.sum);
  const bool sharded =
      group_.size() > 1 && (options.sharding == Sharding::optimizer || (options.sharding == Sharding::automatic && by_itself));
  require_same_replicas(store_, group_);
  require_matching_parts(store_, mesh.tensor());
  require_matching_parts(store_, mesh.expert());
  require_same_ties(store_, mesh.pipeline());
  require_same(summary_->group(), "setting", settings_of(options, sharded));
  if (group_.size() > 1 && reaches(group_, store_)) store_.relocate(group_.memory());
  store_.refresh_compute_copy();
  tie_parameters(mesh);
  if (model.context().num_stages() > 1) {
    pipeline_ = std::make_shared<Pipeline>(mesh.pipeline(), options.schedule, model.context().chunks, store_);
  }
  choose_reduction(mesh, options, sharded);
  if (pipeline_ != nullptr && has_fixed_bits()) pipeline_->require_one_after_the_other();
  store_.set_shard(reduction_->shard());
  const BucketCuts cuts = cut_by_cap(block_bytes_, options.buckets.bytes, options.buckets.first_bytes);
  make_buckets(cuts);
  if (tuning_of(options).on && group_.size() > 1) start_tuning(cuts, tuning_of(options).profile, mesh);
  synchronize_buffers(options.synchronize_batch_norm);
  if (options.check_replicas > 0 && (group_.size() > 1 || mesh.pipeline().size() > 1 || mesh.expert().size() > 1)) {
    comparison_ =
        std::make_shared<const ReplicaComparison>(store_, mesh, options.check_replicas, options.synchronize_batch_norm);
  }
}

// All ranks of the pipeline axis make all groups.
void DataParallel::tie_parameters(const ProcessMesh& mesh) {
  if (mesh.expert().size() > 1) {
    expert_ = std::make_shared<const Group>(mesh.expert().split(0, mesh.expert().rank(), "gradients beside experts"));
  }
  std::map<std::vector<int>, Axis> groups;
  for (const auto& [name, ranks, index] : store_.tied()) {
    if (!groups.contains(ranks)) {
      const bool here = std::ranges::count(ranks, mesh.pipeline().rank()) > 0;
      groups[ranks] =
          std::make_shared<const Group>(mesh.pipeline().split(here ? 0 : 1, mesh.pipeline().rank(), "tied parameters"));
    }
    const bool trains = index >= 0 && store_.parameter(index).trainable;
    tied_.push_back({.parameter = trains ? index : -1, .ranks = groups[ranks]});
  }
}

// Finds what the ranks reduce after each step, and makes the group in which batch norm adds up where it is synchronised.
void DataParallel::synchronize_buffers(bool synchronize_batch_norm) {
  const BufferPlane& buffers = store_.buffers();
  bool statistics = false;
  for (int index = 0; index < buffers.size() && group_.size() > 1; ++index) {
    const BufferInfo& buffer = buffers.info(index);
    if (buffer.options.reduction == BufferReduction::none) continue;
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
  model_.set_batch_axis(batch_norm_);
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

// How sums are made and where they go; and the blocks. A slice never lies in two buckets.
void DataParallel::choose_reduction(const ProcessMesh& mesh, const ParallelOptions& options, bool sharded) {
  const auto* fixed = std::get_if<FixedBits>(&options.sum);
  const auto* hooked = std::get_if<Hooked>(&options.sum);
  micro_batch_sum_ = std::make_shared<MicroBatchSum>(store_, fixed == nullptr ? 0 : fixed->micro_batches / group_.size());
  const std::vector<std::int64_t> bytes = parameter_bytes(mesh);
  if (sharded && hooked == nullptr) {
    ShardMap map(store_, options.buckets.slice_bytes, bytes);
    blocks_.assign(map.blocks().begin(), map.blocks().end());
    reduction_ = std::make_shared<ReduceScatter>(store_, group_, micro_batch_sum_->op(), std::move(map));
  } else {
    for (const int index : trainable()) blocks_.push_back({.parameters = {index}});
    if (hooked == nullptr) {
      reduction_ = std::make_shared<AllReduce>(store_, group_, micro_batch_sum_->op());
    } else {
      reduction_ =
          std::make_shared<HookedReduction>(store_, group_, summary_->group(), trainable(), hooked->compression, sharded);
    }
  }
  auto next = bytes.begin();
  for (const ShardMap::Block& block : blocks_) {
    const auto end = next + std::ssize(block.parameters);
    block_bytes_.push_back(std::accumulate(next, end, std::int64_t{0}));
    next = end;
  }
}

bool DataParallel::sharded() const { return reduction_->shard() != nullptr; }

void DataParallel::make_buckets(const BucketCuts& cuts) {
  buckets_.clear();
  auto next = blocks_.begin();
  const auto add = [&](int count) {
    if (count == 0) return;
    std::vector<int> parameters;
    for (const auto end = next + count; next != end; ++next) {
      parameters.insert(parameters.end(), next->parameters.begin(), next->parameters.end());
    }
    const ParameterInfo& first = store_.parameter(parameters.front());
    const ParameterInfo& last = store_.parameter(parameters.back());
    buckets_.push_back({.range = {first.offset, last.offset + last.numel},
                        .parameters = std::move(parameters),
                        .name = fmt::format("gradient bucket {} ({} to {})", buckets_.size(), first.name, last.name),
                        .slices_end = std::prev(next)->slices_end});
  };
  for (const int count : cuts) {
    for (const auto end = next + count; next != end;) {
      const auto tied = std::find_if(next, end, [this](const auto& block) { return is_tied(block.parameters.front()); });
      add(static_cast<int>(tied - next));
      if (tied != end) add(1);
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
  if (!sharded()) std::ranges::stable_sort(buckets_, {}, complete);
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    for (const int index : buckets_[bucket].parameters) bucket_of_[static_cast<std::size_t>(index)] = static_cast<int>(bucket);
  }
}

void DataParallel::agree_on_ready_order() {
  ready_order_ = ReadyOrder::agreed;
  if (group_.size() == 1 || sharded()) return;
  if (expert_ != nullptr) expert_->broadcast(std::span(ready_position_), 0, "ready order").wait_on_host();
  group_.broadcast(std::span(ready_position_), 0, "ready order").wait_on_host();
  order_buckets();
}

void DataParallel::start_tuning(const BucketCuts& initial, const std::string& profile, const ProcessMesh& mesh) {
  block_of_.assign(bucket_of_.size(), -1);
  for (std::size_t block = 0; block < blocks_.size(); ++block) {
    for (const int index : blocks_[block].parameters) block_of_[static_cast<std::size_t>(index)] = static_cast<int>(block);
  }
  // The ranks of a tensor axis hold copies of some parameters, whose gradients are to be reduced alike.
  const Group copies =
      mesh.tensor().size() == 1 ? group_ : mesh.world().split(mesh.pipeline().rank(), mesh.world().rank(), "bucket tuning");
  if (initial.empty()) return;
  tuner_ = std::make_shared<BucketTuner>(group_, copies, block_bytes_, initial, profile);
}

std::optional<BucketTuning> DataParallel::tuning() const { return tuner_ == nullptr ? std::nullopt : tuner_->result(); }

std::vector<TimedAction> DataParallel::timeline() const {
  return pipeline_ == nullptr ? std::vector<TimedAction>() : pipeline_->timeline();
}

std::optional<CompressionDecision> DataParallel::compression_decision() const { return reduction_->compression_decision(); }

std::vector<NamedTensor> DataParallel::compression_state() const { return reduction_->hook_state(); }

bool DataParallel::has_fixed_bits() const { return micro_batch_sum_->fixed_bits(); }

void DataParallel::add_to(State& state, const std::string& prefix) {
  store_.add_to(state, prefix + "model.");
  scaler_.add_to(state, prefix + "grad_scaler.");
  const Group& all = summary_->group();
  for (const auto& [name, values] : compression_state()) {
    state.add({.name = fmt::format("{}compression.{} of {}.{}", prefix, all.rank(), all.size(), name),
               .dtype = DType::float32,
               .shape = values.shape(),
               .pieces = {{.data = values.data(), .elements = {0, values.numel()}}},
               .optional = true});
  }
}

std::uint64_t DataParallel::bytes_sent() const {
  return group_.bytes_sent() + (summary_->whole_model() ? 0 : summary_->group().bytes_sent()) + reduction_->hook_bytes_sent();
}

Step DataParallel::begin(std::int64_t number, int micro_batches) { return begin(number, micro_batches, nullptr); }

Step DataParallel::begin(std::int64_t number, int micro_batches, StepRecording* recording) {
  require(number >= 0, "steps are numbered from 0 on, got {}", number);
  require(micro_batches > 0, "a step has at least one micro-batch, got {}", micro_batches);
  require(!is_in_step_, "step {} was begun while step {} is open: call its update(), or let it go out of scope", number, step_);
  if (step_ < 0) summary_->group().agree([this] { store_.require_values(); }, "begin the first step");
  micro_batch_sum_->begin_step(micro_batches);
  if (ready_order_ == ReadyOrder::noted) agree_on_ready_order();
  if (tuner_ != nullptr) {
    const auto cuts = tuner_->next_cuts([this](std::int64_t bytes) { return reduction_->time(bytes); });
    if (cuts) make_buckets(*cuts);
  }
  store_.begin_step();
  auto sums = reduction_->begin_step(buckets_, number);
  if (std::exchange(step_, number) != number) {
    earlier_steps_ = 0;
  } else if (is_updated_) {
    ++earlier_steps_;
  }
  is_updated_ = false;
  is_in_step_ = true;
  return {*this, number, std::make_unique<Reduction>(*this, micro_batches, std::move(sums)), recording};
}

void DataParallel::compare(const optim::AnyOptimizer& optimizer) {
  if (std::ranges::count(compared_optimizers_, optimizer.serial()) > 0) return;
  require_same(summary_->group(), "optimizer setting", optimizer.settings());
  compared_optimizers_.push_back(optimizer.serial());
}

void DataParallel::launch_step(std::int64_t number) {
  require(!is_in_step_, "step {} of a StepGraph was run while step {} is open", number, step_);
  step_ = number;
  scaler_.return_to_device();
}

void DataParallel::give_up(bool has_run) {
  scaler_.give_up();
  if (has_run) store_.buffers().restore();
  store_.clear_gradients();
  is_in_step_ = false;
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
  const std::string modes = batch_norm_ ? model_.modes().str() : "";
  if (!modes.empty()) batch_norm_->barrier((modes == "evaluation" ? "a step in " : "a step with ") + modes);
}

// For this rank's GPU, which may be waiting for other ranks: ends with an error where one of them fails.
void DataParallel::wait_until(const std::function<bool()>& done) const { group_.wait_until(done, "a step of the GPU"); }

StepRequests DataParallel::exchange(const StepRequests& requests) {
  const Group& ranks = summary_->group();
  std::vector<double> asked{requests.stop ? 1.0 : 0.0, requests.checkpoint ? 1.0 : 0.0};
  ranks.all_reduce(std::span(asked), ReduceOp::sum, "exchange").wait_on_host();
  if (comparison_ != nullptr && ++exchanges_ % comparison_->num_steps() == 0) {
    if (!store_.on_host()) {
      device::Event reached;
      device::current_stream().record(reached);
      wait_until([&] { return reached.is_done(); });
    }
    std::vector<double> digests;
    comparison_->append_all(digests);
    ranks.all_reduce(std::span(digests), ReduceOp::sum, "digests of replicas").wait_on_host();
    comparison_->check(digests, step_, ranks);
  }
  return {.stop = asked[0] > 0, .checkpoint = asked[1] > 0};
}

void DataParallel::gather_gradients() const { reduction_->gather(); }

}  // namespace trireme::parallel
