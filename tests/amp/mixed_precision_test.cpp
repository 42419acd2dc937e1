// Operations in bfloat16 and float16 against the same operations in double on the same, rounded inputs. Every bound is the
// type's rounding: one of the result, and of sums in float over `terms` products.

#include <cmath>
#include <random>

#include "gradient_check.hpp"
#include "trireme/autograd/operations/attention.hpp"
#include "trireme/autograd/operations/pooling.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/nn/convolution/convolution.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/ops/convolution/convolution.hpp"
#include "trireme/ops/elementwise/cast.hpp"
#include "trireme/ops/matmul/batched_matmul.hpp"
#include "trireme/ops/matmul/matmul.hpp"
#include "trireme/ops/reduce/reduce.hpp"
#include "trireme/ops/reduce/softmax.hpp"

using namespace trireme;
using tests::random;

namespace {

template <typename T>
constexpr double rounding = std::is_same_v<T, bfloat16> ? 0x1p-8 : 0x1p-11;  // half a unit in the last place

template <typename T>
Tensor<double> doubles(const Tensor<T>& x) {
  Tensor<double> wide(x.shape());
  for (std::int64_t i = 0; i < x.numel(); ++i) wide.data()[i] = static_cast<double>(static_cast<float>(x.data()[i]));
  return wide;
}

template <typename T>
void require_near(const Tensor<T>& got, const Tensor<double>& wanted, double relative, double absolute = 1e-4) {
  REQUIRE(got.shape() == wanted.shape());
  double worst = 0;
  for (std::int64_t i = 0; i < got.numel(); ++i) {
    const double error = std::abs(static_cast<double>(static_cast<float>(got.data()[i])) - wanted.data()[i]);
    worst = std::max(worst, error / (absolute + relative * std::abs(wanted.data()[i])));
  }
  REQUIRE(worst <= 1);
}

// Runs the function forward and backward with random upstream gradients: {result, gradients of the inputs}.
template <typename T, typename Function>
std::vector<Tensor<T>> run(const Function& function, const std::vector<Tensor<T>>& inputs, std::uint64_t seed) {
  std::vector<Tensor<T>> results(inputs.size() + 1);
  Tape tape({.seed = 1});
  std::vector<Variable<T>> variables;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    variables.push_back(watch(inputs[i], [&results, i](const Tensor<T>& gradient) { results[i + 1] = gradient; }));
  }
  const Variable<T> y = function(variables);
  results[0] = y.value().clone();
  const Tensor<bfloat16> upstream = random<bfloat16>(y.shape(), seed);  // what float16 and double hold too
  Tensor<T> weights(y.shape());
  for (std::int64_t i = 0; i < upstream.numel(); ++i)
    weights.data()[i] = static_cast<T>(static_cast<float>(upstream.data()[i]));
  sum(multiply(y, Variable<T>(weights))).backward();
  return results;
}

template <typename T, typename Function>
void compare_with_double(const Function& function, const std::vector<Shape>& shapes, double roundings) {
  std::vector<Tensor<T>> inputs;
  std::vector<Tensor<double>> wide;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    inputs.push_back(random<T>(shapes[i], i + 1));
    wide.push_back(doubles(inputs.back()));
  }
  const auto got = run<T>([&](const auto& x) { return function(x); }, inputs, 99);
  const auto wanted = run<double>([&](const auto& x) { return function(x); }, wide, 99);
  for (std::size_t i = 0; i < got.size(); ++i)
    require_near(got[i], wanted[i], roundings * rounding<T>, roundings * rounding<T>);
}

}  // namespace

TEMPLATE_TEST_CASE("casts of whole tensors are those of single elements", "", bfloat16, float16) {
  using T = TestType;
  Tensor<T> all({1 << 16});
  for (std::int64_t i = 0; i < all.numel(); ++i) all.data()[i] = T::from_bits(static_cast<std::uint16_t>(i));
  Tensor<float> floats(all.shape());
  ops::cast(all, floats);
  std::mt19937 generator(1);
  Tensor<float> any({(1 << 16) + 5});
  for (float& element : any.span()) element = std::bit_cast<float>(static_cast<std::uint32_t>(generator()));
  Tensor<T> rounded(any.shape());
  ops::cast(any, rounded);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < all.numel(); ++i) {
    const auto wanted = static_cast<float>(all.data()[i]);
    wrong += std::isnan(wanted) ? !std::isnan(floats.data()[i]) : floats.data()[i] != wanted;
  }
  for (std::int64_t i = 0; i < any.numel(); ++i) {
    wrong += std::isnan(any.data()[i]) ? !std::isnan(static_cast<float>(rounded.data()[i]))
                                       : rounded.data()[i].bits() != T(any.data()[i]).bits();
  }
  CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("elementwise functions, dropout and attention round once", "", bfloat16, float16) {
  using T = TestType;
  // Two roundings: of the product with the upstream gradient that the test adds, and of the result.
  compare_with_double<T>([](const auto& x) { return gelu(x[0]); }, {{37, 61}}, 2);
  compare_with_double<T>([](const auto& x) { return relu(x[0]); }, {{3, 1500}}, 2);
  compare_with_double<T>([](const auto& x) { return leaky_relu(x[0], 0.2); }, {{3, 1500}}, 2);
  compare_with_double<T>([](const auto& x) { return softplus(x[0], {.beta = 3, .threshold = 2}); }, {{37, 61}}, 2);
  compare_with_double<T>([](const auto& x) { return add(x[0], multiply(x[0], x[1])); }, {{9, 200}, {9, 200}}, 4);
  compare_with_double<T>([](const auto& x) { return scale(x[0], 0.25F); }, {{2049}}, 2);
  compare_with_double<T>([](const auto& x) { return dropout(x[0], 0.3, "stream"); }, {{16, 333}}, 3);
  compare_with_double<T>([](const auto& x) { return scaled_dot_product_attention(x[0], {}, {.heads = 3, .causal = true}); },
                         {{2, 33, 3 * 3 * 20}}, 4);
  compare_with_double<T>(
      [](const auto& x) { return scaled_dot_product_attention(x[0], x[1], {.heads = 4, .kv_heads = 2, .keys = 41}); },
      {{2, 33, 4 * 20}, {2, 50, 2 * 2 * 20}}, 4);
  compare_with_double<T>([](const auto& x) { return rotary(x[0], {.size = 10, .heads = 3}); }, {{2, 17, 45}}, 2);
}

TEMPLATE_TEST_CASE("softmax over any dim adds up in float", "", bfloat16, float16) {
  using T = TestType;
  // Backward starts from the rounded result; that of log_softmax takes a multiple of its exponential.
  for (const int dim : {-1, 1, 0}) {
    compare_with_double<T>([&](const auto& x) { return softmax(x[0], dim); }, {{5, 41, 300}}, 3);
    compare_with_double<T>([&](const auto& x) { return log_softmax(x[0], dim); }, {{5, 41, 300}}, 6);
  }
  Tensor<T> x = random<T>({4, 2500}, 1);
  x.data()[7] = T(-std::numeric_limits<float>::infinity());
  const Tensor<T> dy = random<T>(x.shape(), 2);
  Tensor<T> y = x.clone(), dx = random<T>(x.shape(), 3);
  Tensor<double> wide_y(x.shape()), wide_dx = doubles(dx);
  ops::softmax(y, y);
  ops::softmax(doubles(x), wide_y);
  CHECK(static_cast<float>(y.data()[7]) == 0);
  require_near(y, wide_y, 1.01 * rounding<T>, 1e-7);
  ops::softmax_backward(y, dy, dx, true);
  ops::softmax_backward(doubles(y), doubles(dy), wide_dx, true);
  require_near(dx, wide_dx, 1.01 * rounding<T>, 1e-5);
}

TEMPLATE_TEST_CASE("batched products sum in float, over broadcast dims too", "", bfloat16, float16) {
  using T = TestType;
  const auto product = [](const auto& x) { return matmul(x[0], x[1]); };
  compare_with_double<T>(product, {{3, 4, 17, 30}, {3, 4, 30, 9}}, 4);
  compare_with_double<T>(product, {{3, 4, 17, 30}, {30, 9}}, 4);
  compare_with_double<T>(product, {{17, 30}, {200, 1, 30, 9}}, 4);
  const Tensor<T> a = random<T>({300, 6, 8}, 1), dc = random<T>({300, 6, 5}, 2), b = random<T>({1, 8, 5}, 3);
  for (const bool accumulate : {false, true}) {
    const Tensor<T> db = random<T>(b.shape(), 4);
    const Tensor<double> wide = doubles(db);
    ops::batched_matmul_backward<T, Cpu>({.a = a, .b = b, .dc = dc, .db = db, .accumulate_db = accumulate});
    ops::batched_matmul_backward<double, Cpu>(
        {.a = doubles(a), .b = doubles(b), .dc = doubles(dc), .db = wide, .accumulate_db = accumulate});
    require_near(db, wide, 1.01 * rounding<T>, 1e-3);
  }
}

TEMPLATE_TEST_CASE("elementwise losses of half types are float, their gradients round once", "", bfloat16, float16) {
  using T = TestType;
  const Tensor<T> x = random<T>({37, 61}, 1);
  Tensor<float> target = random<float>(x.shape(), 2);
  for (float& element : target.span()) element = 1 / (1 + std::exp(-element));
  const auto compare = [&](const auto& loss_of) {
    const auto run_with = [&](const auto& input, const auto& compared) {
      using X = std::remove_cvref_t<decltype(*input.data())>;
      Tape tape;
      Tensor<X> gradient;
      const auto watched = watch(input, [&](const Tensor<X>& dx) { gradient = dx; });
      const auto loss = loss_of(watched, compared);
      loss.sum.backward();
      return std::pair(loss, gradient);
    };
    const auto [loss, gradient] = run_with(x, target);
    const auto [wide_loss, wide_gradient] = run_with(doubles(x), doubles(target));
    static_assert(std::is_same_v<decltype(loss), const Loss<float>>);
    CHECK(loss.target_weight == wide_loss.target_weight);
    CHECK(std::abs(loss.mean() - wide_loss.mean()) <= 1e-5 * (1 + std::abs(wide_loss.mean())));
    require_near(gradient, wide_gradient, 1.01 * rounding<T>, 1e-5);
  };
  compare([](const auto& in, const auto& to) { return mse_loss(in, to); });
  compare([](const auto& in, const auto& to) { return bce_with_logits(in, to, 2.5); });
  compare([](const auto& in, const auto& to) { return kl_divergence(in, to); });
  compare([](const auto& in, const auto& to) { return kl_divergence(in, to, true); });

  const Tensor<T> teacher = random<T>(x.shape(), 3);
  const double distilled = distillation_loss(Variable<T>(x), teacher, 1.5).mean();
  CHECK(distilled == Approx(distillation_loss(Variable<double>(doubles(x)), doubles(teacher), 1.5).mean()).epsilon(1e-5));
}

TEMPLATE_TEST_CASE("norms of half types are computed in float", "", bfloat16, float16) {
  using T = TestType;
  const Variable<T> x(random<T>({5, 8}, 1));
  const Variable<float> weight(random<float>({8}, 2)), bias(random<float>({8}, 3));
  const auto same = [](const Variable<T>& got, const Variable<T>& expected) {
    CHECK(doubles(got.value()).to_vector() == doubles(expected.value()).to_vector());
  };
  same(layer_norm(x, weight, bias, 1e-5), layer_norm<T>(cast<float>(x), weight, bias, 1e-5));
  same(layer_norm(x, {}, {}, 1e-5), layer_norm<T>(cast<float>(x), {}, {}, 1e-5));
  same(rms_norm(x, weight, 1e-5), rms_norm<T>(cast<float>(x), weight, 1e-5));
  same(rms_norm(x, {}, 1e-5), rms_norm<T>(cast<float>(x), {}, 1e-5));
}

TEMPLATE_TEST_CASE("matrix products sum in float, into half or float", "", bfloat16, float16) {
  using T = TestType;
  for (const bool transpose_a : {false, true}) {
    const Tensor<T> a = random<T>(transpose_a ? Shape{130, 70} : Shape{70, 130}, 1);
    const Tensor<T> b = random<T>({130, 50}, 2);
    for (const bool accumulate : {false, true}) {
      const ops::MatmulOptions options{.transpose_a = transpose_a, .accumulate = accumulate};
      Tensor<T> half = random<T>({70, 50}, 3);
      Tensor<double> wide = doubles(half);
      Tensor<float> floats({70, 50});
      ops::cast(half, floats);
      ops::matmul(a, b, half, options);
      ops::matmul(a, b, floats, options);
      ops::matmul(doubles(a), doubles(b), wide, options);
      require_near(half, wide, rounding<T>, 2e-3);
      require_near(floats, wide, 1e-5);
    }
  }
  const Tensor<T> x = random<T>({1030, 530}, 4);
  Tensor<float> columns({530});
  Tensor<double> wide({530});
  ops::sum_rows(x, columns, false);
  ops::sum_rows(doubles(x), wide, false);
  require_near(columns, wide, 1e-5, 1e-3);
}

TEMPLATE_TEST_CASE("convolutions sum in float, into half images and float gradients of weights", "", bfloat16, float16) {
  using T = TestType;
  const auto check = [](const Shape& image, const Shape& kernel, const ops::Conv2dOptions& options) {
    const auto extent = ops::conv2d_extent({image[1], image[2]}, {kernel[2], kernel[3]}, options);
    const Tensor<T> x = random<T>(image, 1), weight = random<T>(kernel, 2);
    const Tensor<T> dy = random<T>({image[0], extent.height, extent.width, kernel[0]}, 3);
    const Tensor<float> bias = random<float>({kernel[0]}, 4);
    Tensor<T> y(dy.shape());
    Tensor<double> wide_y(dy.shape());
    ops::conv2d(x, weight, bias, options, y);
    ops::conv2d(doubles(x), doubles(weight), doubles(bias), options, wide_y);
    require_near(y, wide_y, rounding<T>, 1e-3);
    for (const bool accumulate : {false, true}) {
      Tensor<T> dx = random<T>(image, 5);
      Tensor<float> dweight = random<float>(kernel, 6);
      Tensor<double> wide_dx = doubles(dx), wide_dweight = doubles(dweight);
      ops::conv2d_backward_data(dy, weight, options, dx, accumulate);
      ops::conv2d_backward_data(doubles(dy), doubles(weight), options, wide_dx, accumulate);
      require_near(dx, wide_dx, rounding<T>, accumulate ? 50 * rounding<T> : 1e-3);  // the addend is rounded too
      ops::conv2d_backward_weight(x, dy, options, dweight, accumulate);
      ops::conv2d_backward_weight(doubles(x), doubles(dy), options, wide_dweight, accumulate);
      require_near(dweight, wide_dweight, 1e-5, 1e-3);
    }
  };
  check({2, 9, 7, 3}, {16, 3, 3, 3}, {.padding = 1});
  check({3, 8, 8, 32}, {32, 32, 3, 3}, {.stride = 2, .padding = 1});
  check({2, 7, 5, 8}, {12, 4, 2, 3}, {.padding = {0, 1}, .dilation = 2, .groups = 2});
  check({2, 6, 6, 16}, {16, 1, 3, 3}, {.padding = 1, .groups = 16});
}

TEMPLATE_TEST_CASE("pooling of half images rounds once", "", bfloat16, float16) {
  using T = TestType;
  const Shape images{3, 9, 8, 37};
  // A pixel can be the maximum of four windows, each with an upstream gradient that is rounded.
  compare_with_double<T>([](const auto& x) { return max_pool2d(x[0], {.kernel = 3, .stride = 2, .padding = 1}); }, {images}, 5);
  compare_with_double<T>([](const auto& x) { return avg_pool2d(x[0], {.kernel = 2, .ceil_mode = true}); }, {images}, 2);
  compare_with_double<T>([](const auto& x) { return adaptive_avg_pool2d(x[0], {2, 3}); }, {images}, 2);
  compare_with_double<T>([](const auto& x) { return adaptive_max_pool2d(x[0], 1); }, {images}, 2);
  // The second contribution adds to the first, which is rounded.
  compare_with_double<T>([](const auto& x) { return add(avg_pool2d(x[0], {.kernel = 2}), max_pool2d(x[0], {.kernel = 2})); },
                         {images}, 4);
}

TEMPLATE_TEST_CASE("weights of batched products have float gradients", "", MixedBfloat16, MixedFloat16) {
  using P = TestType;
  using T = typename P::Compute;
  const auto run = [](auto policy, const Shape& shape, const auto& x) {
    using Policy = decltype(policy);
    struct Net : nn::Module<Policy> {
      Parameter<typename Policy::Compute, Cpu, typename Policy::Master> weight;
      explicit Net(const Shape& of) : weight(this->add_parameter("weight", of, Initializer::normal(0, 1))) {}
    } net(shape);
    net.initialize({.seed = 5});
    std::ranges::transform(net.weight.value().span(), net.weight.value().data(), [](auto value) {
      return static_cast<decltype(value)>(static_cast<float>(T(static_cast<float>(value))));
    });
    net.store().refresh_compute_copy();
    Tape tape;
    sum(matmul({x}, net.weight.variable())).backward();
    return net.weight.gradient().clone();
  };
  const Tensor<T> x = random<T>({40, 2, 7, 30}, 6);
  for (const Shape& shape : {Shape{30, 9}, Shape{2, 30, 9}}) {
    require_near(run(P{}, shape, x), run(Float64{}, shape, doubles(x)), 1e-5, 1e-3);
  }
}

TEMPLATE_TEST_CASE("convolution layers have float gradients", "", MixedBfloat16, MixedFloat16) {
  using P = TestType;
  using T = typename P::Compute;
  const auto run = [](auto policy, const auto& x) {
    using Policy = decltype(policy);
    struct Net : nn::Module<Policy> {
      nn::Conv2d<Policy> down{*this, "down", {.in = 3, .out = 16, .kernel = 3, .stride = 2, .padding = 1}};
      nn::ConvTranspose2d<Policy> up{*this, "up", {.in = 16, .out = 5, .kernel = 4, .stride = 2, .padding = 1}};
    } net;
    net.initialize({.seed = 5});
    Tape tape;
    sum(net.up.forward(relu(net.down.forward({x})))).backward();
    std::vector<Tensor<typename Policy::Gradient>> gradients;
    for (const auto& parameter : {net.down.weight, net.down.bias, net.up.weight, net.up.bias}) {
      gradients.push_back(parameter.gradient().clone());
    }
    return gradients;
  };
  const Tensor<T> x = random<T>({2, 8, 8, 3}, 6);
  const auto gradients = run(P{}, x);
  const auto wanted = run(Float64{}, doubles(x));
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    double largest = 0;
    for (const double element : wanted[i].span()) largest = std::max(largest, std::abs(element));
    require_near(gradients[i], wanted[i], 8 * rounding<T>, 8 * rounding<T> * largest);
  }
}

namespace {

template <typename P, template <typename, typename> typename Norm>
struct Net : nn::Module<P> {
  Norm<P, Cpu> norm{*this, "norm", {.width = 40}};
  nn::Linear<P> layer{*this, "layer", {.in = 40, .out = 40}};
  Norm<P, Cpu> last{*this, "last", {.width = 40}};
};

template <typename P, template <typename, typename> typename Norm>
void compare_net_with_double() {
  using T = typename P::Compute;
  Net<P, Norm> net;
  Net<Float64, Norm> wide;
  net.initialize({.seed = 5});
  wide.initialize({.seed = 5});
  const auto loss_of = [](auto& model, const auto& x) {
    const auto [stream, y] = model.last.add_and_normalize(x, model.layer.forward(model.norm.forward(x)));
    return cross_entropy(y, Tensor<std::int32_t>::from({3}, std::vector<std::int32_t>{1, 39, 7}));
  };
  const Tensor<float> x = random<float>({3, 40}, 6);
  double loss = 0;
  double wanted = 0;
  {
    Tape tape;
    const auto result = loss_of(net, Variable<float>(x));
    static_assert(std::is_same_v<decltype(result), const Loss<float, Cpu>>);
    loss = result.mean();
    result.backward();
  }
  {
    Tape tape;
    const auto result = loss_of(wide, Variable<double>(doubles(x)));
    wanted = result.mean();
    result.backward();
  }
  CHECK(std::abs(loss - wanted) <= 4 * rounding<T> * wanted);
  for (int index = 0; index < net.store().num_parameters(); ++index) {
    INFO(net.store().parameter(index).name);
    const Tensor<double> gradient = wide.store().template gradient<double>(index);
    double largest = 0;
    for (const double element : gradient.span()) largest = std::max(largest, std::abs(element));
    require_near(net.store().template gradient<float>(index), gradient, 8 * rounding<T>, 8 * rounding<T> * largest);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("norms, losses and gradients of weights stay in float", "", MixedBfloat16, MixedFloat16) {
  compare_net_with_double<TestType, nn::LayerNorm>();
  compare_net_with_double<TestType, nn::RmsNorm>();
}
