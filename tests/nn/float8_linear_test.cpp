#include "nn/float8_linear.hpp"

#include "trireme/autograd/recompute.hpp"
#include "trireme/optim/adamw.hpp"

using namespace trireme;
using namespace trireme::tests;

namespace {

// Two layers that learn a random function; the losses.
std::vector<double> train(Float8Scaling fp8, std::size_t steps) {
  struct Model : nn::Module<MixedBfloat16> {
    explicit Model(Float8Scaling fp8)
        : first(*this, "first", {.in = 32, .out = 64, .fp8 = fp8}),
          second(*this, "second", {.in = 64, .out = 16, .fp8 = fp8}) {}
    nn::Linear<MixedBfloat16> first, second;
  };
  Model model(fp8);
  model.initialize({.seed = 1});
  optim::AdamW<MixedBfloat16> optimizer(model, {.learning_rate = 1e-2});
  const auto x = random_rows({64, 32}, 2);
  const auto opposite = random_rows({64, 16}, 3);  // of what is wanted
  std::vector<double> losses;
  for (std::size_t step = 0; step < steps; ++step) {
    Tape tape;
    const auto difference = add(model.second.forward(gelu(model.first.forward(x))), Variable<bfloat16>(opposite));
    const auto loss = sum(multiply(difference, difference));
    loss.backward();
    losses.push_back(static_cast<double>(loss.value().item()));
    const auto parameters = static_cast<std::size_t>(model.store().num_parameters());
    optimizer.step({.loss_sum = losses.back(), .target_weight = 64 * 16, .used = std::vector<bool>(parameters, true)});
  }
  return losses;
}

}  // namespace

TEST_CASE("an 8-bit linear layer gives what a linear layer gives, within the rounding of its operands") {
  Float8Layer<Cpu> exact(Float8Scaling::none), rounded(Float8Scaling::current);
  exact.initialize({.seed = 4});
  rounded.initialize({.seed = 4});
  const LayerResults expected = results_of(exact);
  const LayerResults got = results_of(rounded);
  const auto without_tape = rounded.linear.forward(random_rows({2, 16, 48}, 1));
  CHECK(distance(without_tape.value(), got.y) == 0);
  for (const double off :
       {distance(got.y, expected.y), distance(got.dx, expected.dx), distance(got.of_parameters, expected.of_parameters)}) {
    CHECK(off < 0.08);  // e5m2 has 2 bits of fraction
    CHECK(off > 0.005);
  }
}

TEST_CASE("a model of 8-bit linear layers learns as one of bfloat16") {
  constexpr std::size_t steps = 15;
  const std::vector<double> without = train(Float8Scaling::none, steps);
  CHECK(without.back() < 0.5 * without.front());
  for (const Float8Scaling scaling : {Float8Scaling::current, Float8Scaling::delayed}) {
    const std::vector<double> with = train(scaling, steps);
    for (std::size_t step = 0; step < steps; ++step) {
      CAPTURE(static_cast<int>(scaling), step);
      CHECK(with[step] == Approx(without[step]).epsilon(0.05));
    }
  }
}

TEST_CASE("delayed scaling scales by the calls before") {
  Float8Layer<Cpu> current(Float8Scaling::current), delayed(Float8Scaling::delayed);
  current.initialize({.seed = 4});
  delayed.initialize({.seed = 4});
  const auto rows = random_rows({32, 48}, 1);
  const auto hundredfold = rows.clone();
  for (bfloat16& element : hundredfold.span()) element = bfloat16(100 * static_cast<float>(element));
  float largest = 0;
  for (const bfloat16 element : rows.span()) largest = std::max(largest, std::abs(static_cast<float>(element)));

  // At first there is no history: it scales by the operand itself.
  CHECK(distance(results_of(delayed, rows).y, results_of(current, rows).y) == 0);
  CHECK(delayed.amaxes("x").data()[0] == largest);
  CHECK(delayed.amaxes("x").data()[1] == 0);
  CHECK(delayed.amaxes("dy").data()[0] > 0);

  // An operand that is a hundred times as large as before saturates, for one call.
  const LayerResults expected = results_of(current, hundredfold);
  CHECK(distance(results_of(delayed, hundredfold).y, expected.y) > 0.5);
  CHECK(delayed.amaxes("x").data()[0] == Approx(100 * largest).epsilon(0.01));
  CHECK(distance(results_of(delayed, hundredfold).y, expected.y) == 0);

  // The history has as many calls as the options say.
  for (int call = 0; call < 3; ++call) results_of(delayed, rows);
  CHECK(delayed.amaxes("x").data()[2] == largest);
}

TEST_CASE("an 8-bit layer that is computed again scales as in its first run, and keeps one amax for both") {
  const auto run = [](bool recomputes) {
    Float8Layer<Cpu> layer(Float8Scaling::delayed);
    layer.initialize({.seed = 4});
    results_of(layer, random_rows({32, 48}, 1));
    Tape tape;
    std::vector<float> results;
    const auto keep = [&](const auto& tensor) {
      for (const auto element : tensor.span()) results.push_back(static_cast<float>(element));
    };
    const auto rows = random_rows({32, 48}, 2);
    for (bfloat16& element : rows.span()) element = bfloat16(3 * static_cast<float>(element));
    const auto x = watch(rows, keep);
    const auto forward = [&](const Variable<bfloat16>& input) { return layer.linear.forward(input); };
    const auto y = recomputes ? recompute(forward, x) : forward(x);
    sum(multiply(y, y)).backward();
    keep(y.value());
    keep(layer.store().gradients<float>());
    for (const auto* of : {"x", "weight", "dy"}) keep(layer.amaxes(of));
    return results;
  };
  CHECK(run(true) == run(false));
}

TEST_CASE("without training delayed scaling changes nothing") {
  Float8Layer<Cpu> layer(Float8Scaling::delayed);
  layer.initialize({.seed = 4});
  results_of(layer, random_rows({32, 48}, 1));
  const Tensor<float> before = layer.amaxes("x");
  layer.linear.forward(random_rows({32, 48}, 2));
  layer.eval();
  results_of(layer, random_rows({32, 48}, 2));
  CHECK(distance(layer.amaxes("x"), before) == 0);
}

TEST_CASE("8-bit linear layers say what they need") {
  struct Single : nn::Module<Float32> {
    nn::Linear<Float32> linear{*this, "linear", {.in = 16, .out = 16, .fp8 = Float8Scaling::current}};
  };
  CHECK_THROWS_WITH(Single(), ContainsSubstring("linear: fp8 needs MixedBfloat16"));
  Float8Layer<Cpu> layer(Float8Scaling::current);
  layer.initialize();
  CHECK_THROWS_WITH(results_of(layer, random_rows({15, 48}, 1)), ContainsSubstring("multiples of 16"));
  CHECK(layer.linear.forward(random_rows({15, 48}, 1)).shape() == Shape{15, 80});  // without a tape
  CHECK_THROWS_WITH(float8_scaling_named("fp8"), ContainsSubstring("none, current or delayed, not fp8"));
}
