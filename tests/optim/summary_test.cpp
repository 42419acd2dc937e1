#include "trireme/optim/summary.hpp"

#include <cmath>

#include "catch.hpp"
#include "trireme/optim/sgd.hpp"

using namespace trireme;

TEST_CASE("a step of one micro-batch is summarized: the mean's gradients, and which parameters have one") {
  Model model(DType::float32);
  FlatStore& store = model.store();
  const int unused = store.add("unused", {3}, Initializer::constant(1));
  const int used = store.add("used", {2}, Initializer::constant(1));
  const int frozen = store.add("frozen", {2}, Initializer::constant(1));
  store.freeze(frozen);
  store.initialize<float>(1);
  const auto set_gradient = [&](int parameter, float value) {
    for (float& element : store.gradient<float>(parameter).span()) element = value;
  };
  set_gradient(unused, 100);  // of an earlier step
  set_gradient(used, 3);
  store.set_has_gradient(used);
  const Loss<float> loss{.sum = Variable<float>(Tensor<float>::full({}, 6)), .target_weight = 4, .nominal_targets = 8};
  const StepSummary summary = optim::summarize(store, loss);
  CHECK(summary.loss() == 1.5);
  CHECK(summary.target_weight == 4);
  CHECK(summary.gradient_scale == 2);
  CHECK(summary.gradient_norm == Approx(2 * std::sqrt(18.0)));
  CHECK(summary.used == std::vector<bool>{false, true, false});
  CHECK(optim::read<Cpu>(summary).loss_sum == 6);

  optim::Sgd<Float32> optimizer(model, {.learning_rate = 0.5});
  const float before = store.values<float>(used).data()[0];
  optimizer.step(summary);
  CHECK(store.values<float>(used).data()[0] == before - 0.5F * 2 * 3);
  CHECK(store.values<float>(unused).data()[1] == 1);
}

TEST_CASE("a summary without targets says so") {
  FlatStore store(DType::float32);
  store.add("weight", {3}, Initializer::constant(1));
  const StepSummary summary =
      optim::summarize(store, Loss<float>{.sum = Variable<float>(Tensor<float>::full({}, 0)), .nominal_targets = 8});
  CHECK(summary.gradient_scale == 0);
  CHECK(summary.gradient_norm == 0);
}

TEST_CASE("the summary of another model's step is refused, however many parameters it has") {
  Model generator(DType::float32);
  Model discriminator(DType::float32);
  for (Model* model : {&generator, &discriminator}) {
    model->store().add("weight", {3}, Initializer::constant(1));
    model->store().initialize<float>(1);
  }
  const Loss<float> loss{.sum = Variable<float>(Tensor<float>::full({}, 6)), .target_weight = 4, .nominal_targets = 8};
  optim::Sgd<Float32> optimizer(generator, {.learning_rate = 0.5});
  CHECK_THROWS_WITH(optimizer.step(optim::summarize(discriminator.store(), loss)),
                    ContainsSubstring("the step summary is that of another model"));
  optimizer.step(optim::summarize(generator.store(), loss));
  optimizer.step({.target_weight = 1, .used = {true}});  // made by hand
}
