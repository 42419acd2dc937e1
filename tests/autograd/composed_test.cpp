// Functions that are made of others. The expected numbers are PyTorch's (float64).
#include <cmath>
#include <vector>

#include "gradient_check.hpp"
#include "trireme/autograd/composed/computed_weight.hpp"
#include "trireme/autograd/composed/convolutions.hpp"
#include "trireme/autograd/composed/gated.hpp"
#include "trireme/autograd/composed/masked_attention.hpp"
#include "trireme/autograd/composed/pixel_shuffle.hpp"
#include "trireme/autograd/operations/attention.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"

using namespace trireme;
using namespace trireme::tests;
using testing::check_gradients;

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

}  // namespace

TEST_CASE("convolutions of sequences are PyTorch's") {
  const Variable<double> x(sines({2, 7, 4})), weight(cosines({6, 2, 3})), bias(sines({6}));
  const Conv1dArguments options{.stride = 2, .padding = 1, .dilation = 2, .groups = 2};
  check_result(
      conv1d(x, weight, bias, options), {2, 3, 6},
      {-0.6131591572, 1.4630065645,  0.955932562,   -1.9015081971, 0.8490551322,  2.224738667,   0.5626706298,  3.3401775257,
       2.162956847,   -1.0114112951, 2.5390347378,  3.4798777973,  2.2426425354,  3.0105167753,  0.0645182819,  0.9146495891,
       2.8748160531,  1.9800529306,  -0.0440780685, -0.4878649641, -2.0895570487, -0.2795752441, -0.6920587649, -1.353462309,
       -1.6908726735, -1.7728736655, -2.0739341804, -1.995348202,  -2.1742095284, -1.5191104124, -2.3434099596, -0.7041180339,
       -0.0647337233, -2.8607266365, -1.5045600872, 0.1963114815});
  expect_passed(check_gradients([&](const Inputs& in) { return conv1d(in[0], in[1], in[2], options); },
                                {x.value(), weight.value(), bias.value()}));

  const Variable<double> short_x(sines({1, 3, 4})), back(cosines({4, 1, 3})), of_two(sines({2}));
  const ConvTranspose1dArguments transposed{.stride = 2, .padding = 1, .output_padding = 1, .groups = 2};
  check_result(conv_transpose1d(short_x, back, of_two, transposed), {1, 6, 2},
               {-0.889283765, 1.5796976066, -0.4368153796, 1.3657704712, -0.4089042541, 0.8550924886, 0.2198983974,
                0.5416328782, 0.1782831004, 0.1661607466, -0.2788346103, 0.539285998});
  expect_passed(check_gradients([&](const Inputs& in) { return conv_transpose1d(in[0], in[1], in[2], transposed); },
                                {short_x.value(), back.value(), of_two.value()}));
  CHECK_THROWS_WITH(conv1d(Variable<double>(sines({7, 4})), weight),
                    "conv1d: x [7, 4] needs [batch, length, channels] and the weight [6, 2, 3] 3 dims, with the kernel last");
}

TEST_CASE("convolutions of volumes are PyTorch's") {
  const Variable<double> x(sines({1, 4, 3, 3, 2})), weight(cosines({2, 2, 2, 2, 2})), bias(sines({2}));
  const Conv3dArguments options{.stride = {2, 1, 1}, .padding = {1, 0, 0}, .dilation = {1, 2, 2}};
  check_result(conv3d(x, weight, bias, options), {1, 3, 1, 1, 2},
               {1.276957452, 3.8430872585, 0.8479407552, -3.2776225946, -2.5823133671, 4.1361404871});
  expect_passed(check_gradients([&](const Inputs& in) { return conv3d(in[0], in[1], in[2], options); },
                                {x.value(), weight.value(), bias.value()}));
  const auto grouped =
      conv3d(Variable<double>(sines({1, 4, 3, 3, 4})), Variable<double>(cosines({2, 2, 3, 2, 2})), {}, {.groups = 2});
  check_result(
      slice(grouped, 1, 0, 1), {1, 1, 2, 2, 2},
      {-0.7168857661, 0.0318566588, -0.1248320494, 0.66556926, 0.9939312063, 1.2913259567, 1.2284141675, 1.1199192622});
  CHECK(conv3d(Variable<double>(sines({0, 4, 3, 3, 2})), weight, bias).shape() == Shape{0, 3, 2, 2, 2});
  CHECK_THROWS_WITH(conv3d(x, weight, bias, {.dilation = {4, 1, 1}}),
                    "conv3d: a kernel of depth 2, dilated by 4, does not fit the padded depth 4");
  CHECK_THROWS_WITH(conv3d(x, weight, bias, {.groups = 2}),
                    "conv3d: a weight [2, 2, 2, 2, 2] with 2 groups does not fit 2 channels");
}

TEST_CASE("gated activations and PReLU are PyTorch's") {
  check_result(glu(Variable<double>(sines({2, 6}))), {2, 3},
               {0, 0.6158981754, -0.176234117, -0.4184580827, -0.1709757863, 0.3976364164});
  check_result(glu(Variable<double>(sines({2, 3})), 0), {1, 3}, {0, 0.6158981754, -0.176234117});
  const Variable<double> gate(sines({5})), x(cosines({5}));
  check_result(swiglu(gate, x), {5}, {0, 0.4496333667, 0.0253406447, 0.2375202625, -0.2751985018});
  check_result(geglu(gate, x), {5}, {0, 0.5173806354, 0.0231745899, 0.1483765291, -0.3054675622});
  check_result(reglu(gate, x), {5}, {0, 0.6164287314, 0, 0, -0.4431003063});
  for (const auto kind : {ops::Activation::gelu_tanh, ops::Activation::gelu_erf, ops::Activation::silu,
                          ops::Activation::sigmoid, ops::Activation::tanh}) {
    const Tensor<double> a = random({4, 3}, 1), b = random({4, 3}, 2);
    const auto gated = [kind](const auto& opens, const auto& of) { return gated_activation(kind, opens, of); };
    expect_passed(check_gradients([&](const Inputs& in) { return gated(in[0], in[1]); }, {a, b}));
    expect_passed(check_gradients([&](const Inputs& in) { return gated(in[0], in[0]); }, {a}));  // one variable twice
    expect_passed(check_gradients([&](const Inputs& in) { return gated(in[0], Variable<double>(b)); }, {a}));
    expect_passed(check_gradients([&](const Inputs& in) { return gated(Variable<double>(a), in[0]); }, {b}));
    expect_passed(check_gradients([&](const Inputs& in) { return add(add(in[0], gated(in[0], in[1])), in[1]); }, {a, b}));
  }
  CHECK_THROWS_WITH(swiglu(gate, Variable<double>(sines({4}))), "swiglu: gate has shape [5], x [4]");
  const auto slopes = Tensor<double>::from({3}, {0.1, 0.2, 0.3});
  check_result(prelu(Variable<double>(sines({2, 3})), Variable<double>(slopes)), {2, 3},
               {0, 0.9916648105, -0.0766623306, -0.0925814682, 0.4941133511, 0.7984871126});
  expect_passed(check_gradients([](const Inputs& in) { return glu(in[0], 1); }, {random({2, 4, 3}, 1)}));
  expect_passed(check_gradients([](const Inputs& in) { return prelu(in[0], in[1]); }, {random({4, 3}, 1), slopes}));
  expect_passed(check_gradients([](const Inputs& in) { return prelu(in[0], in[1]); }, {random({4, 3}, 1), random({1}, 2)}));
  CHECK_THROWS_WITH(glu(x), "glu: dim -1 of x [5] is odd and can't be halved");
  CHECK_THROWS_WITH(prelu(x, Variable<double>(slopes)),
                    "prelu: weight has shape [3], but needs [1] or one element for each channel of x [5]");
}

TEST_CASE("pixels and channels are exchanged as PyTorch's") {
  const Variable<double> x(sines({1, 2, 1, 8}));
  const auto y = pixel_shuffle(x, 2);
  check_result(
      y, {1, 4, 2, 2},
      {0, 0.4941133511, 0.9916648105, 0.7984871126, -0.255541102, -0.6998746876, -0.9258146823, -0.6181371122, 0.8591618149,
       0.9997929001, 0.3967405731, -0.1086365954, -0.9613974919, -0.9717984457, -0.1489990258, 0.359058354});
  check_result(pixel_unshuffle(y, 2), {1, 2, 1, 8}, elements(x.value()));
  expect_passed(check_gradients([](const Inputs& in) { return pixel_shuffle(in[0], 3); }, {random({2, 1, 2, 9}, 1)}));
  CHECK_THROWS_WITH(pixel_shuffle(x, 3),
                    "pixel_shuffle: x [1, 2, 1, 8] needs [batch, height, width, channels] with channels divisible by 3^2");
}

TEST_CASE("stochastic depth drops samples, the same ones however a batch is divided") {
  const auto x = random({64, 3, 2}, 1);
  const auto dropped = [&](std::int64_t first, std::int64_t count) {
    Tape tape({.seed = 5, .step = 2, .first_sample = first, .samples = count});
    return drop_path(Variable<double>(x.narrow(first, count)), 0.25, "block").value();
  };
  const auto all = dropped(0, 64);
  int zeros = 0;
  for (std::int64_t sample = 0; sample < 64; ++sample) {
    const bool zero = all.at(sample, 0, 0) == 0;
    zeros += zero ? 1 : 0;
    for (std::int64_t i = 0; i < 6; ++i) {
      CHECK(all.at(sample, i / 2, i % 2) == Approx(zero ? 0 : x.at(sample, i / 2, i % 2) / 0.75));
    }
  }
  CHECK(zeros > 6);
  CHECK(zeros < 28);
  CHECK(elements(dropped(40, 24)) == elements(all.narrow(40, 24)));
  CHECK(elements(drop_path(Variable<double>(x), 0.25, "block").value()) == elements(x));  // no tape
  expect_passed(check_gradients([](const Inputs& in) { return drop_path(in[0], 0.5, "block"); }, {random({6, 3}, 1)}));
}

TEST_CASE("weight norm is PyTorch's, spectral norm divides by the largest singular value") {
  const Variable<double> v(sines({3, 2, 2})), g(Tensor<double>::from({3, 1, 1}, {1, 2, 0.5}));
  check_result(weight_norm(v, g), {3, 2, 2},
               {0, 0.718327447, -0.1851050733, -0.6706279078, 0.746251822, 1.2059428495, -1.0570100152, -0.9335630078,
                0.316515152, 0.1461591992, -0.3541787682, -0.0548912306});
  expect_passed(
      check_gradients([](const Inputs& in) { return weight_norm(in[0], in[1]); }, {random({3, 4}, 1), random({3}, 2)}));

  const auto weight = cosines({3, 2, 2});
  SingularVectors<double, Cpu> vectors{.left = Tensor<double>::full({3}, 1)};
  for (int step = 0; step < 30; ++step) vectors = power_iteration(weight, vectors.left);
  auto wanted = elements(weight);
  for (double& element : wanted) element /= 2.4238628282;  // torch.linalg.svdvals
  check_result(spectral_norm(Variable<double>(weight), vectors), {3, 2, 2}, wanted);
  expect_passed(check_gradients([&](const Inputs& in) { return spectral_norm(in[0], vectors); }, {weight}));
  CHECK_THROWS_WITH(spectral_norm(Variable<double>(random({3, 5}, 1)), vectors),
                    "spectral_norm: vectors of 3 and 4 elements do not fit the weight [3, 5]");
}

TEST_CASE("a computed weight is rounded for the product, and its gradient is not") {
  Tape tape;
  std::vector<float> gradient;
  const auto weight = watch(Tensor<float>::from({1, 2}, {1.001f, -2}), [&](const Tensor<float>& d) { gradient = elements(d); });
  const Variable<bfloat16> x(Tensor<bfloat16>::from({1, 2}, {bfloat16(1.0f), bfloat16(3.0f)}));
  const auto y = linear(x, computed_weight<bfloat16>(scale(weight, 2.0f)));
  CHECK(static_cast<float>(y.value().item()) == -10);
  y.backward();
  CHECK(gradient == std::vector<float>{2, 6});
}

TEST_CASE("attention with a bias, a mask, a window and shared keys is PyTorch's") {
  const Variable<double> q(sines({1, 2, 3, 4})), k(cosines({1, 2, 5, 4})), v(sines({1, 2, 5, 2}));
  const AttentionMask<double> biased{.bias = Variable<double>(cosines({3, 5}))};
  check_result(masked_attention(q, k, v, biased), {1, 2, 3, 2},
               {0.040700513, 0.6579208016, 0.2059749444, 0.4756001431, 0.3777273646, 0.3584131026, -0.400557583, 0.0539020556,
                -0.0622998471, 0.0781067578, 0.0064038069, 0.1194480208});
  const Doubles causal{0.1465546671,  0.6804920935, 0.0602094782, 0.5550394221,  0.2296674434, 0.5289490967,
                       -0.4884657718, 0.0999363396, 0.0569081773, -0.0932390991, 0.1555808684, 0.0015308681};
  check_result(masked_attention(q, k, v, {.causal = true}), {1, 2, 3, 2}, causal);
  const auto lower = tril(Tensor<double>::full({3, 5}, 1), 2);
  check_result(masked_attention(q, k, v, {.mask = gt(lower, 0.5)}), {1, 2, 3, 2}, causal);
  check_result(masked_attention(q, k, v, {.causal = true, .window = 2}, {.scale = 0.3}), {1, 2, 3, 2},
               {0.2341844155, 0.2006170827, 0.0660678262, 0.2906263634, 0.2236587233, -0.0169494884, -0.1782102908,
                0.1708057667, -0.1075700312, -0.0820012477, 0.1295018319, 0.0481593696});
  check_result(
      masked_attention(Variable<double>(sines({1, 4, 2, 2})), Variable<double>(cosines({1, 2, 3, 2})),
                       Variable<double>(sines({1, 2, 3, 2}))),
      {1, 4, 2, 2},
      {0.0988822472, 0.5889159067, 0.0490430044, -0.0302171515, 0.0556258915, 0.6223369253, 0.1095007685, 0.0749203167,
       -0.1686702632, -0.1958802966, -0.541188812, -0.119934536, -0.0586422097, -0.1002784104, -0.504751553, -0.1670750676});

  // The same as the operation without a matrix of attention weights.
  const auto packed_q = join_heads(q), packed_kv = cat({join_heads(k), join_heads(k)}, 2);
  Tensor<std::int32_t> padding = Tensor<std::int32_t>::zeros({1, 5});
  padding.at(0, 1) = 1;
  const auto fused = scaled_dot_product_attention(packed_q, packed_kv, {.heads = 2, .causal = true}, padding);
  check_result(join_heads(masked_attention(q, k, k, {.key_padding_mask = padding, .causal = true})), {1, 3, 8},
               elements(fused.value()));

  // A hidden key has weight 0, whatever the other finite scores are.
  const Variable<double> low(Tensor<double>::full({1, 2, 3, 4}, -1e20)), high(Tensor<double>::full({1, 2, 5, 4}, 1e20));
  const auto of_two = masked_attention(low, high, v, {.mask = lt(arange<double>(5), 2)});
  check_result(of_two, {1, 2, 3, 2},
               elements(masked_attention(scale(q, 0.0), k, v, {.mask = lt(arange<double>(5), 2)}).value()));

  // A query that sees nothing gets zeros, and gradients are finite.
  const auto none = masked_attention(q, k, v, {.mask = gt(Tensor<double>::zeros({1, 5}), 1)});
  check_result(none, {1, 2, 3, 2}, Doubles(12, 0));
  expect_passed(check_gradients(
      [](const Inputs& in) {
        return masked_attention(in[0], in[1], in[2], {.bias = in[3], .mask = gt(arange<double>(3).reshape({3, 1}), 0)});
      },
      {q.value(), k.value(), v.value(), random({2, 3, 5}, 4)}));
  expect_passed(check_gradients(
      [](const Inputs& in) { return masked_attention(in[0], in[1], in[2], {.bias = in[3], .causal = true, .window = 2}, {}); },
      {q.value(), k.value(), v.value(), random({2, 3, 5}, 4)}));
  expect_passed(check_gradients(
      [](const Inputs& in) { return masked_attention(in[0], in[1], in[2], {}, {.dropout = 0.4, .stream = "attention"}); },
      {q.value(), k.value(), v.value()}));
  // Some of four heads drop the same elements as among all four.
  const auto part = [&](const Inputs& in) {
    return masked_attention(in[0], in[1], in[2], {}, {.dropout = 0.4, .stream = "attention", .all_heads = 4, .first_head = 2});
  };
  expect_passed(check_gradients(part, {q.value(), k.value(), v.value()}));
  const Doubles two = [&] {
    const Tape tape({.seed = 5});
    return elements(part({q, k, v}).value());
  }();
  const Tape tape({.seed = 5});
  const auto doubled = [](const Variable<double>& x) { return cat({x, x}, 1); };
  const auto four = masked_attention(doubled(q), doubled(k), doubled(v), {}, {.dropout = 0.4, .stream = "attention"});
  check_result(narrow(four, 1, 2, 2), {1, 2, 3, 2}, two);
  CHECK_THROWS_WITH(masked_attention(q, k, v, {}, {.all_heads = 3, .first_head = 2}),
                    "masked_attention: 2 heads from head 2 on do not lie in 3 heads");
  CHECK_THROWS_WITH(masked_attention(q, k, v, {.bias = Variable<double>(random({2, 2, 3, 5}, 1))}),
                    "masked_attention: a bias of shape [2, 2, 3, 5] can't be broadcast to [1, 2, 3, 5]");
  CHECK_THROWS_WITH(masked_attention(q, v, k),
                    "masked_attention: q [1, 2, 3, 4], k [1, 2, 5, 2] and v [1, 2, 5, 4] do not fit: they need [batch, heads, "
                    "time, size]");
  CHECK_THROWS_WITH(masked_attention(q, k, v, {.window = -1}), "masked_attention: the window is -1, but must not be below 0");
}
