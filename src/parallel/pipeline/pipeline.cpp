#include "parallel/pipeline/pipeline.hpp"

#include <fmt/format.h>

#include <utility>

#include "parallel/pipeline/pipeline_transfers.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/stopwatch.hpp"

namespace trireme::parallel {
namespace {

using Kind = PipelineAction::Kind;

// Copies of the parts with a gradient, without memory: only type and shape.
std::vector<nn::FlowPart> with_gradient(const std::vector<nn::FlowPart>& parts) {
  std::vector<nn::FlowPart> result;
  for (const nn::FlowPart& part : parts) {
    if (part.with_gradient) result.push_back({.dtype = part.dtype, .shape = part.shape});
  }
  return result;
}

}  // namespace

Pipeline::Pipeline(const Group& ranks, std::string schedule, int num_chunks, const FlatStore& store)
    : ranks_(ranks),
      name_(std::move(schedule)),
      num_chunks_(num_chunks),
      transfers_(ranks, ranks.size() * num_chunks, store.device()) {
  if (name_.empty()) name_ = num_chunks > 1 ? "interleaved" : "1f1b";
  make_schedule(ranks.size());  // throws if the name or the chunks are not valid
}

void Pipeline::require_one_after_the_other() const {
  require(
      num_chunks_ == 1 && !schedule_->splits_backward,
      "with FixedBits a micro-batch's gradients are complete before the next one's begin; the schedule {} with {} stage{} a "
      "rank does not do so: use gpipe or 1f1b, with one stage a rank",
      name_, num_chunks_, num_chunks_ == 1 ? "" : "s");
}

void Pipeline::make_schedule(int micro_batches) {
  if (schedule_ && schedule_->num_micro_batches == micro_batches) return;
  schedule_ = make_pipeline_schedule(
      {.name = name_, .num_ranks = ranks_.size(), .num_chunks = num_chunks_, .num_micro_batches = micro_batches});
}

// The execution of one step.
class Pipeline::Execution {
 public:
  Execution(Pipeline& pipeline, StagePasses& passes)
      : pipeline_(pipeline),
        schedule_(*pipeline.schedule_),
        model_(passes),
        passes_(static_cast<std::size_t>(schedule_.num_stages() * schedule_.num_micro_batches)) {}

  void perform(const PipelineAction& action) {
    Pass& pass = pass_of(action);
    switch (action.kind) {
      case Kind::forward: {
        if (pass.expects_input) pass.input = transfers().take(action.stage, name_of_message(action, "input"), pass.arrival);
        return compute(action, &Execution::forward);
      }
      case Kind::backward: {
        if (pass.expects_gradients) post_gradients(action, pass);
        for (Pending& pending : pass.gradients_pending) pending.wait_on_host();
        return compute(action, &Execution::backward);
      }
      case Kind::weight_gradient: return compute(action, &Execution::weight_gradients);
      case Kind::receive_forward: {
        pass.expects_input = true;
        return transfers().expect(action.stage, name_of_message(action, "input"), pass.arrival);
      }
      case Kind::receive_backward: {
        pass.expects_gradients = true;
        if (pass.is_forwarded) post_gradients(action, pass);
        return;
      }
      case Kind::send_forward: {
        const nn::PackedFlow output = std::exchange(pass.output, {});
        return transfers().send(action.stage + 1, name_of_message(receipt_of(action), "input"), output);
      }
      case Kind::send_backward: return send_gradients(action, pass);
    }
  }

 private:
  // Tensors are released after their last use.
  struct Pass : StagePass {
    bool expects_input = false;
    FlowTransfers::Arrival arrival = {};
    bool is_forwarded = false;
    std::vector<nn::FlowPart> wanted_gradients = {};  // types and shapes of the input's gradients
    std::vector<nn::FlowPart> output_gradients = {};  // with memory once their receives are posted
    bool expects_gradients = false;                   // the receives are still to be posted
    // Received with the gradients: the targets of the loss, and for each gradient 1 if it arose, 0 if zeros were sent.
    std::vector<std::int64_t> numbers = {};
    std::vector<Pending> gradients_pending = {};
  };

  FlowTransfers& transfers() { return pipeline_.transfers_; }
  Pass& pass_of(int stage, int micro_batch) {
    return passes_[static_cast<std::size_t>(stage * schedule_.num_micro_batches + micro_batch)];
  }
  Pass& pass_of(const PipelineAction& action) { return pass_of(action.stage, action.micro_batch); }
  bool is_last(int stage) const { return stage == schedule_.num_stages() - 1; }

  // Both ends name a message by the stage that receives it.
  static std::string name_of_message(const PipelineAction& taken, std::string_view what) {
    return fmt::format("{} of stage {}, micro-batch {}", what, taken.stage, taken.micro_batch);
  }

  // Posts the receives of the output's gradients. Their shapes are known only after the forward pass, while a schedule may ask
  // for the receives before.
  void post_gradients(const PipelineAction& action, Pass& pass) {
    pass.expects_gradients = false;
    for (nn::FlowPart& part : pass.output_gradients) part = nn::allocate_like(part, transfers().device().memory());
    pass.numbers.assign(1 + pass.output_gradients.size(), 0);
    pass.gradients_pending = transfers().expect_gradients(action.stage, name_of_message(action, "gradient of the output"),
                                                          pass.numbers, pass.output_gradients);
  }

  nn::FlowPart zeros_like(const nn::FlowPart& part) {
    const PlaneDevice& device = transfers().device();
    nn::FlowPart zeros = nn::allocate_like(part, device.memory());
    device.zero(zeros.data(), zeros.bytes());
    return zeros;
  }

  void send_gradients(const PipelineAction& action, Pass& pass) {
    std::vector<nn::FlowPart> gradients = std::exchange(pass.input_gradients, {});
    std::vector<std::int64_t> numbers{pass.nominal_targets};
    for (std::size_t part = 0; part < gradients.size(); ++part) {
      const bool arose = gradients[part].memory != nullptr;
      numbers.push_back(arose ? 1 : 0);
      if (!arose) gradients[part] = zeros_like(pass.wanted_gradients[part]);
    }
    transfers().send_gradients(action.stage - 1, name_of_message(receipt_of(action), "gradient of the output"), numbers,
                               gradients);
  }

  void compute(const PipelineAction& action, void (Execution::*work)(const PipelineAction&)) {
    const double begin = since_begin_.seconds();
    (this->*work)(action);
    pipeline_.timeline_.push_back({action, begin, since_begin_.seconds()});
  }

  void forward(const PipelineAction& action) {
    const auto [kind, stage, micro_batch] = action;
    Pass& pass = pass_of(action);
    if (schedule_.num_ranks == 1 && stage > 0) pass.input = std::exchange(pass_of(stage - 1, micro_batch).output, {});
    pass.wanted_gradients = with_gradient(pass.input.parts);
    pass.tape = std::make_unique<Tape>(model_.names(micro_batch));
    model_.forward(stage, micro_batch, pass);
    pass.output_gradients = with_gradient(pass.output.parts);
    pass.is_forwarded = true;
    pass.tape->suspend();
  }

  // Takes the gradients and targets of this micro-batch from the next stage.
  void take_gradients(int stage, int micro_batch, Pass& pass) {
    if (is_last(stage)) return;
    if (schedule_.num_ranks == 1) {
      StagePass& next = pass_of(stage + 1, micro_batch);
      pass.output_gradients = std::exchange(next.input_gradients, {});
      pass.nominal_targets = next.nominal_targets;
      return;
    }
    pass.nominal_targets = pass.numbers.front();
    for (std::size_t part = 0; part < pass.output_gradients.size(); ++part) {
      if (pass.numbers[1 + part] == 0) pass.output_gradients[part] = {};
    }
  }

  void backward(const PipelineAction& action) {
    const auto [kind, stage, micro_batch] = action;
    Pass& pass = pass_of(action);
    take_gradients(stage, micro_batch, pass);
    pass.tape->resume();
    if (stage < schedule_.num_ranks) model_.listen(*pass.tape);  // the last backward of this micro-batch on this rank
    if (schedule_.splits_backward) pass.tape->split_backward();
    if (is_last(stage)) {
      std::exchange(pass.backward, {})();
    } else {
      if (pass.begin_added) pass.begin_added(*pass.tape, pass.nominal_targets);
      const auto give = std::exchange(pass.give, {});
      const auto gradients = std::exchange(pass.output_gradients, {});
      for (std::size_t part = 0; part < give.size(); ++part) {
        if (gradients[part].memory != nullptr) give[part](gradients[part]);
      }
      pass.tape->run_backward();
    }
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
  StagePasses& model_;
  std::vector<Pass> passes_;
  Stopwatch since_begin_;
};

void Pipeline::run(StagePasses& passes) {
  require(
      !is_running_,
      "an earlier step of this pipeline failed, and messages between its stages may still be under way: end the job and start "
      "it again from a checkpoint");
  make_schedule(passes.num_micro_batches());
  timeline_.clear();
  is_running_ = ranks_.size() > 1;
  transfers_.begin_step(passes.num_micro_batches());
  Execution execution(*this, passes);
  for (const PipelineAction& action : schedule_->actions[static_cast<std::size_t>(ranks_.rank())]) execution.perform(action);
  is_running_ = false;
}

}  // namespace trireme::parallel
