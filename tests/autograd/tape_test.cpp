#include "trireme/autograd/tape.hpp"

#include <memory>
#include <string>
#include <vector>

#include "autograd/small_store.hpp"
#include "catch.hpp"
#include "trireme/autograd/frozen_parameters.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/loss.hpp"
#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/autograd/parameter.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/ops/array/fill.hpp"
#include "trireme/ops/pointwise/operators.hpp"

using namespace trireme;
using namespace trireme::tests;

TEST_CASE("a value used twice gets the sum of both gradients") {
  Tensor<float> gradient;
  Tape tape;
  const auto x = watch(Tensor<float>::full({2}, 3), [&](const Tensor<float>& dx) { gradient = dx; });
  const auto y = add(x, x);  // both contributions share dy
  sum(add(multiply(x, y), y)).backward();
  CHECK(gradient.data()[0] == 14);  // 2 x^2 + 2 x at 3
  CHECK(gradient.data()[1] == 14);
}

TEST_CASE("backward starts from a gradient that came from elsewhere") {
  Tensor<float> gradient;
  Tape tape;
  const auto x = watch(Tensor<float>::full({2}, 3), [&](const Tensor<float>& dx) { gradient = dx; });
  const auto y = multiply(x, x);
  CHECK_THROWS_AS(y.backward(Tensor<float>::full({1, 2}, 1)), Error);
  y.backward(Tensor<float>::from({2}, std::vector<float>{5, -1}));
  CHECK(gradient.data()[0] == 30);
  CHECK(gradient.data()[1] == -6);
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
    const FrozenParameters frozen(*store.model);
    {
      const FrozenParameters inner(*store.model);
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

TEST_CASE("a value that backward needs and that was changed in place since is refused by the operation's name") {
  const auto x = [] { return watch(Tensor<float>::from({2}, {1, 2}), [](const Tensor<float>&) {}); };
  const auto error_after = [](const Variable<float>& y, const auto& change) -> std::string {
    change();
    try {
      sum(y).backward();
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  const std::string changed =
      ": a tensor of shape [2] that its backward pass needs was changed in place after its forward pass";
  auto mask = Tensor<float>::full({2}, 1);
  const auto fails = [&](const auto& operation, const auto& change) {
    const Tape tape;
    return error_after(operation(Variable<float>(x())), change);
  };
  const auto by_mask = [&](const auto& v) { return multiply(v, Variable<float>(mask)); };
  CHECK_THAT(fails(by_mask, [&] { mask *= 0.5; }), ContainsSubstring("multiply" + changed));
  CHECK_THAT(fails(by_mask, [&] { mask += mask; }), ContainsSubstring("multiply" + changed));
  CHECK_THAT(fails(by_mask, [&] { ops::fill_elements(mask, 3); }), ContainsSubstring("multiply" + changed));
  CHECK_THAT(fails(by_mask, [&] { ops::scale(mask, 0.5F, mask); }), ContainsSubstring("multiply" + changed));
  CHECK_THAT(fails(by_mask,
                   [&] {
                     Tensor<float> row = mask.narrow(0, 1);
                     row *= 2;
                   }),
             ContainsSubstring("multiply" + changed));
  CHECK(fails(by_mask, [&] { mask = mask * 0.5F; }) == "none");
  CHECK(fails([&](const auto& v) { return add(v, Variable<float>(mask)); }, [&] { mask *= 0.5; }) == "none");  // needs no value
  Tensor<float> result;
  const auto keeps_result = [&](const auto& v) {
    const auto y = softmax(v);
    result = y.value();
    return y;
  };
  CHECK_THAT(fails(keeps_result, [&] { result *= 2; }), ContainsSubstring("softmax" + changed));
  CHECK(fails(keeps_result, [&] {
          Tensor<float> copy = result.clone();
          copy *= 2;
        }) == "none");
}

TEST_CASE("what watch() hands out belongs to who gets it") {
  Tensor<float> da, db, dc;
  const auto given = Tensor<float>::from({2}, {2, 3});
  Tape tape;
  const auto a = watch(Tensor<float>::full({2}, 1), [&](const Tensor<float>& d) { da = d; });
  const auto b = watch(Tensor<float>::full({2}, 1), [&](Tensor<float> d) { db = (d *= 2); });
  const auto c = watch(Tensor<float>::full({2, 1}, 1), [&](const Tensor<float>& d) { dc = d; });
  add(add(a, b), reshape(c, {2})).backward(given);
  da *= 10;
  CHECK(given.to_vector() == std::vector<float>{2, 3});
  CHECK(da.to_vector() == std::vector<float>{20, 30});
  CHECK(db.to_vector() == std::vector<float>{4, 6});
  CHECK(dc.to_vector() == std::vector<float>{2, 3});
}

TEST_CASE("values of a parameter that are written by hand count as changed once the store is told") {
  Store store;
  const auto weight = store.add("weight");
  store.store->initialize<float>(0);
  Tape tape;
  const auto y = sum(multiply(weight.variable(), weight.variable()));
  weight.value().data()[0] = 5;
  store.store->refresh_compute_copy();
  CHECK_THROWS_WITH(y.backward(), ContainsSubstring("was updated between the forward pass"));
}

TEST_CASE("a model lives as long as a tape that has its parameters") {
  Tensor<float> dx;
  Tape tape;
  auto store = std::make_unique<Store>();
  Variable<float> y;
  {
    const auto weight = store->add("weight");
    store->store->initialize<float>(0);
    const auto x = watch(Tensor<float>::full({2}, 3), [&](const Tensor<float>& d) { dx = d; });
    y = sum(multiply(x, weight.master()));
  }
  store = nullptr;
  y.backward();
  CHECK(dx.to_vector() == std::vector<float>{2, 2});
}

TEST_CASE("a parameter without values is no operand, but where it begins as zeros or was written") {
  Store store;
  const auto weight = store.add("layer.weight");
  const auto bias = Parameter<float>(store.model, store.store->add("layer.bias", {2}, Initializer::constant(0)));
  CHECK(bias.master().value().data()[0] == 0);
  CHECK_THROWS_WITH(weight.master(),
                    ContainsSubstring("1 of the model's 2 parameters, the first of them layer.weight, have no values"));
  weight.value().data()[0] = 5;
  CHECK(weight.variable().value().data()[0] == 5);
  CHECK_FALSE(store.store->has_values());
}

TEST_CASE("backward() of a constant says what may have made it one") {
  const Variable<float> x(Tensor<float>::full({1}, 1));
  CHECK_THROWS_WITH(x.backward(), ContainsSubstring("open a Tape before the forward pass"));
  const Tape tape;
  const auto y = watch(Tensor<float>::full({1}, 1), [](const Tensor<float>&) {});
  CHECK_THROWS_WITH(relu(y.detach()).backward(), ContainsSubstring("only from constants") && ContainsSubstring("detach()"));
}

TEST_CASE("tapes may end in any order") {
  auto first = std::make_unique<Tape>();
  auto second = std::make_unique<Tape>();
  auto third = std::make_unique<Tape>();
  second.reset();
  CHECK(Tape::current() == third.get());
  first.reset();
  CHECK(Tape::current() == third.get());
  third->suspend();
  CHECK(Tape::current() == nullptr);
  third->resume();
  third.reset();
  CHECK(Tape::current() == nullptr);
}

TEST_CASE("of several tapes under way, each runs backward on its own once it is resumed") {
  Store store;
  const auto weight = store.add("weight");
  store.store->initialize<float>(0);
  const auto forward = [&](float factor) {
    auto tape = std::make_unique<Tape>();
    auto loss = sum(scale(weight.variable(), factor));
    CHECK_THROWS_AS(tape->resume(), Error);
    tape->suspend();
    CHECK(Tape::current() == nullptr);
    CHECK_THROWS_AS(tape->suspend(), Error);
    return std::pair(std::move(tape), std::move(loss));
  };
  auto [first, first_loss] = forward(3);
  auto [second, second_loss] = forward(5);
  CHECK_THROWS_AS(first_loss.backward(), Error);  // suspended
  first->resume();
  CHECK_THROWS_AS(second_loss.backward(), Error);
  first_loss.backward();
  first->suspend();
  CHECK(weight.gradient().data()[0] == 3);
  Tape outer;
  second->resume();
  second_loss.backward();
  second.reset();  // ends as the current one
  CHECK(Tape::current() == &outer);
  CHECK(weight.gradient().data()[0] == 8);
}

TEST_CASE("parameters and buffers lie in one block and are changed in place each for itself") {
  struct Codes : nn::Module<Float32> {
    using Module::Module;
    nn::Linear<Float32> linear{*this, "linear", {.in = 2, .out = 2}};
    nn::Linear<Float32> other{*this, "other", {.in = 2, .out = 2}};
    Buffer<float> codes{this->add_buffer("codes", Shape{2}, 1)};
    Buffer<float> counts{this->add_buffer("counts", Shape{2}, 0)};
  };
  const auto error_after = [](const auto& change) -> std::string {
    Codes net;
    net.initialize();
    const Tape tape;
    const Variable<float> x = watch(Tensor<float>::full({1, 2}, 1), [](const Tensor<float>&) {});
    const auto y = multiply(net.linear.forward(x), net.codes.value());
    change(net);
    try {
      sum(y).backward();
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  const std::string changed = "that its backward pass needs was changed in place";
  const auto scale_in_place = [](Tensor<float> values) { values *= 0.5; };
  CHECK_THAT(error_after([&](Codes& net) { scale_in_place(net.codes.value()); }),
             ContainsSubstring("multiply: a tensor of shape [2] " + changed));
  CHECK_THAT(error_after([&](Codes& net) { scale_in_place(net.linear.weight.value()); }),
             ContainsSubstring("linear: a tensor of shape [2, 2] " + changed));
  CHECK(error_after([&](Codes& net) { scale_in_place(net.counts.value()); }) == "none");
  CHECK(error_after([&](Codes& net) { scale_in_place(net.other.weight.value()); }) == "none");
}
