#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <vector>

#include "checkpoint/simulated_file_system.hpp"
#include "faults/rows.hpp"
#include "parallel/silent_corruption_runs.hpp"
#include "trireme/testing/ranks.hpp"
#include "trireme/trireme.hpp"

namespace trireme::tests {
namespace {

using Faults = std::vector<SilentFault> (*)(int ranks, Culprits culprits);

void attempt_all(Row& row, Faults faults, Extent extent) {
  const bool full = extent == Extent::full;
  const std::vector<int> sizes = full ? std::vector{2, 3, 4, 6, 8} : std::vector{2, 3, 4};
  for (const int ranks : sizes) {
    for (const SilentFault& fault : faults(ranks, full ? Culprits::every : Culprits::one)) {
      row.attempt(fault.what, [&] { testing::run_ranks(ranks, fault.expect_found); });
    }
  }
}

struct Net : nn::Module<Float32> {
  nn::Embedding<Float32> embedding{*this, "embedding", {.rows = 128, .width = 8}};
  nn::Linear<Float32> output{*this, "output", {.in = 8, .out = 128}};
};

constexpr std::int64_t batch = 8;
constexpr std::int64_t all_steps = 15;
constexpr std::int64_t length = 1;  // a window is a token and the next: its token tells the sample

// From the newest checkpoint on for some steps; which windows the ranks read. Collective.
std::vector<std::int32_t> train(const Group& world, const std::shared_ptr<test::SimulatedFileSystem>& files,
                                const data::TokenDataset& dataset, std::int64_t num_steps) {
  Net net;
  net.initialize();
  parallel::DataParallel replicas(net, ProcessMesh(world));
  optim::AdamW<Float32> optimizer(net, {.learning_rate = 0.01});
  State state;
  replicas.add_to(state);
  optimizer.add_to(state);
  checkpoint::Checkpoints checkpoints(world, {.directory = "/run", .file_system = files});
  const auto loaded = checkpoints.load_newest(state);
  std::int64_t number = loaded ? loaded->step : 0;
  const data::WindowLoader loader(
      dataset, {.batch = {.batch_size = batch, .micro_batch_size = 1, .seed = 5, .index = world.rank(), .count = world.size()},
                .length = length,
                .order = data::WindowOrder::shuffled});
  std::vector<std::int32_t> read;
  for (const std::int64_t end = std::min(number + num_steps, all_steps); number < end; ++number) {
    parallel::Step step = replicas.begin(number, static_cast<int>(loader.num_micro_batches()));
    for (std::int64_t micro_batch = 0; micro_batch < loader.num_micro_batches(); ++micro_batch) {
      const data::TokenBatch tokens = loader.load(number, micro_batch);
      read.insert(read.end(), tokens.tokens.span().begin(), tokens.tokens.span().end());
      step.backward(tokens,
                    [&] { return cross_entropy(net.output.forward(net.embedding.forward(tokens.tokens)), tokens.targets); });
    }
    step.update(optimizer);
  }
  checkpoints.save(number, state);
  checkpoints.finish();
  return read;
}

}  // namespace

Row inject_non_finite(Extent extent) {
  Row row("overflow",
          "inf or nan on one rank of a data x pipeline x tensor mesh: all leave out the step, the state keeps its bits");
  attempt_all(row, steps_that_are_not_finite, extent);
  return row;
}

Row turn_bits(Extent extent) {
  Row row("divergence",
          "one bit of one replica's values turned over: found within K = 1 or 3 steps, on all ranks, with its rank");
  attempt_all(row, turned_bits, extent);
  return row;
}

Row change_ranks(Extent extent) {
  Row row("samples", "an epoch in pieces on 1, 2 and 4 ranks, through checkpoints: each sample exactly once");
  std::string bytes;
  for (std::int64_t token = 0; token <= batch * all_steps; ++token) bytes += static_cast<char>(token);
  const auto dataset = data::TokenDataset::from_bytes(bytes);
  std::vector<std::vector<int>> orders{{1, 2, 4}};
  if (extent == Extent::full) orders.insert(orders.end(), {{4, 2, 1}, {2, 4, 2}, {2, 1, 4}, {4, 1, 4, 2}});
  for (const std::vector<int>& sizes : orders) {
    row.attempt(fmt::format("{} ranks", fmt::join(sizes, ", ")), [&] {
      const auto files = std::make_shared<test::SimulatedFileSystem>();
      std::multiset<std::int32_t> samples;
      for (std::size_t piece = 0; piece < sizes.size(); ++piece) {
        const std::int64_t num_steps = piece + 1 < sizes.size() ? 4 : all_steps;
        std::vector<std::vector<std::int32_t>> read(static_cast<std::size_t>(sizes[piece]));
        testing::run_ranks(sizes[piece], [&](const Group& world) {
          read[static_cast<std::size_t>(world.rank())] = train(world, files, dataset, num_steps);
        });
        for (const auto& of_rank : read) samples.insert(of_rank.begin(), of_rank.end());
      }
      for (std::int32_t sample = 0; sample < batch * all_steps; ++sample) {
        require(samples.count(sample) == 1, "sample {} was drawn {} times", sample, samples.count(sample));
      }
      require(std::ssize(samples) == batch * all_steps, "{} samples were drawn", samples.size());
    });
  }
  return row;
}

}  // namespace trireme::tests
