// A model and a training loop of your own. Run it alone or with mpirun -n 2: the printed losses are the same.

#include <cstdio>
#include <trireme/trireme.hpp>

using namespace trireme;

struct Mlp : nn::Module<Float32> {
  Linear hidden{*this, "hidden", {.in = 2, .out = 32}};
  Linear output{*this, "output", {.in = 32, .out = 2}};

  Value forward(const Value& x) const { return output.forward(relu(hidden.forward(x))); }
};

// Points of the square [-1, 1]^2 and whether they lie in a circle: a function of their global number.
std::pair<Tensor<float>, Tensor<std::int32_t>> points(std::int64_t first, std::int64_t count) {
  Tensor<float> x({count, 2});
  Tensor<std::int32_t> inside({count});
  for (std::int64_t row = 0; row < count; ++row) {
    for (std::int64_t dim = 0; dim < 2; ++dim) {
      x.data()[2 * row + dim] = static_cast<float>((first + row) * (dim == 0 ? 389 : 631) % 1000) / 500 - 1;
    }
    const float* point = x.data() + 2 * row;
    inside.data()[row] = point[0] * point[0] + point[1] * point[1] < 0.6F;
  }
  return {x, inside};
}

int train(const Group& world) {
  const std::int64_t batch = 64;  // of all ranks together
  const std::int64_t share = batch / world.size();
  Mlp model;
  model.initialize();
  parallel::DataParallel replicas(model, ProcessMesh(world));
  optim::AdamW optimizer(model, {.learning_rate = 0.01});

  for (std::int64_t number = 0; number <= 400; ++number) {
    const std::int64_t first = number * batch + world.rank() * share;  // of this rank's samples
    const auto [x, inside] = points(first, share);
    parallel::Step step = replicas.begin(number);
    step.backward(first, [&] { return cross_entropy(model.forward(x), inside); });  // gradients travel while this runs
    step.update(optimizer);
    if (world.rank() == 0 && number % 100 == 0)
      std::printf("step %3d  loss %.4f\n", static_cast<int>(number), step.finish().loss());
  }
  return 0;
}

int main() { return launch(BackendKind::mpi, {}, train); }
