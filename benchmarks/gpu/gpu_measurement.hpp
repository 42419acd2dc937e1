#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "trireme/autograd/step_graph.hpp"

// What the benchmarks of a GPU share.

// Prints what `benchmark` returns as one line of JSON, and errors on stderr. Returns what main does: 77 where there is no GPU.
int run_on_gpu(const std::function<nlohmann::ordered_json()>& benchmark);

// Medians by the GPU's clock.
struct CallTimes {
  double seconds = 0;      // from the end of a call's work to the end of the next one's
  double gpu_seconds = 0;  // from the start of a call's work to its end
};
CallTimes time_calls(int warm_up, int calls, const std::function<void()>& call);

struct Training {
  using Graph = trireme::StepGraph<float, trireme::Cuda>;

  trireme::FlatStore& store;
  Graph::Step step;
  std::vector<trireme::Tensor<std::int32_t>> inputs = {};
  std::string_view unit = {};  // "tokens"
  std::int64_t per_step = 0;   // so many of them
  int steps = 0;               // that are timed
};

// The same step without and with a StepGraph. The host gap is the share of a step's time in which the GPU has nothing to do:
// what the step takes beyond the GPU's time for a recorded one, which is null where none could be recorded.
nlohmann::ordered_json measure_training(const Training& training);
