// Steps whose layers make several rows of each sample.
#include <utility>
#include <vector>

#include "catch.hpp"
#include "comm/expect.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/loss.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/nn/attention/encoder_layer.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/optim/sgd.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/step/step.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using namespace trireme::test;

namespace {

// Series of two channels, each of which is a row of its own from the first layer on.
struct Series {
  Tensor<float> x = {};  // [samples, channels, time]
  Tensor<float> y = {};  // [samples]
  std::int64_t first_sample = 0;
};
Series series_of(std::int64_t first, std::int64_t samples) {
  Series series{.x = Tensor<float>({samples, 2, 12}), .y = Tensor<float>({samples}), .first_sample = first};
  for (std::int64_t i = 0; i < series.x.numel(); ++i) {
    series.x.data()[i] = static_cast<float>(philox_normal(1, 3, static_cast<std::uint64_t>(first * 24 + i)));
  }
  for (std::int64_t i = 0; i < samples; ++i) series.y.data()[i] = static_cast<float>((first + i) % 5);
  return series;
}

struct ByChannel : nn::Module<Float32> {
  explicit ByChannel(double probability) : drops(probability) {}
  double drops;
  Linear patch{*this, "patch", {.in = 4, .out = 8}};
  TransformerEncoderLayer layer{*this, "layer", {.d_model = 8, .nhead = 2, .dim_feedforward = 16, .dropout = drops}};
  Linear head{*this, "head", {.in = 8, .out = 1}};

  Loss<float> loss(const Tensor<float>& x, const Tensor<float>& y) const {
    const auto rows_of_channels = patch.forward(reshape(Variable<float>(x), {-1, 3, 4}));
    const auto out = head.forward(layer.forward({.stream = rows_of_channels}, 3).settled().stream);
    return mse_loss(mean(reshape(out, {y.dim(0), -1}), {1}), y);
  }
};

// The losses of each step, over all ranks.
std::vector<double> losses_by_channel(int ranks, int micro_batches) {
  std::vector<double> losses(3);
  testing::run_ranks(ranks, [&](const Group& world) {
    ByChannel net(0.3);
    net.initialize({.seed = 4});
    parallel::DataParallel replicas(net, ProcessMesh(world));
    optim::Sgd<Float32> optimizer(net, {.learning_rate = 0.05});
    const std::int64_t samples = 8 / (world.size() * micro_batches);
    for (std::int64_t number = 0; number < 3; ++number) {
      parallel::Step step = replicas.begin(number, micro_batches);
      for (int micro = 0; micro < micro_batches; ++micro) {
        const Series batch = series_of(number * 8 + (world.rank() * micro_batches + micro) * samples, samples);
        step.backward(batch, [&] { return net.loss(batch.x, batch.y); });
      }
      step.update(optimizer);
      const double loss = step.finish().loss();
      if (world.rank() == 0) losses[static_cast<std::size_t>(number)] = loss;
    }
  });
  return losses;
}

}  // namespace

TEST_CASE("what is drawn for rows that a layer makes of samples does not depend on ranks and micro-batches") {
  const auto alone = losses_by_channel(1, 1);
  for (const auto& [ranks, micro_batches] : {std::pair(2, 1), std::pair(1, 4), std::pair(4, 2)}) {
    CAPTURE(ranks, micro_batches);
    const auto others = losses_by_channel(ranks, micro_batches);
    for (std::size_t step = 0; step < alone.size(); ++step) CHECK(others[step] == Approx(alone[step]).epsilon(1e-4));
  }
}

TEST_CASE("a batch says how many samples it has, or nothing is drawn for it") {
  testing::run_ranks(1, [](const Group& world) {
    ByChannel net(0.3);
    net.initialize();
    parallel::DataParallel replicas(net, ProcessMesh(world));
    const Series two = series_of(8, 2);
    const auto loss = [&] { return net.loss(two.x, two.y); };
    const auto fails = [&](const auto& batch) { return [&] { replicas.begin(0).backward(batch, loss); }; };
    struct Flat {
      Tensor<float> x = {};  // [samples * channels, time]
      Tensor<float> y = {};  // [samples]
      std::int64_t first_sample = 8;
    };
    const Flat flat{.x = two.x.reshape({4, 12}), .y = two.y};
    expect_error(ErrorCode::invalid_argument, fails(flat), "need the number of samples, which is not given");
    expect_error(ErrorCode::invalid_argument, fails(8), "layer.self_attn: dropout: random numbers for 4 rows");
    struct Said {
      std::int64_t samples = 2;
      Tensor<float> x = {};
      std::int64_t first_sample = 8;
    };
    const auto backward = [&](const auto& batch) {
      parallel::Step step = replicas.begin(0);
      step.backward(batch, loss);
      return step.finish().loss();
    };
    const double wanted = backward(two);
    CHECK(backward(Said{.x = flat.x}) == wanted);
    CHECK(backward(Range{8, 10}) == wanted);
    CHECK(backward(0) != wanted);  // other samples
  });
}

TEST_CASE("an argument that a layer refuses in a loss is told with the layer and the step") {
  testing::run_ranks(1, [](const Group& world) {
    ByChannel net(0);
    net.initialize();
    parallel::DataParallel replicas(net, ProcessMesh(world));
    const auto fails = [&] {
      replicas.begin(3).backward(0, [&] { return sum(net.layer.linear2.forward(Tensor<float>({2, 5}))); });
    };
    expect_error(ErrorCode::invalid_argument, fails, "layer.linear2: linear: x [2, 5] does not fit");
    expect_error(ErrorCode::invalid_argument, fails, "in the loss of step 3");
  });
}
