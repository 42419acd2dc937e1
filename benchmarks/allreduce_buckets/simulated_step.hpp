#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backward.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/parallel/data_parallel.hpp"

// A training step without a model: DataParallel reduces the gradients of a simulated backward pass. By default the parameters
// are registered so that backward finishes their gradients in the order of the store.
class SimulatedStep {
 public:
  struct Options {
    trireme::parallel::ParallelOptions data_parallel;
    bool swap_halves = false;           // the store has the second half of the gradients first
    bool first_in_store_order = false;  // the first backward pass goes in the store's order
  };

  // Collective. `gradients` and `backward` outlive it.
  SimulatedStep(const trireme::Group& world, std::span<const GradientSize> gradients, const Backward& backward,
                const Options& options);
  ~SimulatedStep();
  SimulatedStep(SimulatedStep&&) noexcept;

  double run();                   // the slowest rank's seconds. Collective.
  double megabytes_sent() const;  // by this rank to other nodes in the last step
  const trireme::parallel::DataParallel& data_parallel() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A size in bytes: at least 1.
trireme::parallel::ParallelOptions buckets_of(double bytes);

// The median seconds of each step over interleaved rounds; each round begins with another step. Collective.
std::vector<double> time_steps(std::span<SimulatedStep> steps, int rounds);
