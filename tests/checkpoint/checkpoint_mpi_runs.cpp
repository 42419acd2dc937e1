// Checkpoints of processes on a real file system, in a folder below the current one. Layouts load the checkpoints of other
// layouts, and groups of fewer ranks those of all ranks.

#include <fmt/format.h>

#include <filesystem>

#include "checkpoint/layouts.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/comm/launch/launch.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;
using checkpoint::Checkpoints;

namespace {

void save(const Group& world, const std::filesystem::path& folder, int layout, std::int64_t step) {
  test::SampleState sample(world.rank(), world.size(), layout);
  sample.fill(static_cast<std::uint64_t>(step));
  Checkpoints checkpoints(world, {.directory = folder, .keep = 2, .chunk_bytes = 512});
  checkpoints.save(step, sample.state());
  sample.fill(99);
  require(checkpoints.finish() == step, "step {} is committed", step);
}

void load(const Group& group, const std::filesystem::path& folder, int layout, std::int64_t step) {
  test::SampleState sample(group.rank(), group.size(), layout);
  sample.fill(99);
  Checkpoints checkpoints(group, {.directory = folder});
  const auto loaded = checkpoints.load_newest(sample.state());
  require(loaded && loaded->step == step, "step {} is the newest", step);
  const std::string difference = sample.difference(static_cast<std::uint64_t>(step));
  require(difference.empty(), "layout {} on {} ranks: {}", layout, group.size(), difference);
}

}  // namespace

int main() {
  return launch(BackendKind::mpi, {}, [&](const Group& world) {
    const std::filesystem::path folder = fmt::format("checkpoints_{}_{}", world.size(), world.nodes().size());
    if (world.rank() == 0) std::filesystem::remove_all(folder);
    world.barrier();
    std::int64_t step = 0;
    for (int layout = 0; layout < 7; ++layout) {
      save(world, folder, layout, ++step);
      for (int other = 0; other < 7; ++other) load(world, folder, other, step);
      const Group some = world.split(world.rank() % 2, world.rank(), "some");
      if (world.rank() % 2 == 0) load(some, folder, layout + 1, step);
      world.barrier();
    }
    require(checkpoint::committed_steps(folder) == std::vector<std::int64_t>{6, 7}, "two are kept");
    world.barrier();
    if (world.rank() == 0) std::filesystem::remove_all(folder);
    return 0;
  });
}
