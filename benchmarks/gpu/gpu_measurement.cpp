#include "gpu_measurement.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "device/cuda/stream.hpp"
#include "device/cuda/timed_event.hpp"
#include "measurement/measurement.hpp"
#include "trireme/comm/launch/launch.hpp"
#include "trireme/device/cuda.hpp"

using namespace trireme;

namespace {

constexpr int exit_skipped = 77;
constexpr int warm_up_steps = 10;  // for plans, the recorded step, and the GPU's clocks

struct TimedSteps {
  CallTimes times;
  bool recorded = false;
  double loss = 0;
  std::size_t memory_bytes = 0;  // in use on the GPU, by all processes
};

std::size_t used_memory_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  device::check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return total - free;
}

TimedSteps time_steps(const Training& training, bool recorded) {
  const TrainingSteps steps = training.begin(recorded);
  std::int64_t next = 0;
  const CallTimes times = time_calls(warm_up_steps, training.steps, [&] { steps.run(next++); });
  const TimedSteps result{
      .times = times, .recorded = steps.is_recorded(), .loss = steps.last_loss(), .memory_bytes = used_memory_bytes()};
  if (std::isfinite(result.loss)) return result;
  throw Error({.code = ErrorCode::diverged, .message = fmt::format("the loss after {} steps is {}", next, result.loss)});
}

nlohmann::ordered_json figures_of(const Training& training, const TimedSteps& steps, const std::optional<double>& gpu_seconds) {
  nlohmann::ordered_json figures{
      {"step_seconds", steps.times.seconds},
      {fmt::format("{}_per_second", training.unit), static_cast<double>(training.per_step) / steps.times.seconds},
      {"host_gap", nullptr},
      {"memory_bytes", steps.memory_bytes},
      {"loss", steps.loss}};
  if (gpu_seconds) figures["host_gap"] = 1 - *gpu_seconds / steps.times.seconds;
  return figures;
}

}  // namespace

int run_on_gpu(const std::function<nlohmann::ordered_json(const Group& world)>& benchmark) {
  try {
    device::require_cuda();
  } catch (const Error& error) {
    fmt::print(stderr, "skipped: {}\n", error.what());
    return exit_skipped;
  }
  return launch(BackendKind::thread, {.ranks = 1}, [&](const Group& world) {
    fmt::print("{}\n", benchmark(world).dump());
    return 0;
  });
}

CallTimes time_calls(int warm_up, int calls, const std::function<void()>& call) {
  for (int i = 0; i < warm_up; ++i) call();
  const auto count = static_cast<std::size_t>(calls);
  std::vector<device::TimedEvent> starts(count);
  std::vector<device::TimedEvent> ends(count + 1);
  const cudaStream_t stream = device::native_stream();
  ends[0].record(stream);
  for (std::size_t i = 0; i < count; ++i) {
    starts[i].record(stream);
    call();
    ends[i + 1].record(stream);
  }
  std::vector<double> seconds;
  std::vector<double> gpu_seconds;
  for (std::size_t i = 0; i < count; ++i) {
    seconds.push_back(ends[i + 1].seconds_since(ends[i]));
    gpu_seconds.push_back(ends[i + 1].seconds_since(starts[i]));
  }
  return {.seconds = median(seconds), .gpu_seconds = median(gpu_seconds)};
}

nlohmann::ordered_json measure_training(const Training& training) {
  const TimedSteps eager = time_steps(training, false);
  device::release_cached_cuda_memory();  // a recorded step has memory of its own
  const TimedSteps launched = time_steps(training, true);
  std::optional<double> gpu_seconds;
  if (launched.recorded) gpu_seconds = launched.times.gpu_seconds;
  nlohmann::ordered_json figures = figures_of(training, launched, gpu_seconds);
  figures["recorded"] = launched.recorded;
  figures["eager"] = figures_of(training, eager, gpu_seconds);
  figures["gpu"] = device::cuda_device(device::current_cuda_device()).name;
  return figures;
}
