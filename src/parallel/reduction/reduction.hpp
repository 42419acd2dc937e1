#pragma once

#include <cstdint>
#include <memory>

#include "parallel/reduction/buckets.hpp"
#include "parallel/reduction/gradient_norm.hpp"
#include "parallel/reduction/launched_buckets.hpp"
#include "parallel/reduction/losses.hpp"
#include "parallel/reduction/tied_sums.hpp"
#include "parallel/reduction/used_parameters.hpp"
#include "parallel/replicas/replicas.hpp"
#include "trireme/autograd/tape.hpp"

namespace trireme::parallel {

// The gradient reduction of one step. It listens to the backward pass of the last micro-batch and starts the reduction of each
// bucket when its gradients are final, in an order that is the same on all ranks, while backward goes on. The order is the
// store's in the first step and in sharded steps; otherwise the order in which rank 0 completed the buckets in the first step.
// It ends with the step's summary.
class Reduction final : public GradientListener {
 public:
  struct Place {
    std::int64_t number = 0;        // of the step
    std::int64_t steps_before = 0;  // finished steps before this one
    int micro_batches = 1;
  };
  Reduction(const Replicas& replicas, Buckets& buckets, const Place& place);  // begins a step of the buckets; collective

  int num_micro_batches() const { return place_.micro_batches; }
  bool has_listened() const { return listened_ > 0; }

  // Call it for each micro-batch after its tape is opened, before its forward pass (in a pipeline before its backward pass).
  void listen(Tape& tape);
  Losses& losses() { return losses_; }
  void request(const StepRequests& requests);

  // Waits for the buckets, see Step::finish.
  StepSummary finish();

  // finish() without waiting for the GPU, so that a StepGraph can record it. The numbers stay on the GPU
  // (StepSummary::on_device; optim::read waits for them), the optimizer skips a step that is not finite, and replicas are not
  // compared, which is left to DataParallel::exchange. For a store on the host, on a pipeline, tensor or expert axis and under
  // fixed bits it is finish().
  StepSummary finish_on_device();

  // Gives the step up. Completes the collectives that have begun: how far they are differs between ranks, whose later calls
  // must match.
  void give_up();

 private:
  void on_final(int parameter) override;
  void launch_complete();
  void advance();
  void launch_rest();
  StepSummary reduce_summary(bool on_device);
  void end();

  const Replicas& replicas_;
  Buckets& buckets_;
  Place place_;
  int listened_ = 0;
  bool finished_ = false;
  LaunchedBuckets launched_;
  TiedSums tied_;
  GradientNorm norm_;
  Losses losses_;
  UsedParameters used_;
  StepRequests requests_ = {};
};

}  // namespace trireme::parallel
