#pragma once

#include <trireme/trireme.hpp>
#include <type_traits>
#include <utility>

template <typename ModelOptions>
struct StepOptionsOf {
  ModelOptions model = {};
  std::int64_t batch = 8;  // of one rank
  trireme::parallel::ParallelOptions data_parallel = {};
  trireme::ModelContext context = {};
};
using TrainingStepOptions = StepOptionsOf<trireme::models::GptOptions>;

// A training step of a GPT or Llama on random sequences of model.block tokens, different on every rank.
template <typename P, typename Model = trireme::models::Gpt<P>>
class TrainingStep {
 public:
  using Options = StepOptionsOf<std::remove_cvref_t<decltype(std::declval<const Model&>().options())>>;

  TrainingStep(const Options& options, const trireme::Group& world)
      : model_(options.model, options.context),
        data_parallel_((model_.initialize(), model_), trireme::ProcessMesh(world), options.data_parallel),
        optimizer_(model_, {.beta2 = 0.95, .weight_decay = 0.1, .decay = trireme::optim::Decay::matrices}),
        tokens_({options.batch, options.model.block}),
        targets_({options.batch, options.model.block}) {
    for (std::int64_t index = 0; index < tokens_.numel(); ++index) {
      const std::int64_t number = world.rank() * tokens_.numel() + index;
      tokens_.data()[index] = static_cast<std::int32_t>(number * 7919 % options.model.vocabulary);
      targets_.data()[index] = static_cast<std::int32_t>(number * 104729 % options.model.vocabulary);
    }
  }

  void run() {
    run([] {});
  }
  // after_forward() is called at the peak of memory.
  template <typename AfterForward>
  void run(const AfterForward& after_forward) {
    trireme::parallel::Step step = data_parallel_.begin(next_step_++);
    step.backward(0, [&] {
      const std::size_t before = trireme::device::host_memory_statistics().in_use_bytes;
      auto loss = model_.loss(tokens_, targets_);
      kept_bytes_ = trireme::device::host_memory_statistics().in_use_bytes - before;
      after_forward();
      return loss;
    });
    step.update(optimizer_, {.clip_norm = 1});
  }

  std::int64_t gradient_numel() const { return model_.store().trainable_numel(); }
  std::size_t kept_bytes() const { return kept_bytes_; }  // by the tape, for backward

 private:
  Model model_;
  trireme::parallel::DataParallel data_parallel_;
  trireme::optim::AdamW<P> optimizer_;
  trireme::Tensor<std::int32_t> tokens_;
  trireme::Tensor<std::int32_t> targets_;
  std::int64_t next_step_ = 0;
  std::size_t kept_bytes_ = 0;
};
