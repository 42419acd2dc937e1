// An operation and an optimizer of your own. Run it in the repository's folder, alone or by mpirun -n 2.
#include <cmath>
#include <trireme/trireme.hpp>
using namespace trireme;

struct SquaredRelu {  // y = max(x, 0)^2, dy/dx = 2 max(x, 0). So et al. 2021, arXiv 2109.08668
  static constexpr std::string_view name = "squared_relu";
  void forward(const Tensor<float>& x, Tensor<float>& y) const {
    std::ranges::transform(x.span(), y.data(), [](float value) { return value > 0 ? value * value : 0; });
  }
  void backward(const Tensor<float>& dy, const Tensor<float>& x, const Gradient<float>& dx) const {
    dx.contribute([&](Tensor<float>& sum, bool accumulate) {  // accumulate: adds to what other operations contributed
      for (std::int64_t index = 0; index < sum.numel(); ++index) {
        sum.data()[index] = (accumulate ? sum.data()[index] : 0) + 2 * std::max(x.data()[index], 0.0F) * dy.data()[index];
      }
    });
  }
};
Variable<float> squared_relu(const Variable<float>& x) { return record(SquaredRelu{}, Result<float>{x.shape()}, kept(x)); }

// Lion (Chen et al. 2023, arXiv 2302.06675): the sign of an average of momentum and gradient.
struct Lion final : optim::Optimizer<Float32> {
  Lion(Model& model, double learning_rate) : Optimizer(model, {.learning_rate = learning_rate}) {}
  optim::Settings settings() const override { return settings_of("Lion", {}); }
  void update(const Piece& piece) override {
    float* momentum = piece.plane(momentum_plane);
    for (std::size_t index = 0; index < piece.count; ++index) {
      const float gradient = static_cast<float>(piece.gradient_scale) * piece.gradients[index];
      const float direction = 0.9F * momentum[index] + 0.1F * gradient;
      piece.values[index] -= direction == 0 ? 0 : std::copysign(static_cast<float>(piece.learning_rate), direction);
      momentum[index] = 0.99F * momentum[index] + 0.01F * gradient;
    }
  }
  int momentum_plane = add_plane("momentum");  // checkpoints keep it
};

struct Net : nn::Module<Float32> {
  using Module::Module;
  Value forward(const data::Rows& rows) const {  // an elementwise function needs only an expression: map() differentiates it
    return output.forward(map([](auto value) { return value / (1 + value); }, squared_relu(hidden.forward(rows.x))));
  }
  Linear hidden{*this, "hidden", {.in = 4, .out = 32}}, output{*this, "output", {.in = 32, .out = 4}};
};

void train(trainer::Run& run) {
  const auto [training, test] = data::read_csv("examples/flowers.csv", {.label = "class"}).split({.standardize = true});
  Net net(run.context());
  Lion optimizer(net, 0.01);
  run.add(net, optimizer);
  const data::Loader rows(training, run.batch());
  for (auto& step : run.steps(rows)) {
    for (const auto& batch : step.batches())
      step.backward(batch, [&] { return cross_entropy(net.forward(batch), batch.labels); });
    step.update(optimizer);
  }
  const auto right = [](const auto& y, const auto& batch) { return accuracy(y, batch.labels); };
  run.report({{"test_accuracy", run.evaluate(net, test, right)}});
}

int main(int argc, char** argv) { return trainer::launch(argc, argv, {.until = Epochs{15}}, train); }
