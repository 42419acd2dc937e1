#include "parallel/replicas/replica_comparison.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "device/fake_gpu_planes.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;

namespace {

// Some reads return a wrong value.
class FailingReads final : public test::FakeGpuPlanes {
 public:
  void read(const void* plane, void* there, std::size_t bytes) const override {
    FakeGpuPlanes::read(plane, there, bytes);
    if (seed == 0 || bytes == 0) return;
    const bool fails = philox_uniform(seed, 1, reads++) < 0.2;
    if (fails) static_cast<unsigned char*>(there)[0] ^= 4;
  }

  std::uint64_t seed = 0;  // 0: none fails
  mutable std::uint64_t reads = 0;
};

}  // namespace

TEST_CASE("replicas that differ for a moment only are an error on all ranks") {
  int passing = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    std::mutex mutex;
    std::vector<std::string> errors;
    testing::run_ranks(3, [&](const Group& world) {
      FailingReads planes;
      FlatStore store(DType::float32, DType::float32, planes);
      for (const std::int64_t numel : {300, 70, 5})
        store.add("weight" + std::to_string(numel), {numel}, Initializer::normal(0, 1));
      store.initialize<float>(7);
      if (world.rank() == 1) planes.seed = seed;
      const parallel::ReplicaComparison comparison(store, ProcessMesh(world), 1, true);
      parallel::SummaryFields fields;
      comparison.add_all_to(fields, 4, world);
      fields.reduce(world, ReduceOp::sum, "digests").wait_on_host();
      try {
        fields.read();
      } catch (const Error& error) {
        const std::lock_guard lock(mutex);
        if (error.code() == ErrorCode::diverged) errors.emplace_back(error.what());
      }
    });
    CHECK((errors.empty() || errors.size() == 3));
    for (const std::string& error : errors) {
      CHECK(error.substr(0, 60) == errors.front().substr(0, 60));
      passing += error.find("one of ranks 0, 1, 2 read or computed something else for a moment") != std::string::npos ? 1 : 0;
    }
  }
  CHECK(passing > 30);
}

TEST_CASE("a model of which nothing is trainable goes through its steps, whatever is asked for its gradients") {
  using parallel::ParallelOptions;
  const auto compressed = [](parallel::HookFactory hook, bool only_if_faster) {
    return ParallelOptions{
        .sum = parallel::Hooked{
            {.hook = std::move(hook), .only_if_faster = only_if_faster, .between = parallel::CompressionBetween::ranks}}};
  };
  const std::vector<std::function<ParallelOptions()>> all{
      [] { return ParallelOptions{}; },
      [] { return ParallelOptions{.sharding = parallel::Sharding::optimizer}; },
      [] { return ParallelOptions{.sum = parallel::Plain{.tuning = {.on = true}}, .sharding = parallel::Sharding::none}; },
      [&] { return compressed(parallel::int8_hook(), true); },
      [&] { return compressed(parallel::power_sgd_hook(), false); },
  };
  for (const auto& options : all) {
    testing::run_ranks(2, [&](const Group& world) {
      struct Frozen : nn::Module<Float32> {
        nn::Linear<Float32> fc{*this, "fc", {.in = 3, .out = 4}};
      } model;
      model.fc.weight.freeze();
      model.fc.bias.freeze();
      model.initialize({.seed = 1});
      parallel::DataParallel replicas(model, ProcessMesh(world), options());
      for (int number = 0; number < 30; ++number) {
        int gradients = 0;  // of x: what else the backward pass is for
        parallel::Step step = replicas.begin(number);
        step.backward(0, [&] {
          const auto x = watch(Tensor<float>::full({2, 3}, 1), [&](const Tensor<float>&) { ++gradients; });
          return mse_loss(model.fc.forward(x), Tensor<float>::zeros({2, 4}));
        });
        const StepSummary& summary = step.finish();
        require(gradients == 1, "{} gradients of x", gradients);
        require(summary.gradient_norm == 0 && summary.target_weight == 16, "a norm of {}, {} targets", summary.gradient_norm,
                summary.target_weight);
      }
      require(!replicas.tuning(), "buckets of nothing were tuned");
      const auto decision = replicas.compression_decision();
      require(!decision || (!decision->on && decision->text.ends_with("no gradient")), "{}", decision ? decision->text : "");
    });
  }
}
