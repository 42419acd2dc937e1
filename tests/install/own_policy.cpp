// A precision policy for which the library has no models and optimizers: they are compiled here, from trireme-inl.hpp.

#include <cmath>
#include <cstdio>
#include <trireme/trireme-inl.hpp>
#include <trireme/trireme.hpp>

using namespace trireme;

struct Double {
  using Compute = double;
  using Master = double;
  using Gradient = double;
};

struct Example {
  Tensor<std::int32_t> tokens{Shape{2, 8}};
  Tensor<std::int32_t> targets{Shape{2, 8}};

  Example() {
    for (std::int32_t i = 0; i < 16; ++i) {
      tokens.data()[i] = i % 5;
      targets.data()[i] = (i + 1) % 5;
    }
  }
};

// Of one weight, by backward() and by the difference of two losses.
bool gradients_agree(models::Gpt<Double>& model, const Example& example) {
  FlatStore& store = model.store();
  const auto loss = [&] { return model.loss(example.tokens, example.targets); };
  {
    Tape tape;
    loss().backward();
  }
  const double gradient = store.gradient<double>(0).data()[3];
  store.clear_gradients();
  double& weight = store.values<double>(0).data()[3];
  const double middle = weight;
  weight = middle + 1e-5;
  const double above = loss().mean();
  weight = middle - 1e-5;
  const double below = loss().mean();
  weight = middle;
  const double difference = (above - below) / 2e-5;
  std::printf("gradient %.10f, finite difference %.10f\n", gradient, difference);
  return std::abs(gradient) > 1e-6 && std::abs(gradient - difference) < 1e-8;
}

int train(const Group& world) {
  models::Gpt<Double> model({.layers = 1, .heads = 2, .width = 8, .block = 8, .vocabulary = 5});
  model.initialize();
  const Example example;
  if (!gradients_agree(model, example)) return 1;

  parallel::DataParallel replicas(model, ProcessMesh(world));
  const auto optimizer = optim::make_optimizer<Double, Cpu>("adamw", model, {.learning_rate = 0.02});
  optim::ExponentialMovingAverage average(model, {.decay = 0.9});
  double loss = 0;
  for (int number = 0; number < 60; ++number) {
    parallel::Step step = replicas.begin(number);
    step.backward(0, [&] { return model.loss(example.tokens, example.targets); });
    step.update(*optimizer);
    average.update();
    loss = step.finish().loss();
  }
  const auto next = models::generate(model, {0, 1, 2}, {.count = 2, .temperature = 0});
  std::printf("loss %.4f, after 0 1 2: %d %d\n", loss, next[0], next[1]);
  return loss < 0.1 && next[0] == 3 && next[1] == 4 ? 0 : 1;
}

int main() { return launch(BackendKind::mpi, {}, train); }
