#include "trireme/parallel/pipeline.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "parallel/pipeline/pipeline_transfers.hpp"
#include "precision/each_policy.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/comm/base/require_same.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"

namespace trireme::parallel {
namespace {

using Kind = PipelineAction::Kind;

std::string fingerprint(const PipelineSchedule& schedule) {
  std::string text;
  for (const auto& of_rank : schedule.actions) {
    for (const PipelineAction& action : of_rank) text += action.str() + ";";
  }
  return fmt::format("{:016x}", hash_name(text));
}

template <typename M, typename D>
void check_stages(const Group& group, const PipelineSchedule& schedule, const std::vector<PipelineStage<M, D>>& stages) {
  require(group.size() == schedule.num_ranks, "schedule {} is one for {} ranks, the pipeline axis of the mesh has {}",
          schedule.name, schedule.num_ranks, group.size());
  require(stages.size() == static_cast<std::size_t>(schedule.num_chunks), "schedule {} has {} stages on each rank, not {}",
          schedule.name, schedule.num_chunks, stages.size());
  for (std::size_t chunk = 0; chunk < stages.size(); ++chunk) {
    const int stage = static_cast<int>(chunk) * group.size() + group.rank();
    const bool last = stage == schedule.num_stages() - 1;
    require((stages[chunk].loss != nullptr) == last && (stages[chunk].forward != nullptr) == !last,
            "stage {} of {} must have {} and nothing else", stage, schedule.num_stages(), last ? "a loss" : "a forward");
  }
  require_valid(schedule);
}

// Every stage takes what the one before it gives.
template <typename M, typename D>
void check_shapes(const Group& group, const std::vector<PipelineStage<M, D>>& stages) {
  std::vector<std::string> inputs;  // by stage
  std::vector<std::string> outputs;
  for (const PipelineStage<M, D>& stage : stages) {
    for (std::string& text : group.gather_texts(stage.input.str(), "inputs of stages")) inputs.push_back(std::move(text));
    for (std::string& text : group.gather_texts(stage.output.str(), "outputs of stages")) outputs.push_back(std::move(text));
  }
  for (std::size_t stage = 1; stage < inputs.size(); ++stage) {
    require(outputs[stage - 1] == inputs[stage], "stage {} gives {}, but stage {} takes {}", stage - 1, outputs[stage - 1],
            stage, inputs[stage]);
  }
}

}  // namespace

template <typename M, typename D>
Pipeline<M, D>::Pipeline(const ProcessMesh& mesh, PipelineSchedule schedule, std::vector<PipelineStage<M, D>> stages)
    : schedule_(std::move(schedule)), stages_(std::move(stages)), group_(mesh.pipeline()) {
  group_.agree([this] { check_stages(group_, schedule_, stages_); }, "stages of the pipeline");
  require_same(group_, "pipeline setting",
               {{"schedule", schedule_.name},
                {"micro_batches", std::to_string(schedule_.num_micro_batches)},
                {"actions", fingerprint(schedule_)},
                {"activations", std::string(name_of(dtype_of<M>))}});
  check_shapes(group_, stages_);
}

// One step.
template <typename M, typename D>
class Pipeline<M, D>::Execution {
 public:
  Execution(Pipeline& pipeline, Step& step, std::int64_t first_sample, std::int64_t samples_per_micro_batch)
      : pipeline_(pipeline),
        schedule_(pipeline.schedule_),
        step_(step),
        first_sample_(first_sample),
        samples_per_micro_batch_(samples_per_micro_batch),
        passes_(static_cast<std::size_t>(schedule_.num_stages() * schedule_.num_micro_batches)) {}

  void perform(const PipelineAction& action) {
    switch (action.kind) {
      case Kind::forward: return compute(action, pass_of(action).input.pending, &Execution::forward);
      case Kind::backward: return compute(action, pass_of(action).output_gradient.pending, &Execution::backward);
      case Kind::weight_gradient: {
        Pending nothing;
        return compute(action, nothing, &Execution::weight_gradients);
      }
      case Kind::receive_forward: return receive(action, stage_of(action).input, pass_of(action).input);
      case Kind::receive_backward: return receive(action, stage_of(action).output, pass_of(action).output_gradient);
      case Kind::send_forward: return send(action, pass_of(action).output);
      case Kind::send_backward: return send(action, pass_of(action).input_gradient);
    }
  }

 private:
  struct Arrival {
    Tensor<M, D> tensor = {};
    Pending pending = {};
  };

  // A micro-batch in a stage. Tensors are held no longer than somebody needs them.
  struct Pass {
    std::unique_ptr<Tape> tape = {};  // from forward to the last gradient
    Arrival input = {};
    Arrival output_gradient = {};
    Tensor<M, D> output = {};
    Tensor<M, D> input_gradient = {};
    Gradient<M, D> gradient = {};  // of the output, on the tape
    Loss<M, D> loss = {};
  };

  PipelineStage<M, D>& stage_of(const PipelineAction& action) {
    return pipeline_.stages_[static_cast<std::size_t>(action.stage / schedule_.num_ranks)];
  }
  Pass& pass_of(int stage, int micro_batch) {
    return passes_[static_cast<std::size_t>(stage * schedule_.num_micro_batches + micro_batch)];
  }
  Pass& pass_of(const PipelineAction& action) { return pass_of(action.stage, action.micro_batch); }
  bool is_last(int stage) const { return stage == schedule_.num_stages() - 1; }

  // Both ends name a message by the stage that takes it.
  static std::string name_of_message(const PipelineAction& receive) {
    return fmt::format("{} of stage {}, micro-batch {}",
                       receive.kind == Kind::receive_forward ? "input" : "gradient of the output", receive.stage,
                       receive.micro_batch);
  }
  int tag_of(const PipelineAction& receive) const {
    return receive.stage + (receive.kind == Kind::receive_forward ? 0 : schedule_.num_stages());
  }

  void receive(const PipelineAction& action, const Shape& shape, Arrival& arrival) {
    const int from = schedule_.rank_of(action.kind == Kind::receive_forward ? action.stage - 1 : action.stage + 1);
    arrival.tensor = Tensor<M, D>(shape);
    arrival.pending = pipeline_.group_.receive(arrival.tensor.span(), from, tag_of(action), name_of_message(action));
  }

  void send(const PipelineAction& action, Tensor<M, D>& tensor) {
    const PipelineAction receive = receipt_of(action);
    pipeline_.group_.send(std::span<const M>(tensor.span()), schedule_.rank_of(receive.stage), tag_of(receive),
                          name_of_message(receive));
    tensor = {};
  }

  double now() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

  void compute(const PipelineAction& action, Pending& needed, void (Execution::*work)(const PipelineAction&)) {
    needed.wait_on_host();
    const double begin = now();
    (this->*work)(action);
    pipeline_.timeline_.push_back({action, begin, now()});
  }

  void forward(const PipelineAction& action) {
    const auto [kind, stage, micro_batch] = action;
    Pass& pass = pass_of(action);
    if (schedule_.num_ranks == 1 && stage > 0) pass.input.tensor = std::move(pass_of(stage - 1, micro_batch).output);
    pass.tape = std::make_unique<Tape>(step_.names_of(first_sample_ + micro_batch * samples_per_micro_batch_));
    Variable<M, D> x;
    if (stage > 0) {
      x = watch(std::move(pass.input.tensor), [&pass](Tensor<M, D> gradient) { pass.input_gradient = std::move(gradient); });
    }
    if (is_last(stage)) {
      pass.loss = step_.scaler().scale(stage_of(action).loss(x, micro_batch));
      step_.add(pass.loss);
    } else {
      const Variable<M, D> output = stage_of(action).forward(x, micro_batch);
      require(output.shape() == stage_of(action).output, "stage {} gave {}, but said it gives {}", stage, output.shape(),
              stage_of(action).output);
      pass.output = output.value();
      pass.gradient = output.gradient();
    }
    pass.tape->suspend();
  }

  void backward(const PipelineAction& action) {
    const auto [kind, stage, micro_batch] = action;
    Pass& pass = pass_of(action);
    if (schedule_.num_ranks == 1 && !is_last(stage)) {
      pass.output_gradient.tensor = std::move(pass_of(stage + 1, micro_batch).input_gradient);
    }
    pass.tape->resume();
    if (stage < schedule_.num_ranks) step_.listen(*pass.tape);  // nothing of this micro-batch comes later on this rank
    if (schedule_.splits_backward) pass.tape->split_backward();
    if (is_last(stage)) {
      std::exchange(pass.loss, {}).backward();
    } else {
      std::exchange(pass.gradient, {}).give(std::move(pass.output_gradient.tensor));
      pass.tape->run_backward();
    }
    if (stage > 0 && !pass.input_gradient.defined()) pass.input_gradient = Tensor<M, D>::zeros(stage_of(action).input);
    if (schedule_.splits_backward) {
      pass.tape->suspend();
    } else {
      pass.tape.reset();
    }
  }

  void weight_gradients(const PipelineAction& action) {
    Pass& pass = pass_of(action);
    pass.tape->resume();
    pass.tape->run_weight_gradients();
    pass.tape.reset();
  }

  Pipeline& pipeline_;
  const PipelineSchedule& schedule_;
  Step& step_;
  std::int64_t first_sample_;
  std::int64_t samples_per_micro_batch_;
  std::vector<Pass> passes_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

template <typename M, typename D>
void Pipeline<M, D>::run(Step& step, std::int64_t first_sample, std::int64_t samples_per_micro_batch) {
  require(!step.has_fixed_bits() || (schedule_.num_chunks == 1 && !schedule_.splits_backward),
          "with FixedBits a micro-batch's gradients are complete before the next one's begin, which the schedule {} does not "
          "do: use gpipe or 1f1b",
          schedule_.name);
  timeline_.clear();
  step.begin_micro_batches();
  Execution execution(*this, step, first_sample, samples_per_micro_batch);
  for (const PipelineAction& action : schedule_.actions[static_cast<std::size_t>(group_.rank())]) execution.perform(action);
  step.end_micro_batches();
}

#define TRIREME_INSTANTIATE(P) template class Pipeline<P::Master, TRIREME_DEVICE>;
TRIREME_EACH_UNMIXED_POLICY(TRIREME_INSTANTIATE)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::parallel
