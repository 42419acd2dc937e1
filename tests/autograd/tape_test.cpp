#include "trireme/autograd/tape.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "trireme/autograd/array.hpp"
#include "trireme/autograd/convolution.hpp"
#include "trireme/autograd/elementwise.hpp"
#include "trireme/autograd/frozen_parameters.hpp"
#include "trireme/autograd/matmul.hpp"
#include "trireme/autograd/norm.hpp"
#include "trireme/autograd/parameter.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/autograd/reduce.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/ops/array/fill.hpp"
#include "trireme/ops/pointwise/operators.hpp"

using namespace trireme;

namespace {

struct Store {
  std::shared_ptr<Model> model = std::make_shared<Model>(DType::float32);
  FlatStore* store = &model->store();
  Parameter<float> add(std::string name, const Shape& shape = {2}) {
    return Parameter<float>(model, store->add(std::move(name), shape, Initializer::constant(2)));
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

TEST_CASE("dropout depends on the global index of a sample, not on how samples are split") {
  const auto x = Tensor<float>::full({4, 50}, 1);
  const auto run = [](const Tensor<float>& input, std::int64_t first_sample, std::uint64_t step) {
    Tape tape({.seed = 3, .step = step, .first_sample = first_sample, .samples = input.dim(0)});
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

TEST_CASE("the n-th call of a stream drops elements of its own, counted over all tapes of a micro-batch") {
  const Variable<float> x(Tensor<float>::full({1, 1000}, 1));
  const auto draw = [&](std::string_view stream = "layer") {
    const auto y = dropout(x, 0.5, stream).value();
    return std::vector<float>(y.span().begin(), y.span().end());
  };
  const auto draw_on_tape = [&](const TapeOptions& at) {
    const Tape tape(at);
    return draw();
  };
  const auto agreement = [](const std::vector<float>& a, const std::vector<float>& b) {
    int same = 0;
    for (std::size_t i = 0; i < a.size(); ++i) same += a[i] == b[i] ? 1 : 0;
    return same;
  };
  const TapeOptions names{.seed = 3, .step = 5, .first_sample = 8, .samples = 1};
  std::vector<std::vector<float>> calls;
  {
    Tape outer(names);
    calls.push_back(draw());
    {
      Tape inner(names);
      calls.push_back(draw());
    }
    calls.push_back(draw());
    outer.suspend();
    CHECK(draw() == std::vector<float>(1000, 1.0F));  // evaluation counts for nothing
    outer.resume();
  }
  calls.push_back(draw_on_tape(names));
  for (std::size_t first = 0; first < calls.size(); ++first) {
    for (std::size_t second = 0; second < first; ++second) {
      CAPTURE(first, second);
      CHECK(agreement(calls[first], calls[second]) == Approx(500).margin(80));
    }
  }

  // What another stream, micro-batch, step or rank draws changes nothing, nor does the order of micro-batches.
  for (int run = 0; run < 2; ++run) {
    const TapeOptions first = names.restarted();
    TapeOptions second = first;
    second.first_sample = 12;
    std::thread([&] { draw_on_tape(first); }).join();
    for (std::size_t call = 0; call < calls.size(); ++call) {
      CAPTURE(call);
      if (run == 1) draw_on_tape(second);
      const Tape tape(first);
      draw("another layer");
      CHECK(draw() == calls[call]);
    }
  }
  TapeOptions next_step = names;
  next_step.step = 6;
  const auto of_next_step = draw_on_tape(next_step);
  CHECK(agreement(of_next_step, calls[0]) == Approx(500).margin(80));
  CHECK(draw_on_tape(next_step.restarted()) == of_next_step);
}

TEST_CASE("a tape without options refuses dropout and shows them, unless nothing is dropped") {
  const Variable<float> x(Tensor<float>::full({2, 3}, 1));
  const Tape tape;
  CHECK_THROWS_WITH(dropout(x, 0.5, "layer"),
                    ContainsSubstring("dropout: the tape was opened without TapeOptions") &&
                        ContainsSubstring("Tape tape({.seed = 1, .step = step, .first_sample = first, .samples = count})"));
  CHECK(dropout(x, 0.0, "layer").value().data() == x.value().data());
}

TEST_CASE("rows of a sample are dropped the same however samples are spread, and rows that nobody can name are refused") {
  const auto draw = [](const TapeOptions& at, std::int64_t rows) {
    const Tape tape(at);
    const auto y = dropout(Variable<float>(Tensor<float>::full({rows, 50}, 1)), 0.5, "layer").value();
    return std::vector<float>(y.span().begin(), y.span().end());
  };
  const TapeOptions names{.seed = 3, .step = 5};
  const auto of = [&](std::int64_t first, std::optional<std::int64_t> samples) {
    TapeOptions at = names.restarted();
    at.first_sample = first;
    at.samples = samples;
    return at;
  };
  const auto all = draw(of(0, 8), 24);  // 3 rows a sample
  const auto begin = all.begin();
  CHECK(draw(of(0, 2), 6) == std::vector<float>(begin, begin + 6 * 50));
  CHECK(draw(of(2, 5), 15) == std::vector<float>(begin + 6 * 50, begin + 21 * 50));
  CHECK(draw(of(0, {}), 24) == all);
  CHECK(draw(of(2, 0), 0).empty());
  CHECK_THROWS_WITH(draw(of(2, {}), 6), ContainsSubstring("nobody says how many samples they belong to"));
  CHECK_THROWS_WITH(draw(of(2, 4), 6), ContainsSubstring("dropout: 6 rows do not belong to 4 samples"));
  CHECK_THROWS_WITH(draw(of(2, 0), 6), ContainsSubstring("do not belong to 0 samples"));

  const TapeOptions step = of(0, 6);  // 6 rows of 2 samples, taken as 6 samples
  draw(step, 6);
  TapeOptions next = step;
  next.first_sample = 2;
  CHECK_THROWS_WITH(draw(next, 6), ContainsSubstring("samples 2 to 7, and another one of its step has 0 to 5"));
  next.first_sample = 6;
  draw(next, 6);
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
  CHECK_THROWS_WITH(relu(y.detach()).backward(), ContainsSubstring("from constants alone") && ContainsSubstring("detach()"));
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

namespace {

// Matrix products and convolutions, one weight used twice, norms and activations between them.
struct SplitNet {
  Store store;
  Parameter<float> kernel = store.add("kernel", {6, 3, 3, 3});
  Parameter<float> transposed = store.add("transposed", {6, 4, 2, 2});
  Parameter<float> norm = store.add("norm", {4 * 14 * 14});
  Parameter<float> hidden = store.add("hidden", {4 * 14 * 14, 4 * 14 * 14});
  Parameter<float> hidden_bias = store.add("hidden_bias", {4 * 14 * 14});
  Parameter<float> output = store.add("output", {5, 4 * 14 * 14});
  Parameter<float> unused = store.add("unused");
  Tensor<float> x{{2, 8, 8, 3}};

  SplitNet() {
    store.store->initialize<float>(0);
    const Tensor<float> values = store.store->values<float>();
    for (std::int64_t i = 0; i < values.numel(); ++i) {
      values.data()[i] = static_cast<float>(0.05 * philox_normal(1, 2, static_cast<std::uint64_t>(i)));
    }
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      x.data()[i] = static_cast<float>(philox_normal(1, 3, static_cast<std::uint64_t>(i)));
    }
  }

  Variable<float> loss(const Variable<float>& input) const {
    auto y = relu(conv2d(input, kernel.variable(), {}, {.padding = {1, 1}}));
    y = conv_transpose2d(y, transposed.variable(), {}, {.stride = {2, 2}, .padding = {1, 1}});
    y = rms_norm<float>(reshape(y, {2, 4 * 14 * 14}), norm.master(), 1e-6);
    for (int use = 0; use < 2; ++use) y = add(y, tanh(linear(y, hidden.variable(), hidden_bias.master())));
    return sum(multiply(linear(y, output.variable(), {}), linear(y, output.variable(), {})));
  }

  std::vector<float> gradients() const {
    const auto all = store.store->gradients<float>().span();
    return {all.begin(), all.end()};
  }
};

}  // namespace

TEST_CASE("a split backward pass gives the same bits: the input's gradient at once, those of weights when they are run") {
  std::vector<float> inputs[2];
  std::vector<float> weights[2];
  for (const bool split : {false, true}) {
    const SplitNet net;
    Listener listener;
    Tape tape;
    tape.listen(*net.store.store, listener);
    if (split) tape.split_backward();
    const auto x = watch(net.x, [&](const Tensor<float>& dx) { inputs[split].assign(dx.data(), dx.data() + dx.numel()); });
    net.loss(x).backward();
    if (split) {
      CHECK(listener.final_parameters == std::vector<int>{net.norm.index()});
      CHECK_FALSE(net.store.store->has_gradient(net.hidden.index()));
      tape.run_weight_gradients();
      CHECK_THROWS_AS(tape.run_weight_gradients(), Error);
      CHECK(listener.final_parameters == std::vector<int>{net.norm.index(), net.unused.index(), net.output.index(),
                                                          net.hidden.index(), net.hidden_bias.index(), net.transposed.index(),
                                                          net.kernel.index()});
    }
    for (const int parameter : listener.final_parameters) {
      if (parameter != net.unused.index()) CHECK(net.store.store->has_gradient(parameter));
    }
    net.store.store->zero_gradient(net.unused.index());
    weights[split] = net.gradients();
  }
  CHECK(std::ranges::any_of(inputs[0], [](float dx) { return dx != 0; }));
  CHECK(inputs[0] == inputs[1]);
  CHECK(weights[0] == weights[1]);
}

TEST_CASE("a parameter that is used, but not on a path to the loss, is final after the weights of a split backward pass") {
  Store store;
  const auto weight = store.add("weight", {2, 2});
  const auto aside = store.add("aside", {2, 2});
  store.store->initialize<float>(0);
  Listener listener;
  Tape tape;
  tape.listen(*store.store, listener);
  tape.split_backward();
  const Variable<float> x(Tensor<float>::full({1, 2}, 1));
  const auto not_in_loss = linear(x, aside.variable(), {});
  sum(linear(x, weight.variable(), {})).backward();
  CHECK(listener.final_parameters.empty());
  tape.run_weight_gradients();
  CHECK(listener.final_parameters == std::vector<int>{weight.index(), aside.index()});
  CHECK_THROWS_AS(tape.split_backward(), Error);
  Tape whole;
  CHECK_THROWS_AS(whole.run_weight_gradients(), Error);
}

TEST_CASE("a split backward pass frees what weights do not need, and the rest with the weights") {
  const auto in_use = [] { return device::host_memory_statistics().in_use_bytes; };
  constexpr std::int64_t rows = 1 << 14;
  constexpr std::size_t activation = rows * 8 * sizeof(float);
  Store store;
  const auto weight = store.add("weight", {8, 8});
  const auto frozen = store.add("frozen", {8, 8});
  frozen.freeze();
  store.store->initialize<float>(0);
  Tape tape;
  tape.split_backward();
  Variable<float> x = watch(Tensor<float>::full({rows, 8}, 0.01F), [](const Tensor<float>&) {});
  x = tanh(linear(x, weight.variable(), {}));
  const std::size_t before = in_use();
  for (int layer = 0; layer < 8; ++layer) x = tanh(linear(x, frozen.variable(), {}));
  auto loss = sum(x);
  x = {};
  CHECK(in_use() >= before + 8 * activation);
  loss.backward();
  CHECK(in_use() <= before);  // the first layer's input and the gradient of its output; nothing for frozen weights
  CHECK(in_use() >= before - activation);
  tape.run_weight_gradients();
  CHECK(in_use() <= before - activation);
}
