#pragma once

#include <cmath>
#include <memory>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/autograd/functions.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/ops/reduce.hpp"
#include "trireme/ops/step.hpp"

namespace trireme::optim {

// The same with numbers that the host knows; it waits for those in the memory of D.
template <typename D>
StepSummary read(StepSummary summary) {
  if (!summary.on_device) return summary;
  StepNumbers numbers;
  device::copy_bytes(Cpu{}, &numbers, D{}, summary.on_device.get(), sizeof(numbers));
  summary.loss_sum = numbers.loss_sum;
  summary.kept = numbers.kept;
  summary.gradient_scale = numbers.gradient_scale;
  summary.gradient_norm = numbers.gradient_norm;
  summary.on_device = nullptr;
  return summary;
}

// Of a step of one micro-batch on one rank, after its backward pass; of more, DataParallel makes it. On a GPU the numbers stay
// there, and the host does not wait.
template <typename T, typename D>
StepSummary summarize(FlatStore& store, const Loss<T, D>& loss) {
  StepSummary summary;
  for (int index = 0; index < store.num_parameters(); ++index) {
    const bool trainable = store.parameter(index).trainable;
    summary.used.push_back(trainable && store.has_gradient(index));
    if (trainable && !store.has_gradient(index)) store.zero_gradient(index);
  }
  const Tensor<T, D> gradients = store.gradients<T, D>();
  const Scalar<double, D> squares = ops::sum_of_squares(gradients.data(), gradients.span().size(), D{});
  const auto count = static_cast<double>(loss.count);
  if constexpr (Scalar<T, D>::on_host) {
    summary.loss_sum = static_cast<double>(loss.sum.value().item());
    summary.kept = loss.kept;
    summary.gradient_scale = summary.kept == 0 ? 0 : count / summary.kept;
    summary.gradient_norm = std::sqrt(squares) * summary.gradient_scale;
  } else {
    const Tensor<StepNumbers, D> numbers({1});
    ops::summarize_step<T>({.loss = Scalar<T, D>(loss.sum.value()), .kept = loss.kept, .count = count, .squares = squares},
                           numbers.data());
    const auto keeps_memory = std::make_shared<Tensor<StepNumbers, D>>(numbers);
    summary.on_device = std::shared_ptr<const StepNumbers>(keeps_memory, numbers.data());
  }
  return summary;
}

}  // namespace trireme::optim
