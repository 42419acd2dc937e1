// Backward passes that compute the gradients of weights later.
#include <algorithm>
#include <vector>

#include "autograd/small_store.hpp"
#include "catch.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/convolution.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/loss.hpp"
#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/autograd/operations/norm.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/autograd/parameter.hpp"
#include "trireme/autograd/tape.hpp"
#include "trireme/core/philox.hpp"

using namespace trireme;
using namespace trireme::tests;

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
