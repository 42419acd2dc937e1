#include "trireme/parallel/step/micro_batch_loss.hpp"

namespace trireme::parallel {

double value_of(const AddedLosses& added) {
  double sum = 0;
  for (const std::shared_ptr<AddedLoss>& loss : added) sum += loss->value();
  return sum;
}

MicroBatchLoss micro_batch_loss(const AddedLosses& added, bool on_host) {
  MicroBatchLoss loss{.read = [added] { return StepTotals{.loss_sum = value_of(added)}; }, .add_to = {}};
  if (!on_host) {
    loss.add_to = [added](StepTotals* totals) {
      for (const std::shared_ptr<AddedLoss>& one : added) one->add_to(totals);
    };
  }
  return loss;
}

}  // namespace trireme::parallel
