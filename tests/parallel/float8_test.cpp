#include <mutex>

#include "catch.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/nn/norm/normalization.hpp"
#include "trireme/optim/sgd.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/testing/ranks.hpp"

// What delayed scaling keeps, on many ranks, between the running statistics of batch norm.
using namespace trireme;

namespace {

struct Net : nn::Module<MixedBfloat16> {
  nn::Linear<MixedBfloat16> first{*this, "first", {.in = 16, .out = 32, .fp8 = Float8Scaling::delayed, .fp8_amax_history = 2}};
  nn::BatchNorm1d<MixedBfloat16> norm{*this, "norm", {.channels = 32}};
  nn::Linear<MixedBfloat16> second{*this, "second", {.in = 32, .out = 16, .fp8 = Float8Scaling::delayed}};

  Variable<bfloat16> forward(const Variable<bfloat16>& x) const { return second.forward(norm.forward(first.forward(x))); }
};

// The largest element is 1 + rank + 2 * step.
Tensor<bfloat16> rows(std::int64_t step, int rank) {
  Tensor<bfloat16> x({16, 16});
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    x.data()[i] = bfloat16(static_cast<float>(i % 15 + 1) / 15 * static_cast<float>(1 + rank + 2 * step));
  }
  return x;
}

std::vector<float> trained_buffers(Net& model, const Group& world, bool synchronize_batch_norm) {
  constexpr int steps = 3;
  model.initialize({.seed = 1});
  parallel::DataParallel replicas(model, ProcessMesh(world),
                                  {.synchronize_batch_norm = synchronize_batch_norm, .check_replicas = 1});
  optim::Sgd<MixedBfloat16> optimizer(model, {.learning_rate = 0.1});
  for (std::int64_t number = 0; number < steps; ++number) {
    parallel::Step step = replicas.begin(number);
    step.backward(0, [&] { return mse_loss(model.forward(rows(number, world.rank())), Tensor<float>::full({16, 16}, 0.5F)); });
    step.update(optimizer);
  }
  const auto buffers = model.store().buffers().values<float>();
  return {buffers.data(), buffers.data() + buffers.numel()};
}

}  // namespace

TEST_CASE("delayed scaling looks at the largest elements of all ranks") {
  for (const bool synchronize_batch_norm : {true, false}) {
    CAPTURE(synchronize_batch_norm);
    std::mutex mutex;
    std::vector<std::vector<float>> replicas;
    testing::run_ranks(2, [&](const Group& world) {
      Net model;
      const auto buffers = trained_buffers(model, world, synchronize_batch_norm);
      const std::lock_guard lock(mutex);
      replicas.push_back(buffers);
    });
    CHECK(replicas[0] == replicas[1]);
    const Net model;
    const BufferPlane& buffers = model.store().buffers();
    const auto of_x = static_cast<std::size_t>(buffers.info(buffers.find("first.fp8_amaxes_of_x")).offset);
    CHECK(replicas[0][of_x] == 6);      // of rank 1 in step 2
    CHECK(replicas[0][of_x + 1] == 4);  // in step 1
  }
}

TEST_CASE("delayed scaling and fixed bits exclude each other") {
  testing::run_ranks(1, [](const Group& world) {
    Net model;
    CHECK_THROWS_WITH(parallel::DataParallel(model, ProcessMesh(world), {.sum = parallel::FixedBits{.micro_batches = 2}}),
                      ContainsSubstring("first.fp8_amaxes_of_x") && ContainsSubstring("current scaling"));
  });
}
