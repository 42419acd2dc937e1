#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/nn/staged/staged.hpp"
#include "trireme/parallel/step/open_step.hpp"

namespace trireme TRIREME_EXPORT {
namespace parallel {

// Implements StagePasses for an nn::Staged model and the batches of a step.
template <typename Net, typename Batch>
class ModelPasses final : public StagePasses {
 public:
  ModelPasses(OpenStep& step, const Net& model, std::vector<Batch> batches)
      : step_(step), model_(model), batches_(std::move(batches)) {}

  int num_micro_batches() const override { return static_cast<int>(batches_.size()); }
  TapeOptions names(int micro_batch) const override {
    return step_.names_of(samples_of(batches_[static_cast<std::size_t>(micro_batch)], step_.samples_of_micro_batch()));
  }
  void listen(Tape& tape) override { step_.listen(tape); }

  void forward(int stage, int micro_batch, StagePass& pass) override {
    using Flow = typename Net::FlowType;
    const Batch& batch = batches_[static_cast<std::size_t>(micro_batch)];
    const Range& layers = model_.stages()[static_cast<std::size_t>(stage)];
    Flow x{};
    if (stage > 0) x = nn::unpack<Flow>(std::exchange(pass.input, {}), &pass.input_gradients);
    if (stage + 1 < static_cast<int>(model_.stages().size())) {
      pass.output = nn::pack(nn::settled(model_.run_layers(layers, x, batch)), &pass.give);
      const AddedLosses& added = Tape::current()->added_losses();
      if (added.empty()) return;
      step_.add_of_stage(micro_batch_loss(added, Tensor<typename Net::M, typename Net::Device>::on_host));
      pass.begin_added = [scaler = &step_.scaler()](const Tape& tape, std::int64_t nominal_targets) {
        const Loss<typename Net::M, typename Net::Device> none{.sum = {}, .nominal_targets = nominal_targets};
        scaler->scale(none).begin_added(tape);
      };
      return;
    }
    const auto y = model_.last_layer(model_.run_layers({layers.begin, layers.end - 1}, x, batch), batch);
    auto loss = as_loss(nn::loss_from(model_, y, batch));
    loss.nominal_targets = nominal_targets_of(batch, loss.nominal_targets, step_);
    step_.add(micro_batch_loss(loss), loss.nominal_targets);
    pass.nominal_targets = loss.nominal_targets;
    pass.backward = [scaled = step_.scaler().scale(loss)] { scaled.backward(); };
  }

 private:
  OpenStep& step_;
  const Net& model_;
  std::vector<Batch> batches_;
};

}  // namespace parallel
}  // namespace trireme
