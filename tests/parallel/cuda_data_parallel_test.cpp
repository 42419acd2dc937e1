#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/comm/nccl/gpu_group.hpp"
#include "trireme/models/architectures/gpt.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/model_context.hpp"
#include "trireme/testing/ranks.hpp"

// Ranks that are threads and share a GPU, against the same ranks on the CPU.
namespace {

using namespace trireme;

constexpr models::GptOptions model_options{.layers = 2, .heads = 4, .width = 64, .block = 32, .vocabulary = 96};
constexpr std::int64_t rows = 4;  // of a replica

struct Setup {
  int ranks = 2;
  int tensor = 1;
  parallel::ParallelOptions options = {};
  int micro_batches = ranks / tensor;  // of all replicas
};

Tensor<std::int32_t> random_tokens(std::int64_t step, int replica) {
  std::mt19937_64 generator(static_cast<std::uint64_t>(100 * step + replica));
  std::uniform_int_distribution<std::int32_t> token(0, static_cast<std::int32_t>(model_options.vocabulary) - 1);
  Tensor<std::int32_t> tokens({rows, model_options.block});
  for (std::int32_t& element : tokens.span()) element = token(generator);
  return tokens;
}

template <typename D>
Group group_of(const Group& threads) {
  if constexpr (Tensor<float, D>::on_host) {
    return threads;
  } else {
    return gpu_group(threads, GpuCollectives::staged);
  }
}

// A rank's part of a run.
template <typename P, typename D>
class Run {
 public:
  Run(const Group& world, const Setup& setup)
      : mesh_(world, {.tensor = setup.tensor}),
        model_(model_options, parallel::model_context(mesh_)),
        replicas_(initialized(model_), mesh_, setup.options),
        optimizer_(model_, {.learning_rate = 1e-3}),
        micro_batches_(setup.micro_batches / mesh_.data().size()) {}

  StepSummary step(std::int64_t number) {
    parallel::Step step = replicas_.begin(number, micro_batches_);
    for (int micro = 0; micro < micro_batches_; ++micro) {
      const int replica = mesh_.data().rank() * micro_batches_ + micro;
      const Tensor<std::int32_t> tokens = random_tokens(number, replica);
      step.backward(replica * rows, [&] { return model_.loss(tokens.to<D>(), tokens.to<D>()); });
    }
    step.update(optimizer_, {.clip_norm = 0.5});
    return step.finish();
  }

  void add_to(State& state) {
    replicas_.add_to(state);
    optimizer_.add_to(state);
  }

 private:
  static models::Gpt<P, D>& initialized(models::Gpt<P, D>& model) {
    model.initialize({.seed = 3});
    return model;
  }

  ProcessMesh mesh_;
  models::Gpt<P, D> model_;
  parallel::DataParallel replicas_;
  optim::AdamW<P, D> optimizer_;
  int micro_batches_;
};

// Loss and norm of each step, as rank 0 sees them.
template <typename P, typename D>
std::vector<double> train(const Setup& setup) {
  std::vector<double> result;
  testing::run_ranks(setup.ranks, [&](const Group& threads) {
    const Group world = group_of<D>(threads);
    Run<P, D> run(world, setup);
    for (std::int64_t number = 0; number < 6; ++number) {
      const StepSummary summary = run.step(number);
      if (world.rank() > 0) continue;
      result.push_back(summary.loss());
      result.push_back(summary.gradient_norm);
    }
  });
  return result;
}

void require_near(const std::vector<double>& got, const std::vector<double>& wanted, double tolerance) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i] == Approx(wanted[i]).epsilon(tolerance));
  }
}

}  // namespace

TEMPLATE_TEST_CASE("ranks with GPUs learn what ranks on the CPU learn", "", Float32, MixedBfloat16) {
  using parallel::Sharding;
  const double tolerance = std::is_same_v<TestType, Float32> ? 1e-4 : 2e-2;
  for (const Setup& setup : {Setup{.ranks = 1}, Setup{.options = {.sharding = Sharding::none, .buckets = {.bytes = 1 << 14}}},
                             Setup{.options = {.sharding = Sharding::optimizer, .buckets = {.bytes = 1 << 14}}},
                             Setup{.options = {.sum = parallel::FixedBits{.micro_batches = 4}}, .micro_batches = 4},
                             Setup{.ranks = 4, .tensor = 2}}) {
    CAPTURE(setup.ranks, setup.tensor, setup.micro_batches);
    require_near(train<TestType, Cuda>(setup), train<TestType, Cpu>(setup), tolerance);
  }
}

TEST_CASE("fixed bits are the same bits for any number of ranks with GPUs") {
  setenv("TRIREME_MATMUL_PLANS", "heuristic", 1);  // each rank would time for itself
  const auto by_ranks = [](int ranks) {
    return train<Float32, Cuda>(
        {.ranks = ranks, .options = {.sum = parallel::FixedBits{.micro_batches = 4}}, .micro_batches = 4});
  };
  CHECK(by_ranks(1) == by_ranks(2));
  CHECK(by_ranks(2) == by_ranks(4));
}

TEST_CASE("a run on GPUs goes on from a checkpoint, with another number of ranks too") {
  setenv("TRIREME_MATMUL_PLANS", "heuristic", 1);
  const tests::TemporaryFolder folder;
  const auto run = [&](const char* name, int ranks, std::int64_t first, std::int64_t end) {
    std::vector<double> losses;
    testing::run_ranks(ranks, [&](const Group& threads) {
      const Group world = group_of<Cuda>(threads);
      Run<Float32, Cuda> training(world, {.options = {.sum = parallel::FixedBits{.micro_batches = 2}}, .micro_batches = 2});
      checkpoint::Checkpoints checkpoints(world, {.directory = folder.path() / name});
      State state;
      training.add_to(state);
      if (first > 0) checkpoints.load(first, state);
      for (std::int64_t number = first; number < end; ++number) {
        const StepSummary summary = training.step(number);
        if (world.rank() == 0) losses.push_back(summary.loss());
      }
      State after;
      training.add_to(after);
      checkpoints.save(end, after);
      checkpoints.finish();
    });
    return losses;
  };
  const std::vector<double> whole = run("whole", 2, 0, 4);
  const std::vector<double> first = run("parts", 1, 0, 2);
  const std::vector<double> second = run("parts", 2, 2, 4);
  CHECK(std::vector<double>(whole.begin(), whole.begin() + 2) == first);
  CHECK(std::vector<double>(whole.begin() + 2, whole.end()) == second);
}
