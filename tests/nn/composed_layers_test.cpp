// Layers that are made of other functions. The expected numbers are PyTorch's (float64).
#include <cmath>
#include <memory>
#include <vector>

#include "comm/expect.hpp"
#include "gradient_check.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/nn/attention/attention.hpp"
#include "trireme/nn/convolution/convolution.hpp"
#include "trireme/nn/layers/gated.hpp"
#include "trireme/nn/layers/upsampling.hpp"
#include "trireme/nn/norm/normalization.hpp"
#include "trireme/nn/norm/normalized_weights.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using namespace trireme::tests;

namespace {

using Doubles = std::vector<double>;

Tensor<double> sines(const Shape& shape) {
  Tensor<double> tensor(shape);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.data()[i] = std::sin(1.7 * static_cast<double>(i));
  return tensor;
}
Tensor<double> cosines(const Shape& shape) {
  Tensor<double> tensor(shape);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.data()[i] = std::cos(0.9 * static_cast<double>(i));
  return tensor;
}

void check_result(const Variable<double>& y, const Shape& shape, const Doubles& wanted) {
  CHECK(y.shape() == shape);
  const auto got = elements(y.value());
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i] == Approx(wanted[i]).margin(1e-9));
  }
}

struct Attention : nn::Module<Float64> {
  using Module::Module;
  nn::MultiheadAttention<Float64> attention{*this, "attention", {.embed_dim = 4, .num_heads = 2}};
};

}  // namespace

TEST_CASE("cross-attention, and attention with a bias, are those of torch.nn.MultiheadAttention") {
  Attention model;
  auto& store = model.store();
  store.write_values(store.find("attention.in_proj_weight"), cosines({12, 4}));
  store.write_values(store.find("attention.in_proj_bias"), sines({12}));
  store.write_values(store.find("attention.out_proj.weight"), sines({4, 4}));
  store.write_values(store.find("attention.out_proj.bias"), cosines({4}));
  const Variable<double> x(sines({2, 3, 4})), memory(cosines({2, 4, 4}));
  Tensor<std::int32_t> padding = Tensor<std::int32_t>::zeros({2, 4});
  padding.at(0, 3) = 1;
  const Doubles cross{2.8324047377, 1.8453280105,  0.0681879572, -1.6141674447, 2.8433725267, 1.830094473,
                      0.0307321697, -1.6640618424, 2.7136684272, 1.7862863435,  0.0842629134, -1.5271747244,
                      1.2128524634, 2.0219272621,  1.9948101238, 1.5592342567,  1.198696653,  1.5575485875,
                      1.2015066256, 0.6442207906,  1.0595265487, 1.4530404193,  1.1589584515, 0.6747464072};
  check_result(model.attention.attend(x, memory, {.key_padding_mask = padding}), {2, 3, 4}, cross);
  const auto all = gt(Tensor<double>::full({1, 4}, 1), 0);  // the other way, of a mask that hides nothing
  check_result(model.attention.attend(x, memory, {.mask = all, .key_padding_mask = padding}), {2, 3, 4}, cross);
  check_result(
      model.attention.attend(x, memory, {.bias = Variable<double>(cosines({3, 4}))}), {2, 3, 4},
      {2.3447862623, 1.6536749597, 0.2225610699, -1.1540912004, 3.2939169758, 1.9679312804, -0.1801423304, -2.1685661723,
       2.3014287184, 1.6137993565, 0.1965831151, -1.1593859346, 1.4986948218, 2.2146148527, 2.0440119808,  1.4520986081,
       1.556984186,  1.6165721529, 0.945848972,  0.1406609802,  0.8636250697, 1.5683041379, 1.555279906,   1.2486044443});
  // attend() with x as keys and values is forward().
  check_result(model.attention.attend(x, x), {2, 3, 4}, elements(model.attention.forward(x).value()));
  for (const bool plain : {true, false}) {
    CAPTURE(plain);
    expect_passed(testing::check_parameter_gradients(store, [&] {
      return model.attention.attend(x, memory, plain ? AttentionMask<double>{} : AttentionMask<double>{.window = 2});
    }));
  }
}

TEST_CASE("attention has the parameters of torch.nn.MultiheadAttention, and may do without biases") {
  struct Net : nn::Module<Float64> {
    nn::MultiheadAttention<Float64> whole{*this, "whole", {.embed_dim = 8, .num_heads = 4, .num_kv_heads = 2}};
    nn::MultiheadAttention<Float64> plain{*this, "plain", {.embed_dim = 4, .num_heads = 2, .bias = false}};
  } net;
  net.initialize({.seed = 1});
  std::vector<std::string> names;
  for (int i = 0; i < net.store().num_parameters(); ++i) names.push_back(net.store().parameter(i).name);
  CHECK(names == std::vector<std::string>{"whole.in_proj_weight", "whole.in_proj_bias", "whole.out_proj.weight",
                                          "whole.out_proj.bias", "plain.in_proj_weight", "plain.out_proj.weight"});
  CHECK(net.whole.in_proj_bias.info().shape == Shape{16});
  const Variable<double> x(random({2, 3, 4}, 1));
  check_result(net.plain.attend(x, x), {2, 3, 4}, elements(net.plain.forward(x).value()));
  const Net other;
  CHECK_THROWS_WITH(nn::MultiheadAttention<Float64>(other, "none", {.num_heads = 2}),
                    ContainsSubstring("none: attention needs embed_dim above 0"));
  CHECK_THROWS_WITH(nn::MultiheadAttention<Float64>(other, "odd", {.embed_dim = 6, .num_heads = 4}),
                    ContainsSubstring("odd: 4 heads do not divide a width of 6"));
}

TEST_CASE("a window and dropout of attention are options of the layer") {
  struct Net : nn::Module<Float64> {
    nn::MultiheadAttention<Float64> whole{
        *this, "whole", {.embed_dim = 8, .num_heads = 4, .num_kv_heads = 2, .causal = true, .rotary_base = 100}};
    nn::MultiheadAttention<Float64> local{
        *this, "local", {.embed_dim = 8, .num_heads = 4, .num_kv_heads = 2, .causal = true, .rotary_base = 100, .window = 3}};
    nn::MultiheadAttention<Float64> dropping{*this, "dropping", {.embed_dim = 8, .num_heads = 2, .dropout = 0.5}};
  } net;
  net.initialize({.seed = 2});
  auto& store = net.store();
  for (const char* name : {"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"}) {
    store.write_values(store.find(std::string("local.") + name),
                       store.read_values<double>(store.find(std::string("whole.") + name)));
  }
  const auto x = random({2, 6, 8}, 1);
  const auto local = net.local.forward(Variable<double>(x));
  check_result(net.whole.attend(Variable<double>(x), Variable<double>(x), {.window = 3}), {2, 6, 8}, elements(local.value()));
  // The first three queries see all that the whole layer sees.
  const auto whole = net.whole.forward(Variable<double>(x));
  for (std::int64_t i = 0; i < 3 * 8; ++i) CHECK(local.value().data()[i] == Approx(whole.value().data()[i]).margin(1e-12));
  CHECK(std::abs(local.value().at(0, 5, 0) - whole.value().at(0, 5, 0)) > 1e-6);

  const auto dropped = [&] {
    Tape tape({.seed = 3});
    return elements(net.dropping.forward(Variable<double>(x)).value());
  };
  const auto kept = elements(net.dropping.forward(Variable<double>(x)).value());  // no tape
  CHECK(dropped() == dropped());
  CHECK(dropped() != kept);
  net.eval();
  check_result(net.dropping.forward(Variable<double>(x)), {2, 6, 8}, dropped());
  const Attention other;
  CHECK_THROWS_WITH(nn::MultiheadAttention<Float64>(other, "bad", {.embed_dim = 8, .window = -1}),
                    "bad: the window is -1 and dropout 0, but must be at least 0 and lie in [0, 1)");
}

TEST_CASE("ranks of a tensor axis attend to a memory as one does") {
  const auto x = random({2, 3, 8}, 1), memory = random({2, 5, 8}, 2);
  struct Net : nn::Module<Float64> {
    using Module::Module;
    nn::MultiheadAttention<Float64> attention{*this, "attention", {.embed_dim = 8, .num_heads = 4}};
    nn::GatedMlp<Float64> mlp{*this, "mlp", {.width = 8, .hidden = 12, .gate = nn::Gate::geglu}};
    Variable<double> forward(const Variable<double>& in, const Variable<double>& of, std::int64_t window) const {
      return mlp.forward(attention.attend(in, of, {.window = window}));
    }
  };
  for (const std::int64_t window : {0, 2}) {
    Doubles result, of_memory;
    const auto run = [&](const ModelContext& context) {
      Net net(context);
      net.initialize({.seed = 4});
      std::pair<Doubles, Doubles> found;
      Tape tape;
      const auto watched = watch(memory, [&](const Tensor<double>& d) { found.second = elements(d); });
      const auto y = net.forward(Variable<double>(x), watched, window);
      found.first = elements(y.value());
      y.backward();
      return found;
    };
    std::tie(result, of_memory) = run({});
    testing::run_ranks(2, [&](const Group& world) {
      const auto [part, of_part] = run({.tensor = std::make_shared<Group>(world)});
      for (std::size_t i = 0; i < result.size(); ++i) {
        test::expect(std::abs(part[i] - result[i]) < 1e-12, "{} instead of {}", part[i], result[i]);
      }
      for (std::size_t i = 0; i < of_memory.size(); ++i) {
        test::expect(std::abs(of_part[i] - of_memory[i]) < 1e-12, "gradient {} instead of {}", of_part[i], of_memory[i]);
      }
    });
  }
}

TEST_CASE("ranks of a tensor axis drop the shares that one rank drops, and a sequence-parallel model has windows too") {
  const auto x = random({2, 4, 8}, 1);
  struct Net : nn::Module<Float64> {
    using Module::Module;
    nn::MultiheadAttention<Float64> dropping{
        *this, "dropping", {.embed_dim = 8, .num_heads = 4, .num_kv_heads = 2, .causal = true, .dropout = 0.4}};
    nn::MultiheadAttention<Float64> local{
        *this, "local", {.embed_dim = 8, .num_heads = 4, .causal = true, .rotary_base = 100, .window = 2, .dropout = 0.3}};
  };
  const auto run = [&](const ModelContext& context) {
    Net net(context);
    net.initialize({.seed = 4});
    Doubles found;
    const Tape tape({.seed = 3});
    if (!context.sequence_parallel) {
      const Variable<double> y = net.dropping.forward(x);
      const auto append = [&](const Tensor<double>& values) {
        found.insert(found.end(), values.span().begin(), values.span().end());
      };
      append(y.value());
      append(net.local.attend(y, x).value());
      append(net.local.forward(y).value());
      return found;
    }
    const int rank = context.tensor->rank();  // its rows of the batch's eight
    const Variable<double> mine(x.reshape({8, 8}).narrow(rank * 4, 4));
    for (const auto* attention : {&net.dropping, &net.local}) {
      const auto y = gather_rows(attention->forward(mine, {}, 4), *context.tensor);
      found.insert(found.end(), y.value().span().begin(), y.value().span().end());
    }
    return found;
  };
  const auto check = [](const Doubles& part, const Doubles& whole) {
    test::expect(part.size() == whole.size(), "{} numbers instead of {}", part.size(), whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      test::expect(std::abs(part[i] - whole[i]) < 1e-12, "{} instead of {}", part[i], whole[i]);
    }
  };
  const Doubles whole = run({});
  const Doubles sequences = [&] {  // both layers on x
    Net net;
    net.initialize({.seed = 4});
    const Tape tape({.seed = 3});
    Doubles found = elements(net.dropping.forward(x).value());
    const Doubles local = elements(net.local.forward(x).value());
    found.insert(found.end(), local.begin(), local.end());
    return found;
  }();
  testing::run_ranks(2, [&](const Group& world) {
    check(run({.tensor = std::make_shared<Group>(world)}), whole);
    check(run({.tensor = std::make_shared<Group>(world), .sequence_parallel = true}), sequences);
  });
}

TEST_CASE("layers of sequences and volumes have torch's names, shapes and initial values") {
  struct Net : nn::Module<Float64> {
    nn::Conv1d<Float64> down{*this, "down", {.in = 4, .out = 6, .kernel = 3, .stride = 2, .groups = 2}};
    nn::ConvTranspose1d<Float64> up{*this, "up", {.in = 6, .out = 4, .kernel = 4, .stride = 2, .groups = 2, .bias = false}};
    nn::Conv3d<Float64> volume{*this, "volume", {.in = 2, .out = 3, .kernel = {1, 2, 3}}};
    nn::PRelu<Float64> prelu{*this, "prelu", {.channels = 4}};
  } net;
  net.initialize({.seed = 1});
  CHECK(net.down.weight.info().name == "down.weight");
  CHECK(net.down.weight.info().shape == Shape{6, 2, 3});
  CHECK(net.up.weight.info().shape == Shape{6, 2, 4});
  CHECK_FALSE(net.up.bias.defined());
  CHECK(net.volume.weight.info().shape == Shape{3, 2, 1, 2, 3});
  CHECK(net.volume.weight.info().initializer.b == Approx(1 / std::sqrt(12)));
  CHECK(net.prelu.weight.value().at(3) == 0.25);
  const Variable<double> x(random({2, 9, 4}, 1)), volume(random({1, 2, 3, 4, 2}, 3));
  expect_passed(testing::check_parameter_gradients(net.store(), [&] {
    return add(sum(net.prelu.forward(net.up.forward(net.down.forward(x)))), sum(net.volume.forward(volume)));
  }));
  CHECK_THROWS_WITH(nn::Conv1d<Float64>(net, "bad", {.in = 4, .out = 6, .kernel = 3, .groups = 3}),
                    "bad: 3 groups do not divide 4 and 6 channels");
}

TEST_CASE("instance norm, upsampling and pixel shuffle are PyTorch's") {
  struct Net : nn::Module<Float64> {
    nn::InstanceNorm2d<Float64> norm{*this, "norm", {.channels = 3}};
    nn::InstanceNorm2d<Float64> affine{*this, "affine", {.channels = 3, .affine = true}};
    nn::Upsample<Float64> up{*this, "up", {.scale = 2, .mode = InterpolateMode::bilinear}};
    nn::PixelShuffle<Float64> shuffle{*this, "shuffle", 2};
    nn::DropPath<Float64> path{*this, "path", 0.5};
  } net;
  net.initialize({.seed = 1});
  CHECK(net.store().num_parameters() == 2);
  const Variable<double> x(sines({1, 2, 2, 3}));
  const Doubles normalized{0.5788635344,  1.2759349515,  -1.0994289616, -1.1654576632, 0.6505376065,  0.9378281759,
                           -0.7397656432, -0.7475056988, 1.0551020481,  1.326359772,   -1.1789668593, -0.8935012623};
  check_result(net.norm.forward(x), {1, 2, 2, 3}, normalized);
  check_result(net.affine.forward(x), {1, 2, 2, 3}, normalized);
  check_result(
      net.up.forward(Variable<double>(sines({1, 2, 2, 1}))), {1, 4, 4, 1},
      {0, 0.2479162026, 0.7437486078, 0.9916648105, -0.0638852755, 0.0801597777, 0.3682498841, 0.5122949373, -0.1916558265,
       -0.2553530722, -0.3827475635, -0.4464448091, -0.255541102, -0.4231094971, -0.7582462873, -0.9258146823});
  CHECK(net.shuffle.forward(Variable<double>(sines({1, 2, 1, 8}))).shape() == Shape{1, 4, 2, 2});
  CHECK(elements(net.path.forward(x).value()) == elements(x.value()));
  Tape tape({.seed = 1});
  const auto dropped = net.path.forward(Variable<double>(Tensor<double>::full({64, 1}, 1)));
  for (const double element : dropped.value().span()) CHECK((element == 0 || element == 2));
}

TEST_CASE("layers with weight norm and with spectral norm") {
  struct Net : nn::Module<Float64> {
    nn::WeightNormLinear<Float64> first{*this, "first", {.in = 4, .out = 3}};
    nn::WeightNormConv1d<Float64> conv{*this, "conv", {.in = 3, .out = 4, .kernel = 3, .arguments = {.padding = 1}}};
    nn::SpectralNormLinear<Float64> second{*this, "second", {.in = 4, .out = 4, .bias = false}};
    nn::SpectralNormConv2d<Float64> last{*this, "last", {.in = 4, .out = 2, .kernel = {1, 2}}};
    Variable<double> forward(const Variable<double>& x) const {
      return last.forward(unsqueeze(second.forward(conv.forward(first.forward(x))), 1));
    }
  } net;
  net.initialize({.seed = 3});
  CHECK(net.first.weight_g.info().shape == Shape{3, 1});
  CHECK(net.conv.weight_g.info().shape == Shape{4, 1, 1});
  CHECK(net.conv.weight_v.info().name == "conv.weight_v");
  CHECK_FALSE(net.second.bias.defined());
  const Variable<double> x(random({2, 5, 4}, 1));
  for (int step = 0; step < 200; ++step) {
    const Tape tape;
    net.forward(x);
  }
  // The product with a matrix of spectral norm 1 makes no row longer, and keeps the length of one row.
  const auto u = net.second.weight_u.value();
  CHECK(net.second.forward(Variable<double>(Tensor<double>::zeros({1, 4}))).value().at(0, 0) == 0);
  double square = 0;
  for (const double element : u.span()) square += element * element;
  CHECK(square == Approx(1));
  const auto right = power_iteration(net.second.weight.value(), u).right.reshape({1, 4});
  const auto y = net.second.forward(Variable<double>(right));
  for (std::int64_t i = 0; i < 4; ++i) CHECK(y.value().data()[i] == Approx(u.data()[i]).margin(1e-6));
  net.eval();
  const auto before = elements(u);
  {
    const Tape tape;
    net.forward(x);
  }
  CHECK(elements(u) == before);
  // The singular vectors are constants for the gradient; if they are exact, this is the full gradient.
  expect_passed(testing::check_parameter_gradients(net.store(), [&] { return net.forward(x); }, {.tolerance = 1e-4}));
}

TEST_CASE("composed layers compute in mixed precision") {
  struct Net : nn::Module<MixedBfloat16> {
    nn::Conv1d<MixedBfloat16> conv{*this, "conv", {.in = 4, .out = 4, .kernel = 3, .padding = 1}};
    nn::GatedMlp<MixedBfloat16> mlp{*this, "mlp", {.width = 4, .hidden = 8}};
    nn::PRelu<MixedBfloat16> prelu{*this, "prelu"};
    nn::MultiheadAttention<MixedBfloat16> attention{*this, "attention", {.embed_dim = 4, .num_heads = 2, .window = 2}};
    nn::WeightNormLinear<MixedBfloat16> normal{*this, "normal", {.in = 4, .out = 4}};
    nn::SpectralNormLinear<MixedBfloat16> spectral{*this, "spectral", {.in = 4, .out = 4}};
  } net;
  net.initialize({.seed = 1});
  Tape tape;
  const Variable<bfloat16> x(random<bfloat16>({2, 5, 4}, 1));
  const auto y =
      net.attention.forward(net.prelu.forward(net.mlp.forward(net.spectral.forward(net.normal.forward(net.conv.forward(x))))));
  CHECK(y.shape() == x.shape());
  sum(cast<float>(y)).backward();
  for (int index = 0; index < net.store().num_parameters(); ++index) {
    CAPTURE(net.store().parameter(index).name);
    CHECK(net.store().has_gradient(index));
    double largest = 0;
    for (const float element : net.store().gradient<float>(index).span())
      largest = std::max(largest, std::abs(double{element}));
    CHECK(std::isfinite(largest));
  }
}
