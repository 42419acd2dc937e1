#include "batch_norm_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fixtures.hpp"
#include "ops/reference_fixture.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/ops/array/transpose.hpp"
#include "trireme/trireme.hpp"

namespace trireme::tests {
namespace {

// This rank's rows of dim 0. Ranks have different numbers of rows: of three or more ranks the last has none.
Range share_of(std::int64_t count, const Group& world) {
  const int parts = world.size() < 3 ? world.size() : world.size() - 1;
  const auto bound = [&](int rank) { return count * std::min(rank, parts) / parts; };
  return {bound(world.rank()), bound(world.rank() + 1)};
}

// Every rank's rows, on every rank.
template <typename T>
Tensor<T> gathered(const Tensor<T>& rows, const Shape& shape, const Group& world) {
  const auto all = Tensor<T>::zeros(shape);
  const Range share = share_of(shape[0], world);
  std::copy_n(rows.data(), rows.numel(), all.narrow(share.begin, share.count()).data());
  world.all_reduce(all.span()).wait_on_host();
  return all;
}

// [batch, channels, ...] as [batch, ..., channels], and back.
Tensor<float> exchanged(const Tensor<float>& x) {
  Tensor<float> y(ops::transposed_shape(x.shape(), 1, 2));
  ops::transpose(x, 1, 2, y);
  return y;
}
Tensor<float> channels_last(const Tensor<float>& x) {
  return exchanged(x.reshape({x.dim(0), x.dim(1), x.numel() / (x.dim(0) * x.dim(1))}));
}

// The reference results for a whole batch, from ranks that hold shards of it.
void compare_fixture(const Fixture& reference, const Group& world, std::vector<std::string>& problems) {
  ops::OpFixture fixture(reference);
  const auto& hyper = fixture.hyper();
  const auto x = channels_last(fixture.input("x"));
  const auto upstream = channels_last(fixture.input("gout_out"));
  const Range share = share_of(x.dim(0), world);
  struct Net : nn::Module<Float32> {
    nn::BatchNorm2d<Float32> norm;
    explicit Net(const nn::BatchNormOptions& options) : norm(*this, "norm", options) {}
  } model({.channels = x.shape().back(), .momentum = hyper.at("momentum"), .epsilon = hyper.at("eps")});
  const auto fill = [&](const Tensor<float>& to, const std::string& name) {
    const auto from = fixture.input(name);
    std::copy_n(from.data(), from.numel(), to.data());
  };
  fill(model.norm.weight.value(), "weight");
  fill(model.norm.bias.value(), "bias");
  fill(model.norm.running_mean.value(), "running_mean");
  fill(model.norm.running_var.value(), "running_var");
  parallel::DataParallel replicas(model, ProcessMesh(world));
  model.train(hyper.at("training"));

  Tensor<float> dx;
  Variable<float> y;
  parallel::Step step = replicas.begin(0);
  step.backward(0, [&] {
    y = model.norm.forward(watch(x.narrow(share.begin, share.count()), [&](const Tensor<float>& gradient) { dx = gradient; }));
    return sum(multiply(y, Variable<float>(upstream.narrow(share.begin, share.count()))));
  });
  step.finish();
  replicas.gather_gradients();
  fixture.result("out", exchanged(gathered(y.value(), x.shape(), world)));
  fixture.result("grad_x", exchanged(gathered(dx, x.shape(), world)));
  fixture.result("grad_weight", model.norm.weight.gradient());
  fixture.result("grad_bias", model.norm.bias.gradient());
  fixture.result("new_running_mean", model.norm.running_mean.value());
  fixture.result("new_running_var", model.norm.running_var.value());
  for (const std::string& text : fixture.problems()) problems.push_back(reference.id() + ": " + text);
}

template <typename P>
struct Net : nn::Module<P> {
  using T = typename P::Compute;
  nn::Conv2d<P> first{*this, "first", {.in = 2, .out = 6, .kernel = 3, .padding = 1, .bias = false}};
  nn::BatchNorm2d<P> bn1{*this, "bn1", {.channels = 6}};
  nn::Conv2d<P> second{*this, "second", {.in = 6, .out = 6, .kernel = 1, .bias = false}};
  nn::BatchNorm2d<P> bn2{*this, "bn2", {.channels = 6}};
  nn::Linear<P> output{*this, "output", {.in = 6, .out = 3}};

  Variable<T> forward(const Tensor<typename P::Master>& x) const {
    const auto inner = bn1.forward_relu(first.forward(cast<T>(Variable<typename P::Master>(x))));
    return output.forward(flatten(adaptive_avg_pool2d(bn2.forward_add_relu(second.forward(inner), inner), 1)));
  }
};

// Losses of some steps and of an evaluation, then weights and running statistics.
template <typename P>
std::vector<double> train(const Group& world, int micro_batches, parallel::ParallelOptions options) {
  using M = typename P::Master;
  constexpr std::int64_t samples = 14;  // of a micro-batch; 3 and 4 ranks do not divide it
  Net<P> model;
  model.initialize({.seed = 4});
  options.loss_scale.enabled = false;  // no overflow, no step left out
  parallel::DataParallel replicas(model, ProcessMesh(world), options);
  optim::Sgd<P> optimizer(model, {.learning_rate = 0.1, .momentum = 0.9});
  std::vector<double> results;
  const auto loss_of = [&](std::int64_t step, int micro) {
    Tensor<M> x({samples, 2, 2, 2});
    Tensor<std::int32_t> targets({samples});
    for (std::int64_t index = 0; index < x.numel(); ++index) {
      x.data()[index] =
          static_cast<M>(philox_normal(5, static_cast<std::uint64_t>(10 * step + micro), static_cast<std::uint64_t>(index)));
    }
    for (std::int64_t row = 0; row < samples; ++row) targets.data()[row] = static_cast<std::int32_t>((row + step) % 3);
    const Range share = share_of(samples, world);
    auto loss = cross_entropy(model.forward(x.narrow(share.begin, share.count())), targets.narrow(share.begin, share.count()));
    loss.nominal_targets = samples;  // the same on all ranks
    return loss;
  };
  for (std::int64_t number = 0; number < 4; ++number) {
    parallel::Step step = replicas.begin(number, micro_batches);
    for (int micro = 0; micro < micro_batches; ++micro) step.backward(0, [&] { return loss_of(number, micro); });
    step.update(optimizer);
    results.push_back(step.finish().loss());
  }
  model.eval();
  auto sum = static_cast<double>(loss_of(9, 0).sum.value().item());
  world.all_reduce(std::span(&sum, 1)).wait_on_host();
  results.push_back(sum);
  for (const auto& plane : {model.store().template values<M>(), model.store().buffers().template values<M>()}) {
    results.insert(results.end(), plane.data(), plane.data() + plane.numel());
  }
  return results;
}

// `tolerance`: for another order of sums, and the rounding that follows from it.
template <typename P>
void compare_training(const Group& world, double tolerance, std::vector<std::string>& problems) {
  const Group alone = world.split(world.rank(), 0, "one rank");
  for (const int micro_batches : {1, 2}) {
    const auto expected = train<P>(alone, micro_batches, {});
    for (const auto sharding : {parallel::Sharding::none, parallel::Sharding::optimizer}) {
      for (const std::int64_t bucket_bytes : {1, 1 << 20}) {
        const auto got = train<P>(
            world, micro_batches,
            {.sharding = sharding, .buckets = {.bytes = bucket_bytes, .first_bytes = bucket_bytes, .slice_bytes = 2048}});
        double worst = 0;
        for (std::size_t index = 0; index < got.size(); ++index) {
          const double difference = std::abs(got[index] - expected[index]);
          if (!(difference <= worst)) worst = difference;
        }
        if (!(worst < tolerance)) {
          problems.push_back(fmt::format("{}, {} micro-batches, sharding {}, buckets of {} bytes: {} from the run on one rank",
                                         name_of(dtype_of<typename P::Compute>), micro_batches, static_cast<int>(sharding),
                                         bucket_bytes, worst));
        }
      }
    }
  }
}

// Each rank by its own rows: the running statistics are then the average of the ranks' own.
template <typename P>
void compare_averages(const Group& world, std::vector<std::string>& problems) {
  using T = typename P::Compute;
  struct Norm : nn::Module<P> {
    nn::BatchNorm1d<P> norm{*this, "norm", {.channels = 1}};
  } model;
  model.initialize({.seed = 1});
  parallel::DataParallel replicas(model, ProcessMesh(world), {.synchronize_batch_norm = false});
  const auto rank = static_cast<T>(world.rank());
  Variable<T> y;
  parallel::Step step = replicas.begin(0);
  step.backward(0, [&] {
    y = model.norm.forward(Variable<T>(Tensor<T>::from({2, 1}, std::vector{10 * rank, 10 * rank + 2})));
    return sum(y);
  });
  step.finish();
  const auto double_of = [](const auto& buffer) { return static_cast<double>(buffer.value().item()); };
  const double mean = double_of(model.norm.running_mean), var = double_of(model.norm.running_var);
  const double wanted_mean = 0.1 * (5.0 * (world.size() - 1) + 1), wanted_var = 0.9 + 0.1 * 2;
  const double tolerance = 20 * static_cast<double>(std::numeric_limits<T>::epsilon());
  if (std::abs(mean - wanted_mean) > tolerance || std::abs(var - wanted_var) > tolerance ||
      std::abs(y.value().data()[1] - 1) > T(1e-3)) {
    problems.push_back(fmt::format("unsynchronised, {}: running mean {} and variance {} instead of {} and {}",
                                   name_of(dtype_of<T>), mean, var, wanted_mean, wanted_var));
  }
}

}  // namespace

std::vector<std::string> batch_norm_problems(const Group& world) {
  std::vector<std::string> problems;
  if (refs_folder().has_value()) {
    for (const Fixture& fixture : fixtures_of_kind("op")) {
      if (fixture.index.at("op") == "batch_norm") compare_fixture(fixture, world, problems);
    }
  }
  compare_training<Float64>(world, 1e-11, problems);
  compare_training<Float32>(world, 1e-5, problems);
  compare_training<MixedBfloat16>(world, 1e-3, problems);
  compare_training<MixedFloat16>(world, 1e-3, problems);
  compare_averages<Float32>(world, problems);
  compare_averages<Float64>(world, problems);
  return problems;
}

}  // namespace trireme::tests
