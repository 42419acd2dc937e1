// Two models in one run: a GAN learns to make points of a ring. Alone or by mpirun -n 2.
#include <cmath>
#include <numbers>
#include <trireme/trireme.hpp>
using namespace trireme;

struct Mlp : nn::Module<Float32> {
  Mlp(const ModelContext& context, std::int64_t in, std::int64_t out)
      : Module(context), first(*this, "first", {.in = in, .out = 64}), last(*this, "last", {.in = 64, .out = out}) {}
  Value forward(const Value& x) const { return last.forward(leaky_relu(first.forward(x), 0.2)); }
  Linear first, last;
};

data::Table ring() {
  data::TableContent content{.feature_names = {"x", "y"}};
  for (int point = 0; point < 1024; ++point) {
    const double angle = 2 * std::numbers::pi * point / 1024;
    content.features.insert(content.features.end(), {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))});
  }
  return data::Table(std::move(content));
}

Tensor<float> noise(std::int64_t first_sample, std::int64_t rows) {  // the same for any number of ranks
  Tensor<float> noise({rows, 4});
  for (std::int64_t index = 0; index < noise.numel(); ++index) {
    noise.data()[index] = static_cast<float>(philox_normal(1, 2, static_cast<std::uint64_t>(first_sample * 4 + index)));
  }
  return noise;
}

void train(trainer::Run& run) {
  Mlp generator(run.context(), 4, 2), discriminator(run.context(), 2, 1);
  optim::Adam of_generator(generator, {.learning_rate = 0.004, .beta1 = 0.5});
  optim::Adam of_discriminator(discriminator, {.learning_rate = 0.004, .beta1 = 0.5});
  run.add(generator, of_generator, "generator.");  // added first: run.steps() gives its steps
  run.add(discriminator, of_discriminator, "discriminator.");
  const data::Loader points(ring(), run.batch());
  const auto judged = [&](const Variable<float>& x, float real) {
    return bce_with_logits(discriminator.forward(x), Tensor<float>::full({x.shape()[0], 1}, real));
  };
  for (auto& step : run.steps(points)) {
    for (const auto& batch : step.batches()) {
      step.backward(batch, [&] {
        const auto fake = generator.forward(noise(batch.first_sample, batch.size()));
        parallel::Step inner = run.begin(discriminator);
        inner.backward(batch, [&] { return add(judged(batch.x, 1), judged(fake.detach(), 0)); });
        inner.update(of_discriminator, run.update_options(of_discriminator));
        const FrozenParameters frozen(discriminator);  // gradients go through it to the generator only
        return judged(fake, 1);
      });
    }
    step.update(of_generator);
  }
  const Tensor<float> made = generator.forward(noise(1'000'000, 256)).value();  // without a tape
  Mean radius;
  for (int point = 0; point < 256; ++point) radius.add(std::hypot(made.at(point, 0), made.at(point, 1)));
  run.report({{"mean_radius", radius}});
}

int main(int argc, char** argv) { return trainer::launch(argc, argv, {.until = Steps{1500}, .batch_size = 64}, train); }
