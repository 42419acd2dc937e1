// Bit-identical training: the weights after 20 steps have the digest of one rank alone, for any number of ranks, bucket size,
// backend and division into nodes, whether ranks share the update or not.
//   fixed_reduction_runs thread | mpi       (under mpirun)

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <set>

#include "trireme/core/philox.hpp"
#include "trireme/files/digest.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

constexpr int all_micro_batches = 4;
constexpr int rows = 2;  // of a micro-batch
constexpr std::int64_t block = 12;
constexpr std::int64_t vocabulary = 40;
constexpr std::array<std::int64_t, 6> bucket_bytes = {1, 1 << 10, 10'000, 1 << 16, 1 << 20, 25 << 20};

Tensor<std::int32_t> tokens_of(std::int64_t first_sample, std::int64_t shift) {
  Tensor<std::int32_t> tokens({rows, block});
  for (std::int64_t i = 0; i < tokens.numel(); ++i) {
    const auto at = static_cast<std::uint64_t>(first_sample * (block + 1) + i / block * (block + 1) + i % block + shift);
    tokens.data()[i] = static_cast<std::int32_t>(at * at * 2654435761U >> 7) % vocabulary;
    if (tokens.data()[i] < 0) tokens.data()[i] += vocabulary;
  }
  return tokens;
}

struct Run {
  std::int64_t bucket_bytes;
  int steps = 20;
  bool tune = false;  // the buckets, in more than 30 steps
  parallel::Sharding sharding = parallel::Sharding::none;
};

std::uint64_t train(const Group& group, const Run& run) {
  models::Gpt<Float32> model({.layers = 2, .heads = 2, .width = 32, .block = block, .vocabulary = vocabulary, .dropout = 0.1},
                             ModelContext{.seed = 5});
  model.initialize();
  parallel::DataParallel replicas(model, ProcessMesh(group),
                                  {.sum = parallel::FixedBits{.micro_batches = all_micro_batches, .tuning = {.on = run.tune}},
                                   .sharding = run.sharding,
                                   .buckets = {.bytes = run.bucket_bytes,
                                               .first_bytes = run.bucket_bytes,
                                               .slice_bytes = std::clamp<std::int64_t>(run.bucket_bytes, 1 << 10, 1 << 16)}});
  optim::AdamW<Float32> optimizer(model, {.learning_rate = 1e-2});
  const int micro_batches = all_micro_batches / group.size();
  for (std::int64_t number = 0; number < run.steps; ++number) {
    parallel::Step step = replicas.begin(number, micro_batches);
    for (int micro = 0; micro < micro_batches; ++micro) {
      const std::int64_t first = (number * all_micro_batches + group.rank() * micro_batches + micro) * rows;
      step.backward(Range{first, first + rows}, [&] { return model.loss(tokens_of(first, 0), tokens_of(first, 1)); });
    }
    step.update(optimizer, {.clip_norm = 0.5});
  }
  require(replicas.tuning().has_value() == (run.tune && group.size() > 1), "tuning has come to an end");
  std::uint64_t sum = 0;
  auto& store = model.store();
  for (int index = 0; index < store.num_parameters(); ++index) {
    sum += digest<float>(store.parameter(index).name, std::span<const float>(store.values<float>(index).span()));
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  std::set<std::uint64_t> digests;
  std::set<std::uint64_t> tuned;
  std::mutex mutex;
  const auto train_one = [&](const Group& group, std::set<std::uint64_t>& into, const Run& run) {
    const std::uint64_t digest = train(group, run);
    const std::lock_guard lock(mutex);
    into.insert(digest);
  };
  const auto run = [&](const Group& group) {
    for (const auto sharding : {parallel::Sharding::none, parallel::Sharding::optimizer}) {
      for (const std::int64_t bucket : bucket_bytes) {
        train_one(group, digests, {.bucket_bytes = bucket, .sharding = sharding});
      }
      for (const bool tune : {false, true}) {
        train_one(group, tuned, {.bucket_bytes = 1 << 16, .steps = 32, .tune = tune, .sharding = sharding});
      }
    }
    return 0;
  };
  const auto all_equal = [&] {
    if (digests.size() == 1 && tuned.size() == 1) return true;
    fmt::print(stderr, "{} and {} different digests\n", digests.size(), tuned.size());
    return false;
  };
  if (argc > 1 && parse_backend(argv[1]) == BackendKind::thread) {
    for (const int ranks : {1, 2, 4}) {
      if (launch(BackendKind::thread, {.ranks = ranks, .threads_per_rank = 1}, run) != 0) return 1;
    }
    return all_equal() ? 0 : 1;
  }
  return launch(BackendKind::mpi, {.threads_per_rank = 1}, [&](const Group& world) {
    const Group alone = world.split(world.rank(), 0, "alone");
    train_one(alone, digests, {.bucket_bytes = bucket_bytes.back()});
    train_one(alone, tuned, {.bucket_bytes = 1 << 16, .steps = 32});
    run(world);
    if (world.size() == 4) run(world.split(world.rank() / 2, world.rank(), "half"));
    std::int64_t different = all_equal() ? 0 : 1;
    world.all_reduce(std::span(&different, 1)).wait_on_host();
    return different == 0 ? 0 : 1;
  });
}
