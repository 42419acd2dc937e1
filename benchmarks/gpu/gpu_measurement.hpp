#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "trireme/comm/base/group.hpp"
#include "trireme/parallel/step_graph.hpp"

// Code that the benchmarks for a GPU share.

// Runs `benchmark` as the only rank of a world, prints its result as one line of JSON, and errors on stderr. Returns the exit
// code of the program: 77 where there is no GPU.
int run_on_gpu(const std::function<nlohmann::ordered_json(const trireme::Group& world)>& benchmark);

// Medians by the GPU's clock.
struct CallTimes {
  double seconds = 0;      // from the end of a call's work to the end of the next one's
  double gpu_seconds = 0;  // from the start of a call's work to its end
};
CallTimes time_calls(int warm_up, int calls, const std::function<void()>& call);

// The steps of one StepGraph.
struct TrainingSteps {
  std::function<void(std::int64_t number)> run;
  std::function<bool()> is_recorded;
  std::function<double()> last_loss;
};

// Steps with these inputs; recorded: launched as a graph, if the step can be recorded.
template <typename... Elements>
TrainingSteps steps_of(bool recorded, trireme::parallel::DataParallel& replicas,
                       const typename trireme::parallel::StepGraph<trireme::Cuda, Elements...>::Body& body,
                       const trireme::Tensor<Elements>&... inputs) {
  using Graph = trireme::parallel::StepGraph<trireme::Cuda, Elements...>;
  const auto graph = std::make_shared<Graph>(replicas, body, trireme::parallel::StepGraphOptions{.enabled = recorded});
  return {.run = [graph, inputs...](std::int64_t number) { graph->run({.number = number}, inputs...); },
          .is_recorded = [graph] { return graph->is_recorded(); },
          .last_loss = [graph] { return graph->last_result().loss; }};
}

struct Training {
  std::function<TrainingSteps(bool recorded)> begin;
  std::string_view unit = {};  // "tokens"
  std::int64_t per_step = 0;   // how many units a step has
  int steps = 0;               // how many are timed
};

// The same step without and with a StepGraph. The host gap is the share of a step's time in which the GPU is idle: the time
// beyond the GPU's time for a recorded step. It is null where no step could be recorded.
nlohmann::ordered_json measure_training(const Training& training);
