// An operation on the tape and an optimizer of your own, in a model of your own.

#include <cmath>
#include <cstdio>
#include <trireme/trireme.hpp>

using namespace trireme;

// softsign(x) = x / (1 + |x|)
struct Softsign {
  static constexpr std::string_view name = "softsign";

  void forward(const Tensor<float>& x, Tensor<float>& y) const {
    for (std::int64_t index = 0; index < y.numel(); ++index) {
      y.data()[index] = x.data()[index] / (1 + std::abs(x.data()[index]));
    }
  }
  void backward(const Tensor<float>& dy, const Tensor<float>& x, const Gradient<float>& dx) const {
    dx.contribute([&](Tensor<float>& out, bool accumulate) {
      for (std::int64_t index = 0; index < out.numel(); ++index) {
        const float divisor = 1 + std::abs(x.data()[index]);
        out.data()[index] = dy.data()[index] / (divisor * divisor) + (accumulate ? out.data()[index] : 0);
      }
    });
  }
};
Variable<float> softsign(const Variable<float>& x) { return record(Softsign{}, Result<float>{x.shape()}, kept(x)); }

// Lion (Chen et al. 2023, arXiv 2302.06675): the sign of an average of momentum and gradient. optim::Lion is the same, as
// vector code.
class Lion final : public optim::Optimizer<Float32> {
 public:
  Lion(Model& model, double learning_rate) : Optimizer(model, {.learning_rate = learning_rate}) {}

  optim::Settings settings() const override { return {{"optimizer", "Lion"}}; }

 private:
  void update(const Piece& piece) override {
    float* momentum = piece.plane(momentum_);
    const auto rate = static_cast<float>(piece.learning_rate);
    const auto scale = static_cast<float>(piece.gradient_scale);
    for (std::size_t index = 0; index < piece.count; ++index) {
      const float gradient = scale * piece.gradients[index];
      const float direction = 0.9F * momentum[index] + 0.1F * gradient;
      piece.values[index] -= direction == 0 ? 0 : std::copysign(rate, direction);
      momentum[index] = 0.99F * momentum[index] + 0.01F * gradient;
    }
  }

  int momentum_ = add_plane("momentum");
};

struct Net : nn::Module<Float32> {
  Linear hidden{*this, "hidden", {.in = 1, .out = 16}};
  Linear output{*this, "output", {.in = 16, .out = 2}};

  Value forward(const Value& x) const { return output.forward(softsign(hidden.forward(x))); }
};

int train(const Group& world) {
  const std::int64_t share = 32;
  Net model;
  model.initialize();
  parallel::DataParallel replicas(model, ProcessMesh(world));
  Lion optimizer(model, 0.002);

  for (int number = 0; number <= 400; ++number) {
    const std::int64_t first = (number * world.size() + world.rank()) * share;  // of this rank's samples
    Tensor<float> x({share, 1});
    Tensor<std::int32_t> positive({share});
    for (std::int64_t row = 0; row < share; ++row) {  // is sin(x) above 0?
      const std::int64_t sample = first + row;
      x.data()[row] = static_cast<float>(sample * 389 % 1000) / 200 - 2.5F;
      positive.data()[row] = std::sin(x.data()[row]) > 0;
    }
    parallel::Step step = replicas.begin(number);
    step.backward(first, [&] { return cross_entropy(model.forward(x), positive); });
    step.update(optimizer);
    if (world.rank() == 0 && number % 100 == 0) std::printf("step %3d  loss %.4f\n", number, step.finish().loss());
  }
  return 0;
}

int main() { return launch(BackendKind::mpi, {}, train); }
