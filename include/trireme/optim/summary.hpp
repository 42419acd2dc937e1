#pragma once

#include <memory>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/autograd/operations/loss.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/ops/reduce/reduce.hpp"
#include "trireme/ops/update/step.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

// Returns the summary with its numbers on the host. The host waits for numbers that lie in a GPU's memory.
template <typename D>
StepSummary read(StepSummary summary) {
  if (!summary.on_device) return summary;
  StepNumbers numbers;
  device::copy_bytes(Cpu{}, &numbers, D{}, summary.on_device.get(), sizeof(numbers));
  summary.set(numbers);
  summary.on_device = nullptr;
  return summary;
}

// Makes the summary of a step of one micro-batch on one rank, after the backward pass. DataParallel makes the summary of larger
// steps. Numbers on a GPU stay there, and the host does not wait.
template <typename T, typename D>
StepSummary summarize(FlatStore& store, const Loss<T, D>& loss) {
  StepSummary summary{.store = store.serial()};
  for (int index = 0; index < store.num_parameters(); ++index) {
    const bool trainable = store.parameter(index).trainable;
    summary.used.push_back(trainable && store.has_gradient(index));
    if (trainable && !store.has_gradient(index)) store.zero_gradient(index);
  }
  const Tensor<T, D> gradients = store.gradients<T, D>();
  const Tensor<StepTotals, D> totals({1});
  store.device().zero(totals.data(), sizeof(StepTotals));
  const ops::StepSums<T, D> sums{.loss = Scalar<T, D>(loss.sum.value()),
                                 .target_weight = loss.target_weight,
                                 .squares = ops::sum_of_squares(gradients.data(), gradients.span().size(), D{})};
  ops::add_to_totals(sums, totals.data());
  const Tensor<StepNumbers, D> numbers({1});
  ops::summarize_step<D>(totals.data(), static_cast<double>(loss.nominal_targets), numbers.data());
  if constexpr (Scalar<T, D>::on_host) {
    summary.set(*numbers.data());
  } else {
    const auto keeps_memory = std::make_shared<Tensor<StepNumbers, D>>(numbers);
    summary.on_device = std::shared_ptr<const StepNumbers>(keeps_memory, numbers.data());
  }
  return summary;
}

}  // namespace optim
}  // namespace trireme
