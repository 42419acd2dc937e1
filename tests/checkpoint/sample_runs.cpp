#include "checkpoint/sample_runs.hpp"

#include <utility>

#include "checkpoint/layouts.hpp"

namespace trireme::test {

using checkpoint::Checkpoints;

checkpoint::CheckpointOptions options_on(std::shared_ptr<SimulatedFileSystem> system, bool asynchronous) {
  return {.directory = "/run", .keep = 2, .asynchronous = asynchronous, .chunk_bytes = 256, .file_system = std::move(system)};
}

void save_sample(const Group& world, const std::shared_ptr<SimulatedFileSystem>& system, int layout, std::int64_t step) {
  SampleState sample(world.rank(), world.size(), layout);
  sample.fill(static_cast<std::uint64_t>(step));
  Checkpoints checkpoints(world, options_on(system));
  checkpoints.save(step, sample.state(), {{"seed", "1"}});
}

std::string load_difference(const Group& world, const std::shared_ptr<SimulatedFileSystem>& system, int layout,
                            std::int64_t step) {
  SampleState sample(world.rank(), world.size(), layout);
  sample.fill(99);
  Checkpoints checkpoints(world, options_on(system));
  const auto loaded = checkpoints.load_newest(sample.state());
  if (!loaded || loaded->step != step) return "another step";
  return sample.difference(static_cast<std::uint64_t>(step));
}

}  // namespace trireme::test
