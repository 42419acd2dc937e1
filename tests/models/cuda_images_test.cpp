#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "catch.hpp"
#include "models/cuda_compare.hpp"
#include "trireme/models/architectures/cnn.hpp"
#include "trireme/models/architectures/gan.hpp"
#include "trireme/models/architectures/resnet.hpp"
#include "trireme/optim/adam.hpp"
#include "trireme/optim/sgd.hpp"
#include "trireme/parallel/step_graph.hpp"
#include "trireme/testing/ranks.hpp"

// Models of images on the GPU against the same ones on the CPU, which other tests compare with PyTorch. They are compared in
// double, where no rounding decides a ReLU otherwise; in bfloat16 they stay close for a while.
using namespace trireme;
using namespace trireme::tests;

namespace {

const models::CnnOptions small_cnn{.image = {12, 8}, .channels = 3, .first = 8, .second = 12, .hidden = 16, .dropout = 0.1};
const models::ResNetOptions small_resnet{.stem = models::ResNetOptions::Stem::imagenet, .widths = {16, 24}, .blocks = {1, 2}};
const models::ResNetOptions bottlenecks{.block = models::ResNetOptions::Block::bottleneck, .widths = {8, 16}, .blocks = {1, 1}};
const models::DcGanOptions small_gan{.image = {8, 12}, .channels = 3, .latent = 5, .features = 8};

template <typename T>
Tensor<T> random_tensor(const Shape& shape, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  Tensor<T> tensor(shape);
  std::ranges::generate(tensor.span(), [&] { return static_cast<T>(normal(generator)); });
  return tensor;
}

Tensor<std::int32_t> random_labels(std::int64_t count, std::uint32_t seed) {
  std::mt19937 generator(seed);
  return random_tokens({count}, 10, generator);
}

StepSummary summary_of(FlatStore& store, double loss) {
  return {
      .loss_sum = loss, .target_weight = 1, .used = std::vector<bool>(static_cast<std::size_t>(store.num_parameters()), true)};
}

std::vector<double> weights_and_statistics(FlatStore& store, auto master, auto device) {
  using M = decltype(master);
  using D = decltype(device);
  const Tensor<M> weights = store.values<M, D>().template to<Cpu>();
  const Tensor<M> statistics = store.buffers().values<M, D>().template to<Cpu>();
  std::vector<double> all(weights.data(), weights.data() + weights.numel());
  all.insert(all.end(), statistics.data(), statistics.data() + statistics.numel());
  return all;
}

// The results of a training run: its losses, then weights and running statistics at its end.
struct Run {
  std::vector<double> losses;
  std::vector<double> state;
};

template <template <typename, typename> typename Model, typename P, typename D, typename Options>
Run train_classifier(const Options& options, const Shape& images, int steps) {
  using M = typename P::Master;
  Model<P, D> model(options);
  model.initialize({.seed = 1});
  optim::Sgd<P, D> optimizer(model, {.learning_rate = 0.02, .momentum = 0.9});
  Run run;
  for (int step = 0; step < steps; ++step) {
    const auto seed = static_cast<std::uint32_t>(step);
    Tape tape({.seed = 3, .step = seed});
    const auto loss =
        model.loss(random_tensor<M>(images, seed).template to<D>(), random_labels(images[0], seed).template to<D>());
    loss.backward();
    run.losses.push_back(loss.mean());
    optimizer.step(summary_of(model.store(), run.losses.back()));
  }
  model.eval();
  const Tensor<M, D> batch = random_tensor<M>(images, 99).template to<D>();
  run.losses.push_back(model.loss(batch, random_labels(images[0], 99).template to<D>()).mean());
  run.state = weights_and_statistics(model.store(), M{}, D{});
  return run;
}

// Steps of a StepGraph, one of them on images that are not finite: it leaves weights and running statistics as they were.
Run train_by_graph(const Group& world, bool recorded) {
  using P = Float32;
  models::ResNet<P, Cuda> model(small_resnet);
  model.initialize();
  parallel::DataParallel replicas(model, ProcessMesh(world));
  optim::Sgd<P, Cuda> optimizer(model, {.learning_rate = 0.02, .momentum = 0.9});
  parallel::StepGraph<Cuda, float, std::int32_t> graph(
      replicas,
      [&](parallel::Step& step, const auto& place, const auto& images, const auto& labels) {
        step.backward(place.first_sample, [&] { return model.loss(images, labels); });
        step.update(optimizer, {.clip_norm = 1});
      },
      {.enabled = recorded});
  Run run;
  for (std::uint32_t number = 0; number < 6; ++number) {
    Tensor<float> images = random_tensor<float>({4, 32, 32, 3}, number);
    const bool skipped = number == 4;
    if (skipped) images.data()[7] = std::numeric_limits<float>::infinity();
    const auto before = weights_and_statistics(model.store(), float{}, Cuda{});
    graph.run({.number = number, .first_sample = 4 * number}, images, random_labels(4, number));
    run.losses.push_back(graph.last_result().loss);
    CHECK(std::isfinite(run.losses.back()) != skipped);
    CHECK((weights_and_statistics(model.store(), float{}, Cuda{}) == before) == skipped);
    if (skipped) run.losses.pop_back();
  }
  CHECK(graph.is_recorded() == recorded);
  CHECK(optimizer.skipped_steps() == 1);
  run.state = weights_and_statistics(model.store(), float{}, Cuda{});
  return run;
}

// A generator against a discriminator.
template <typename P, typename D>
Run train_gan(int steps) {
  using M = typename P::Master;
  models::DcGenerator<P, D> generator(small_gan);
  models::DcDiscriminator<P, D> discriminator(small_gan);
  generator.initialize({.seed = 1});
  discriminator.initialize({.seed = 2});
  optim::Adam<P, D> of_generator(generator, {.learning_rate = 1e-3});
  optim::Adam<P, D> of_discriminator(discriminator, {.learning_rate = 1e-3});
  Run run;
  for (int step = 0; step < steps; ++step) {
    const auto seed = static_cast<std::uint32_t>(step);
    const Tensor<M, D> latent = random_tensor<M>({6, small_gan.latent}, seed).template to<D>();
    const auto learn = [&](auto& optimizer, FlatStore& store, const auto& loss_of) {
      Tape tape({.seed = 3, .step = seed});
      const auto loss = loss_of();
      loss.backward();
      run.losses.push_back(loss.mean());
      optimizer.step(summary_of(store, run.losses.back()));
    };
    learn(of_discriminator, discriminator.store(), [&] {
      const Variable<M, D> real(random_tensor<M>({6, 8, 12, 3}, 50 + seed).template to<D>());
      return models::discriminator_loss(discriminator, cast<typename P::Compute>(real), generator.images(latent));
    });
    learn(of_generator, generator.store(), [&] { return models::generator_loss(discriminator, generator.images(latent)); });
  }
  run.state = weights_and_statistics(generator.store(), M{}, D{});
  return run;
}

void require_alike(const Run& got, const Run& expected, double tolerance) {
  REQUIRE(got.losses.size() == expected.losses.size());
  for (std::size_t i = 0; i < got.losses.size(); ++i) {
    CAPTURE(i);
    CHECK(got.losses[i] == Approx(expected.losses[i]).epsilon(tolerance));
  }
  CHECK(distance(got.state, expected.state) < tolerance);
}

template <typename P>
double tolerance() {
  return std::is_same_v<P, Float64> ? 1e-8 : 5e-2;
}

}  // namespace

TEMPLATE_TEST_CASE("a CNN on the GPU learns as one on the CPU", "", Float64, MixedBfloat16) {
  using P = TestType;
  const Shape images{5, 12, 8, 3};
  require_alike(train_classifier<models::Cnn, P, Cuda>(small_cnn, images, 4),
                train_classifier<models::Cnn, P, Cpu>(small_cnn, images, 4), tolerance<P>());
}

TEMPLATE_TEST_CASE("residual networks on the GPU learn as on the CPU", "", Float64, MixedBfloat16) {
  using P = TestType;
  const Shape images{4, 32, 32, 3};
  for (const auto& options : {small_resnet, bottlenecks}) {
    require_alike(train_classifier<models::ResNet, P, Cuda>(options, images, 4),
                  train_classifier<models::ResNet, P, Cpu>(options, images, 4), tolerance<P>());
  }
}

TEMPLATE_TEST_CASE("a GAN on the GPU learns as one on the CPU", "", Float64, MixedBfloat16) {
  using P = TestType;
  require_alike(train_gan<P, Cuda>(3), train_gan<P, Cpu>(3), tolerance<P>());
}

TEST_CASE("steps of a residual network that are launched as a graph give the bits of eager ones") {
  testing::run_ranks(1, [](const Group& world) {
    const Run launched = train_by_graph(world, true), eager = train_by_graph(world, false);
    CHECK(launched.losses == eager.losses);
    CHECK(launched.state == eager.state);
  });
}

TEST_CASE("in float32 the GPU gives the same bits twice") {
  const auto run = [] { return train_classifier<models::ResNet, Float32, Cuda>(small_resnet, {4, 32, 32, 3}, 3); };
  const Run first = run(), second = run();
  CHECK(first.losses == second.losses);
  CHECK(first.state == second.state);
}
