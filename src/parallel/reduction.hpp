#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "trireme/autograd/tape.hpp"
#include "trireme/parallel/data_parallel.hpp"

namespace trireme::parallel {

class BucketSums;
class SquareSum;

// The gradient reduction of one step: it listens to the backward pass of the last micro-batch and starts the reduction of
// each bucket as soon as its gradients are final, in an order that is the same on all ranks, while backward goes on. That order
// is the store's in the first step; from then on it is the one in which rank 0's first step completed the buckets. (Where the
// step is sharded it stays the store's.)
class Reduction final : public GradientListener {
 public:
  Reduction(DataParallel& owner, int micro_batches, std::unique_ptr<BucketSums> sums);
  ~Reduction() override;

  int num_micro_batches() const { return micro_batches_; }
  bool has_listened() const { return listened_ > 0; }

  // Each micro-batch: after its tape is opened, before its forward pass (in a pipeline before its backward pass).
  void listen(Tape& tape);
  void add(Step::MicroBatchLoss loss, std::int64_t nominal_targets);  // each micro-batch; in a pipeline on the last stage alone
  void add_of_stage(Step::MicroBatchLoss loss) { of_stages_.push_back(std::move(loss)); }  // on others: what layers add
  void request(const StepRequests& requests) {
    requests_.stop = requests_.stop || requests.stop;
    requests_.checkpoint = requests_.checkpoint || requests.checkpoint;
  }

  // Waits for the buckets, see Step::finish.
  StepSummary finish();

  // Of a step that is given up. What has begun is brought to its end: how far it has come depends on time, and the ranks must
  // go on alike.
  void give_up();

  // finish() without the host waiting for a GPU: the numbers stay there (StepSummary::on_device; optim::read waits for them), a
  // step that is not finite is skipped by the optimizer, and replicas are not compared: DataParallel::exchange does that.
  // What a StepGraph can record. On the host, in a mesh with a pipeline or tensor axis and under fixed bits it is finish().
  StepSummary finish_on_device();

 private:
  void on_final(int parameter) override;
  void launch_complete();
  void advance();
  bool reduced_over_replicas(std::size_t bucket, bool wait);
  struct Tied;
  bool sums_before_done(const Tied& tied, bool wait);
  void sum_tied(bool wait);
  bool sum_tied(Tied& tied, bool wait);
  void take_norms(bool wait);
  template <typename Wait>
  void count_waiting(const Wait& wait);
  void wait_for(Pending& pending);
  void wait_for_buckets();
  void launch_rest();
  void read_losses();
  StepSummary reduce_summary(bool on_device);
  void end();

  DataParallel& owner_;
  int micro_batches_;
  int listened_ = 0;
  bool finished_ = false;
  std::vector<Step::MicroBatchLoss> added_;  // by micro-batch
  std::vector<Step::MicroBatchLoss> of_stages_;
  StepRequests requests_ = {};
  std::vector<double> losses_;  // by micro-batch, once they are read
  double target_weight_ = 0;
  std::int64_t count_ = 0;    // targets of a micro-batch
  std::vector<int> missing_;  // final gradients, by bucket
  std::size_t next_bucket_ = 0;
  // Gradients that other stages, or the other ranks of an expert axis, have too: when they are reduced over the replicas, the
  // sums are added up, the same bits on all. So whatever the reductions make of them, the copies stay the same. The sums begin
  // in this order, which is the same on all ranks: first all over the expert axis, which need no other stage, by bucket; then
  // those over stages, in the order of the layout.
  struct Tied {
    const Collectives* ranks = nullptr;
    std::size_t bucket = 0;
    std::vector<Range> shared;  // within the bucket
    std::string name;
    std::vector<Pending> sums = {};
    bool begun = false;
    bool done = false;
  };
  std::vector<Tied> tied_;  // those that this rank holds
  std::int32_t finals_ = 0;
  std::vector<bool> used_;  // by parameter
  std::unique_ptr<BucketSums> sums_;
  // Where the step is sharded: the ranges before this one are reduced and in squares_.
  std::size_t next_norm_bucket_ = 0;
  std::size_t next_norm_range_ = 0;
  std::unique_ptr<SquareSum> squares_;  // of the reduced gradients
  double waited_seconds_ = 0;
};

}  // namespace trireme::parallel
