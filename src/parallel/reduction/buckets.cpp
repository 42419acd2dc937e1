#include "parallel/reduction/buckets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "parallel/reduction/all_reduce.hpp"
#include "parallel/reduction/hooked_reduction.hpp"
#include "parallel/reduction/reduce_scatter.hpp"

namespace trireme::parallel {

Buckets::Buckets(const Replicas& replicas, const ProcessMesh& mesh, const BucketSettings& settings)
    : replicas_(replicas),
      micro_batches_(replicas.store, replicas.fixed_micro_batches),
      block_of_(static_cast<std::size_t>(replicas.store.num_parameters())),
      bucket_of_(block_of_.size()),
      ready_position_(block_of_.size(), 0) {
  choose_reduction(mesh, settings);
  const BucketCuts cuts = cut_by_cap(block_bytes_, settings.bytes, settings.first_bytes);
  make(cuts);
  if (settings.tune && replicas.group.size() > 1) start_tuning(cuts, settings.profile, mesh);
}

std::vector<int> Buckets::trainable() const {
  std::vector<int> parameters;
  std::ranges::copy_if(replicas_.store.layout(), std::back_inserter(parameters),
                       [this](int index) { return replicas_.store.parameter(index).trainable; });
  return parameters;
}

// The maximum over the ranks of a tensor axis, so that all of them cut the same buckets.
std::vector<std::int64_t> Buckets::parameter_bytes(const ProcessMesh& mesh) const {
  FlatStore& store = replicas_.store;
  std::vector<std::int64_t> bytes;
  for (const int index : trainable()) {
    bytes.push_back(store.parameter(index).numel * static_cast<std::int64_t>(size_of(store.dtype())));
  }
  if (!bytes.empty()) mesh.tensor().all_reduce(std::span(bytes), ReduceOp::max, "sizes of gradients").wait_on_host();
  return bytes;
}

// Chooses the reduction and makes the blocks, so that a slice never lies in two buckets.
void Buckets::choose_reduction(const ProcessMesh& mesh, const BucketSettings& settings) {
  FlatStore& store = replicas_.store;
  const std::vector<std::int64_t> bytes = parameter_bytes(mesh);
  if (replicas_.sharded && settings.hooked == nullptr) {
    ShardMap map(store, settings.slice_bytes, bytes);
    blocks_.assign(map.blocks().begin(), map.blocks().end());
    reduction_ = std::make_unique<ReduceScatter>(store, replicas_.group, replicas_.op(), std::move(map));
  } else {
    for (const int index : trainable()) blocks_.push_back({.parameters = {index}});
    if (settings.hooked == nullptr) {
      reduction_ = std::make_unique<AllReduce>(store, replicas_.group, replicas_.op());
    } else {
      reduction_ = std::make_unique<HookedReduction>(store, replicas_.group, replicas_.summary.group(), trainable(),
                                                     *settings.hooked, replicas_.sharded);
    }
  }
  auto next = bytes.begin();
  for (std::size_t block = 0; block < blocks_.size(); ++block) {
    const std::vector<int>& parameters = blocks_[block].parameters;
    for (const int index : parameters) block_of_[static_cast<std::size_t>(index)] = block;
    const auto end = next + std::ssize(parameters);
    block_bytes_.push_back(std::accumulate(next, end, std::int64_t{0}));
    next = end;
  }
}

void Buckets::make(const BucketCuts& cuts) {
  buckets_.clear();
  auto next = blocks_.begin();
  const auto add = [&](int count) {
    if (count == 0) return;
    std::vector<int> parameters;
    for (const auto end = next + count; next != end; ++next) {
      parameters.insert(parameters.end(), next->parameters.begin(), next->parameters.end());
    }
    const ParameterInfo& first = replicas_.store.parameter(parameters.front());
    const ParameterInfo& last = replicas_.store.parameter(parameters.back());
    buckets_.push_back({.range = {first.offset, last.offset + last.numel},
                        .parameters = std::move(parameters),
                        .name = fmt::format("gradient bucket {} ({} to {})", buckets_.size(), first.name, last.name),
                        .slices_end = std::prev(next)->slices_end});
  };
  for (const int count : cuts) {
    for (const auto end = next + count; next != end;) {
      const auto tied =
          std::find_if(next, end, [this](const auto& block) { return replicas_.is_tied(block.parameters.front()); });
      add(static_cast<int>(tied - next));
      if (tied != end) add(1);
    }
  }
  order();
}

// Sorts the buckets by when they are complete. They stay in the order of the store during the first step, and always if the
// step is sharded.
void Buckets::order() {
  const auto complete = [this](const Bucket& bucket) {
    std::int32_t last = 0;
    for (const int index : bucket.parameters) last = std::max(last, ready_position_[static_cast<std::size_t>(index)]);
    return last;
  };
  if (!replicas_.sharded) std::ranges::stable_sort(buckets_, {}, complete);
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    for (const int index : buckets_[bucket].parameters) bucket_of_[static_cast<std::size_t>(index)] = bucket;
  }
}

void Buckets::agree_on_ready_order() {
  ready_order_ = ReadyOrder::agreed;
  if (replicas_.group.size() == 1 || replicas_.sharded) return;
  if (replicas_.expert != nullptr) {
    replicas_.expert->broadcast(std::span(ready_position_), 0, "ready order").wait_on_host();
  }
  replicas_.group.broadcast(std::span(ready_position_), 0, "ready order").wait_on_host();
  order();
}

void Buckets::start_tuning(const BucketCuts& initial, const std::string& profile, const ProcessMesh& mesh) {
  // The ranks of a tensor axis hold copies of some parameters, so they need the same buckets.
  const Group copies = mesh.tensor().size() == 1
                           ? replicas_.group
                           : mesh.world().split(mesh.pipeline().rank(), mesh.world().rank(), "bucket tuning");
  if (initial.empty()) return;
  tuner_ = std::make_unique<BucketTuner>(replicas_.group, copies, block_bytes_, initial, profile);
}

std::unique_ptr<BucketSums> Buckets::begin_step(std::int64_t number, int micro_batches) {
  micro_batches_.begin_step(micro_batches);
  if (ready_order_ == ReadyOrder::noted) agree_on_ready_order();
  finals_ = 0;
  if (tuner_ != nullptr) {
    const auto cuts = tuner_->next_cuts([this](std::int64_t bytes) { return reduction_->time(bytes); });
    if (cuts) make(*cuts);
  }
  replicas_.store.begin_step();
  return reduction_->begin_step(buckets_, number);
}

void Buckets::begin_last_micro_batch() {
  if (tuner_ != nullptr) tuner_->begin();
}

void Buckets::note_final(int parameter) {
  const auto index = static_cast<std::size_t>(parameter);
  if (tuner_ != nullptr) tuner_->final(block_of_[index]);
  if (ready_order_ == ReadyOrder::unknown) ready_position_[index] = finals_++;
}

void Buckets::end_step() {
  if (tuner_ != nullptr) tuner_->end();
  if (ready_order_ == ReadyOrder::unknown) ready_order_ = ReadyOrder::noted;
}

void Buckets::give_up_step() {
  if (tuner_ != nullptr) tuner_->give_up();
}

}  // namespace trireme::parallel
