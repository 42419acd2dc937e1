#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/ops/update/step_state.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

// An optimizer's counts of updates, and its decision whether to take a step. Both lie in a GPU's memory, so that the host does
// not wait.
class DeviceSteps {
 public:
  DeviceSteps(FlatStore& store, double learning_rate);

  void set_learning_rate(double learning_rate);

  // Decides from the summary whether the step is taken, and counts the updates of `used` parameters.
  void begin(const StepSummary& summary, double clip_norm, const std::vector<bool>& used);

  // Where kernels find the step of a parameter. clipped: ops::ClipUpdate has already multiplied the gradients by their scale.
  ops::StepOnDevice of(int parameter, bool clipped) const;

  // Whether both parameters were updated equally often, as far as the host can tell.
  bool same_updates(int first, int second) const;

  std::int64_t take_skipped();  // steps skipped since the last call; the host waits

  // By parameter: "<prefix>step.<name>".
  void add_to(State& state, const std::string& prefix);

 private:
  FlatStore& store_;
  Tensor<ops::StepState, Cuda> state_;
  Tensor<std::int64_t, Cuda> updates_;                       // by parameter
  Tensor<std::int64_t, Cuda> used_;                          // whether used in this step: 0 or 1
  std::vector<bool> used_on_host_;                           // the same numbers as in used_
  bool used_by_graph_ = false;                               // a recorded step reads used_
  std::vector<Tensor<std::int64_t, Cuda>> kept_for_graphs_;  // tensors that recorded steps read
  std::vector<std::uint64_t> history_;  // by parameter; equal if two parameters were used in the same steps
  std::uint64_t steps_ = 0;             // number of begun steps
};

}  // namespace optim
}  // namespace trireme
