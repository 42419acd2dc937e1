#include "trireme/autograd/tape.hpp"

#include <vector>

#include "catch.hpp"
#include "trireme/autograd/frozen_parameters.hpp"
#include "trireme/autograd/functions.hpp"
#include "trireme/autograd/parameter.hpp"
#include "trireme/autograd/record.hpp"

using namespace trireme;

namespace {

struct Store {
  std::shared_ptr<FlatStore> store = std::make_shared<FlatStore>(DType::float32);
  Parameter<float> add(std::string name, const Shape& shape = {2}) {
    return Parameter<float>(store, store->add(std::move(name), shape, Initializer::constant(2)));
  }
};

struct Listener : GradientListener {
  std::vector<int> final_parameters;
  void on_final(int parameter) override { final_parameters.push_back(parameter); }
};

}  // namespace

TEST_CASE("a value used twice gets the sum of both gradients") {
  Tensor<float> gradient;
  Tape tape;
  const auto x = watch(Tensor<float>::full({2}, 3), [&](const Tensor<float>& dx) { gradient = dx; });
  const auto y = add(x, x);  // both contributions share dy
  sum(add(multiply(x, y), y)).backward();
  CHECK(gradient.data()[0] == 14);  // 2 x^2 + 2 x at 3
  CHECK(gradient.data()[1] == 14);
}

TEST_CASE("without a tape nothing is recorded") {
  Store store;
  const auto weight = store.add("weight");
  store.store->initialize<float>(0);
  const auto y = sum(multiply(weight.variable(), weight.variable()));
  CHECK(y.value().item() == 8);
  CHECK(y.slot() == nullptr);
  CHECK_THROWS_AS(y.backward(), Error);
}

TEST_CASE("the first gradient of a step overwrites, later ones add, until the step ends") {
  Store store;
  const auto weight = store.add("weight");
  store.store->initialize<float>(0);
  weight.gradient().data()[0] = 1e30F;  // what an earlier step left
  const auto run = [&] {
    Tape tape;
    sum(scale(weight.variable(), 3.0F)).backward();
  };
  run();
  CHECK(weight.gradient().data()[0] == 3);
  run();
  CHECK(weight.gradient().data()[0] == 6);
  store.store->clear_gradients();
  run();
  CHECK(weight.gradient().data()[0] == 3);
}

TEST_CASE("each parameter is announced once, unused ones first, used ones when their last use is done") {
  Store store;
  const auto first = store.add("first");
  const auto unused = store.add("unused");
  const auto second = store.add("second");
  const auto aside = store.add("aside");
  const auto frozen = store.add("frozen");
  frozen.freeze();
  store.store->initialize<float>(0);
  Listener listener;
  Tape tape;
  tape.listen(*store.store, listener);
  const auto x = multiply(first.variable(), frozen.variable());
  const auto y = multiply(x, second.variable());
  const auto not_in_loss = scale(aside.variable(), 2.0F);
  const auto z = add(y, first.variable());
  sum(z).backward();
  CHECK(listener.final_parameters == std::vector<int>{unused.index(), second.index(), first.index(), aside.index()});
  CHECK_FALSE(store.store->has_gradient(unused.index()));
  CHECK_FALSE(store.store->has_gradient(aside.index()));
  CHECK(first.gradient().data()[0] == 5);
}

TEST_CASE("while parameters are frozen, gradients pass through to the input and their own stay as they are") {
  Store store;
  const auto weight = store.add("weight");
  store.store->initialize<float>(0);
  float through = 0;
  Tape tape;
  const auto x = watch(Tensor<float>::full({2}, 3), [&](const Tensor<float>& dx) { through = dx.data()[0]; });
  Variable<float> frozen_twice;
  {
    const FrozenParameters frozen(*store.store);
    {
      const FrozenParameters inner(*store.store);
      frozen_twice = multiply(x, weight.variable());
    }
    CHECK(weight.variable().slot() == nullptr);  // the inner scope's end does not end the outer one
  }
  sum(frozen_twice).backward();
  CHECK(through == 2);
  CHECK_FALSE(store.store->has_gradient(weight.index()));
  store.store->clear_gradients();
  Tape later;
  sum(multiply(Variable<float>(x.value()), weight.variable())).backward();
  CHECK(weight.gradient().data()[0] == 3);
}

TEST_CASE("a detached value is a constant") {
  float through = 0;
  Tape tape;
  const auto x = watch(Tensor<float>::full({2}, 3), [&](const Tensor<float>& dx) { through = dx.data()[0]; });
  const auto y = scale(x, 2.0F);
  CHECK(y.detach().slot() == nullptr);
  sum(multiply(y, y.detach())).backward();
  CHECK(through == 12);  // 2 * y, not 2 * 2 * y
}

TEST_CASE("activations are freed while backward runs") {
  const auto in_use = [] { return device::host_memory_statistics().in_use_bytes; };
  std::vector<std::size_t> during;
  Tape tape;
  auto x = watch(Tensor<float>::full({1 << 16}, 1), [&](const Tensor<float>&) { during.push_back(in_use()); });
  const std::size_t before = in_use();
  for (int layer = 0; layer < 8; ++layer) x = relu(x);
  const std::size_t after = in_use();
  CHECK(after >= before + 8 * (std::size_t{4} << 16));
  auto loss = sum(x);
  x = {};
  loss.backward();
  REQUIRE(during.size() == 1);
  CHECK(during.front() <= before + 3 * (std::size_t{4} << 16));
}

TEST_CASE("tapes do not mix, and one tape runs backward once") {
  Tape outer;
  const auto x = watch(Tensor<float>::full({2}, 1), [](const Tensor<float>&) {});
  {
    Tape inner;
    CHECK_THROWS_AS(relu(x), Error);
  }
  const auto loss = sum(relu(x));
  loss.backward();
  CHECK_THROWS_AS(loss.backward(), Error);
  CHECK_THROWS_AS(relu(x), Error);
}

TEST_CASE("dropout depends on the global index of a sample, not on how samples are split") {
  const auto x = Tensor<float>::full({4, 50}, 1);
  const auto run = [](const Tensor<float>& input, std::int64_t first_sample, std::uint64_t step) {
    Tape tape({.seed = 3, .step = step, .first_sample = first_sample});
    return dropout(Variable<float>(input), 0.25, "layer").value();
  };
  const auto whole = run(x, 0, 5);
  const auto half = run(x.narrow(2, 2), 2, 5);
  int dropped = 0;
  for (int index = 0; index < 100; ++index) {
    CHECK(half.data()[index] == whole.data()[100 + index]);
    dropped += half.data()[index] == 0;
  }
  CHECK(dropped > 10);
  CHECK(dropped < 45);
  const auto other_step = run(x, 0, 6);
  bool differs = false;
  for (int index = 0; index < 200; ++index) differs |= other_step.data()[index] != whole.data()[index];
  CHECK(differs);
}
