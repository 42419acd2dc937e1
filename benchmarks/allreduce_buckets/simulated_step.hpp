#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backward.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/parallel/data_parallel.hpp"

// A training step of no model: a simulated backward pass whose gradients DataParallel reduces. The parameters are registered so
// that backward finishes their gradients in the order of the store, unless told otherwise.
class SimulatedStep {
 public:
  struct Options {
    trireme::parallel::ParallelOptions data_parallel;
    bool swap_halves = false;           // of the gradients, in the store
    bool first_in_store_order = false;  // the first backward pass goes in that order
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

// Medians over interleaved rounds of each step's seconds; each round begins with another step. Collective.
std::vector<double> time_steps(std::span<SimulatedStep> steps, int rounds);
