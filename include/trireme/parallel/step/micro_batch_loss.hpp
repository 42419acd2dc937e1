#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "trireme/autograd/operations/loss.hpp"
#include "trireme/autograd/tape.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/ops/update/step.hpp"

namespace trireme TRIREME_EXPORT {
namespace parallel {

// The loss that a micro-batch adds to its step.
struct MicroBatchLoss {
  std::function<StepTotals()> read;                   // for a loss on a GPU the host waits
  std::function<void(StepTotals* on_device)> add_to;  // adds it on the GPU; empty if the host knows the numbers
};

using AddedLosses = std::vector<std::shared_ptr<AddedLoss>>;
double value_of(const AddedLosses& added);

// The loss of a stage other than the last: the sum of the losses that its layers added.
MicroBatchLoss micro_batch_loss(const AddedLosses& added, bool on_host);

// The given loss and the losses that layers added on the current tape.
template <typename T, typename D>
MicroBatchLoss micro_batch_loss(const Loss<T, D>& loss) {
  const AddedLosses& added = Tape::current()->added_losses();
  const auto read = [sum = loss.sum.value(), target_weight = loss.target_weight, added] {
    return StepTotals{.loss_sum = static_cast<double>(sum.item()) + value_of(added), .target_weight = target_weight.item()};
  };
  if constexpr (Tensor<T, D>::on_host) {
    return {.read = [known = read()] { return known; }, .add_to = {}};
  } else {
    const ops::StepSums<T, D> sums{.loss = Scalar<T, D>(loss.sum.value()), .target_weight = loss.target_weight};
    const auto add_to = [sums, added](StepTotals* totals) {
      ops::add_to_totals(sums, totals);
      for (const auto& one : added) one->add_to(totals);
    };
    return {.read = read, .add_to = add_to};
  }
}

}  // namespace parallel
}  // namespace trireme
