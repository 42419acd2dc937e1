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

// The gradient reduction of one step: it listens to the backward pass of the last micro-batch and starts the reduction of
// each bucket as soon as its gradients are final, in an order that is the same on all ranks, while backward goes on. That order
// is the store's in the first step; from then on it is the one in which rank 0's first step completed the buckets. (Where the
// step is sharded it stays the store's.) It ends with the step's summary.
class Reduction final : public GradientListener {
 public:
  struct Place {
    std::int64_t number = 0;        // of the step
    std::int64_t steps_before = 0;  // that were finished
    int micro_batches = 1;
  };
  Reduction(const Replicas& replicas, Buckets& buckets, const Place& place);  // begins the buckets' step; collective

  int num_micro_batches() const { return place_.micro_batches; }
  bool has_listened() const { return listened_ > 0; }

  // Each micro-batch: after its tape is opened, before its forward pass (in a pipeline before its backward pass).
  void listen(Tape& tape);
  Losses& losses() { return losses_; }
  void request(const StepRequests& requests);

  // Waits for the buckets, see Step::finish.
  StepSummary finish();

  // finish() without the host waiting for a GPU: the numbers stay there (StepSummary::on_device; optim::read waits for them), a
  // step that is not finite is skipped by the optimizer, and replicas are not compared: DataParallel::exchange does that.
  // What a StepGraph can record. On the host, in a mesh with a pipeline or tensor axis and under fixed bits it is finish().
  StepSummary finish_on_device();

  // Of a step that is given up. What has begun is brought to its end: how far it has come depends on time, and the ranks must
  // go on alike.
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
