#include "trireme/parallel/data_parallel.hpp"

#include <fmt/format.h>

#include <string>

#include "parallel/data_parallel_parts.hpp"
#include "trireme/core/error.hpp"
#include "trireme/device/stream.hpp"
#include "trireme/parallel/step_graph.hpp"

namespace trireme::parallel {

DataParallel::DataParallel(Model& model, const ProcessMesh& mesh, const ParallelOptions& options)
    : parts_(std::make_unique<Parts>(model, mesh, options)) {}

DataParallel::~DataParallel() = default;

Step DataParallel::begin(std::int64_t number, int micro_batches) { return parts_->begin(number, micro_batches, nullptr); }

StepRequests DataParallel::exchange(const StepRequests& requests) {
  const Replicas& replicas = parts_->replicas;
  const Group& ranks = replicas.summary.group();
  StepRequests all;
  SummaryFields asked;
  add_requests(asked, requests, all);
  asked.reduce(ranks, ReduceOp::sum, "exchange").wait_on_host();
  asked.read();
  if (replicas.comparison != nullptr && ++parts_->state.exchanges % replicas.comparison->num_steps() == 0) {
    if (!replicas.store.on_host()) {
      device::Event reached;
      device::current_stream().record(reached);
      replicas.wait_until([&] { return reached.is_done(); });
    }
    SummaryFields digests;
    replicas.comparison->add_all_to(digests, parts_->state.number, ranks);
    digests.reduce(ranks, ReduceOp::sum, "digests of replicas").wait_on_host();
    digests.read();
  }
  return all;
}

void DataParallel::gather_gradients() const { parts_->buckets.reduction().gather(); }

std::optional<BucketTuning> DataParallel::tuning() const { return parts_->buckets.tuning(); }

std::optional<CompressionDecision> DataParallel::compression_decision() const {
  return parts_->buckets.reduction().compression_decision();
}

std::vector<NamedTensor> DataParallel::compression_state() const { return parts_->buckets.reduction().hook_state(); }

void DataParallel::add_to(State& state, const std::string& prefix) {
  parts_->replicas.store.add_to(state, prefix + "model.");
  parts_->state.scaler.add_to(state, prefix + "grad_scaler.");
  const Group& all = parts_->replicas.summary.group();
  for (const auto& [name, values] : compression_state()) {
    state.add({.name = fmt::format("{}compression.{} of {}.{}", prefix, all.rank(), all.size(), name),
               .dtype = DType::float32,
               .shape = values.shape(),
               .pieces = {{.data = values.data(), .elements = {0, values.numel()}}},
               .optional = true});
  }
}

const amp::GradScaler& DataParallel::scaler() const { return parts_->state.scaler; }

std::vector<TimedAction> DataParallel::timeline() const {
  return parts_->pipeline == nullptr ? std::vector<TimedAction>() : parts_->pipeline->timeline();
}

std::uint64_t DataParallel::bytes_sent() const { return parts_->bytes_sent(); }

bool DataParallel::sharded() const { return parts_->replicas.sharded; }

bool DataParallel::has_fixed_bits() const { return parts_->replicas.has_fixed_bits(); }

std::int64_t DataParallel::num_buckets() const { return std::ssize(parts_->buckets.list()); }

Step RecordedSteps::begin(std::int64_t number, StepRecording& recording) const { return parts_->begin(number, 1, &recording); }

void RecordedSteps::before_recording() const { parts_->state.scaler.return_to_device(); }

void RecordedSteps::before_launch(std::int64_t number) const {
  StepState& state = parts_->state;
  require(!state.is_open, "step {} of a StepGraph was run while step {} is open", number, state.number);
  state.number = number;
  state.scaler.return_to_device();
}

void RecordedSteps::wait_until(const std::function<bool()>& done) const { parts_->replicas.wait_until(done); }

}  // namespace trireme::parallel
