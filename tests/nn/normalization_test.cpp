#include "trireme/nn/norm/normalization.hpp"

#include "gradient_check.hpp"
#include "temporary_folder.hpp"
#include "trireme/files/safetensors.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/nn/recurrent/recurrent.hpp"
#include "trireme/nn/weights/weights.hpp"

using namespace trireme;
using namespace trireme::tests;

namespace {

template <typename P>
struct Block : nn::Module<P> {
  using T = typename P::Compute;
  nn::Linear<P> first{*this, "first", {.in = 3, .out = 4}};
  nn::BatchNorm2d<P> bn1{*this, "bn1", {.channels = 4}};
  nn::Linear<P> second{*this, "second", {.in = 4, .out = 3, .bias = false}};
  nn::BatchNorm2d<P> bn2{*this, "bn2", {.channels = 3, .momentum = 0.5}};
  nn::GroupNorm<P> gn{*this, "gn", {.groups = 3, .channels = 3}};

  Variable<T> forward(const Variable<T>& x) const {
    const auto inner = bn1.forward_relu(first.forward(x));
    return gn.forward(bn2.forward_add_relu(second.forward(inner), x));
  }
};

}  // namespace

TEST_CASE("norms have parameters and buffers with torch's names and initial values") {
  Block<Float64> model;
  model.initialize({.seed = 1});
  auto& buffers = model.store().buffers();
  REQUIRE(buffers.size() == 4);
  CHECK(buffers.info(1).name == "bn1.running_var");
  CHECK(buffers.find("bn2.running_mean") == 2);
  CHECK(buffers.find("bn3.running_mean") == -1);
  CHECK(model.bn1.running_mean.value().data()[3] == 0);
  CHECK(model.bn1.running_var.value().data()[3] == 1);
  CHECK(model.bn1.weight.info().name == "bn1.weight");
  CHECK(model.store().find("bn1.running_var") < 0);  // no parameter

  Block<Float64> larger;
  const nn::BatchNorm1d<Float64> plain(larger, "plain", {.channels = 2, .affine = false});
  CHECK_FALSE(plain.weight.defined());
  CHECK(plain.forward(random({4, 2}, 1)).shape() == Shape{4, 2});
}

TEST_CASE("buffers are refused where they come too late or twice") {
  FlatStore store(DType::float32);
  store.add("weight", {2}, Initializer::constant(0));
  store.add_buffer("mean", {2}, 0);
  CHECK_THROWS_WITH(store.add_buffer("weight", {2}, 0), "two parameters or buffers are named weight");
  CHECK_THROWS_WITH(store.add("mean", {2}, Initializer::constant(0)), "two parameters or buffers are named mean");
  store.buffers().values<float>(0);
  CHECK_THROWS_WITH(store.add_buffer("late", {2}, 0), "buffer late was added after the first use of the buffers' values");
  CHECK_THROWS_WITH(store.buffers().values<double>(0), "the store holds float32 and was asked for buffers of float64");
}

TEST_CASE("gradients of a residual block with batch norms, training and in evaluation") {
  Block<Float64> model;
  model.initialize({.seed = 2});
  const auto x = random({2, 3, 3, 3}, 1);
  for (const bool training : {true, false}) {
    CAPTURE(training);
    model.train(training);
    expect_passed(testing::check_parameter_gradients(model.store(), [&] { return model.forward({x}); }));
  }
}

TEST_CASE("training and evaluation are one switch for the whole model") {
  struct Net : nn::Module<Float32> {
    nn::BatchNorm1d<Float32> norm{*this, "norm", {.channels = 2}};
    nn::Dropout<Float32> dropout{*this, "dropout", 0.5};
    nn::Lstm<Float32> lstm{*this, "lstm", {.in = 2, .hidden = 2, .layers = 2, .dropout = 0.5}};
  } net;
  net.initialize({.seed = 1});
  const Variable<float> x(random<float>({16, 3, 2}, 1));
  const auto same = [](const Variable<float>& a, const Variable<float>& b) {
    return std::equal(a.value().data(), a.value().data() + a.value().numel(), b.value().data());
  };
  CHECK(net.norm.training());
  const auto without_dropout = net.lstm.forward(x).out;
  const TapeOptions names{.seed = 1};
  Tape tape(names);
  const auto first = net.dropout.forward(x);
  CHECK_FALSE(same(first, x));
  const auto second = net.dropout.forward(x);
  CHECK_FALSE(same(second, first));
  CHECK_FALSE(same(net.lstm.forward(x).out, without_dropout));
  const auto trained = net.norm.forward(x);
  net.eval();
  CHECK_FALSE(net.dropout.training());
  CHECK(same(net.dropout.forward(x), x));
  CHECK(same(net.lstm.forward(x).out, without_dropout));
  const auto mean = net.norm.running_mean.value().clone();
  CHECK(mean.data()[0] != 0);
  CHECK_FALSE(same(net.norm.forward(x), trained));
  CHECK(net.norm.running_mean.value().data()[0] == mean.data()[0]);
  net.train();
  CHECK(same(net.norm.forward(x), trained));

  // Evaluation draws nothing: what training draws after it is the next call's.
  const Tape again(names.restarted());
  CHECK(same(net.dropout.forward(x), first));
  net.eval();
  net.dropout.forward(x);
  net.train();
  CHECK(same(net.dropout.forward(x), second));
}

TEST_CASE("buffers are saved and loaded with the weights") {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path() / "block.safetensors";
  Block<Float32> model;
  model.initialize({.seed = 1});
  model.forward({random<float>({2, 3, 3, 3}, 1)});
  nn::save_weights<float>(model, path);
  Block<Float32> loaded;
  nn::load_weights<float>(loaded, path);
  for (const auto& [saved, read] :
       {std::pair(model.bn1.running_mean, loaded.bn1.running_mean), std::pair(model.bn2.running_var, loaded.bn2.running_var)}) {
    for (int channel = 0; channel < 3; ++channel) CHECK(saved.value().data()[channel] == read.value().data()[channel]);
  }
  CHECK(loaded.bn2.running_var.value().data()[0] != 1);

  // torch's files hold a count of batches too, and a file without running statistics is refused.
  const SafetensorsFile file(path);
  const std::int64_t batches = 3;
  std::vector<std::vector<float>> values;
  std::vector<TensorRef> all{{"bn1.num_batches_tracked", DType::int64, {}, &batches}}, lacking;
  for (const SafetensorsEntry& entry : file.tensors()) values.push_back(file.read_values<float>(entry.name));
  for (std::size_t index = 0; index < values.size(); ++index) {
    const SafetensorsEntry& entry = file.tensors()[index];
    const TensorRef tensor{entry.name, entry.dtype, entry.shape, values[index].data()};
    all.push_back(tensor);
    if (entry.name != "bn2.running_mean") lacking.push_back(tensor);
  }
  write_safetensors(path, all);
  CHECK_NOTHROW(nn::load_weights<float>(loaded, path));
  write_safetensors(path, lacking);
  try {
    nn::load_weights<float>(loaded, path);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.fields().name == "bn2.running_mean");
  }
}

TEST_CASE("batch norm of half activations keeps statistics and weights in float32") {
  Block<MixedBfloat16> half;
  Block<Float32> wide;
  half.initialize({.seed = 3});
  wide.initialize({.seed = 3});
  const auto x = random<float>({4, 5, 5, 3}, 1);
  Tape tape;
  const auto y = half.forward(cast<bfloat16>(Variable<float>(x)));
  const auto expected = wide.forward({x});
  for (std::int64_t index = 0; index < x.numel(); ++index) {
    CHECK(static_cast<float>(y.value().data()[index]) == Approx(expected.value().data()[index]).margin(0.05));
  }
  CHECK(half.bn1.running_var.value().data()[1] == Approx(wide.bn1.running_var.value().data()[1]).epsilon(0.01));
  sum(cast<float>(y)).backward();
  CHECK(half.store().has_gradient(half.bn1.weight.index()));
}
