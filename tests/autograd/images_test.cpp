#include <array>

#include "gradient_check.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/convolution.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/pooling.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/autograd/record.hpp"

using namespace trireme;
using namespace trireme::tests;
using testing::check_gradients;

TEST_CASE("gradients of convolutions") {
  const auto check = [](const Shape& x, const Shape& weight, const ops::Conv2dOptions& options) {
    CAPTURE(x.str(), weight.str());
    expect_passed(check_gradients([&](const Inputs& in) { return conv2d(in[0], in[1], in[2], options); },
                                  {random(x, 1), random(weight, 2), random({weight[0]}, 3)}));
  };
  check({2, 5, 4, 3}, {4, 3, 3, 3}, {.padding = 1});
  check({1, 7, 6, 4}, {6, 2, 3, 2}, {.stride = {2, 1}, .padding = {0, 2}, .dilation = {2, 3}, .groups = 2});
  check({2, 4, 4, 3}, {3, 1, 2, 2}, {.stride = 3, .groups = 3});
  check({2, 1, 1, 3}, {2, 3, 1, 1}, {});
  expect_passed(check_gradients([](const Inputs& in) { return conv2d(in[0], in[1]); },
                                {random({1, 3, 3, 2}, 1), random({2, 2, 2, 2}, 2)}));
  // x twice: the second contribution adds
  expect_passed(check_gradients([](const Inputs& in) { return add(conv2d(in[0], in[1]), conv2d(in[0], in[1])); },
                                {random({1, 3, 3, 2}, 1), random({2, 2, 2, 2}, 2)}));
}

TEST_CASE("flatten takes channels before pixels, and unflatten back") {
  const auto x = random({2, 3, 2, 4}, 1);
  const auto flat = flatten(Variable<double>(x));
  CHECK(flat.shape() == Shape{2, 24});
  for (const auto& [image, y, column, channel] : {std::array{0, 0, 0, 0}, {1, 2, 1, 3}, {1, 0, 1, 2}, {0, 2, 0, 1}}) {
    CHECK(flat.value().data()[image * 24 + channel * 6 + y * 2 + column] ==
          x.data()[((image * 3 + y) * 2 + column) * 4 + channel]);
  }
  const auto back = unflatten(flat, {3, 2}, 4);
  CHECK(back.shape() == x.shape());
  for (std::int64_t index = 0; index < x.numel(); ++index) CHECK(back.value().data()[index] == x.data()[index]);
  expect_passed(check_gradients([](const Inputs& in) { return flatten(in[0]); }, {x}));
  expect_passed(check_gradients([](const Inputs& in) { return unflatten(in[0], {3, 2}, 4); }, {random({2, 24}, 1)}));
  CHECK_THROWS_AS(flatten(flat), Error);
  CHECK_THROWS_AS(unflatten(flat, {3, 2}, 3), Error);
}

TEST_CASE("gradients of transposed convolutions") {
  const auto check = [](const Shape& x, const Shape& weight, const ops::ConvTranspose2dOptions& options) {
    CAPTURE(x.str(), weight.str());
    expect_passed(check_gradients([&](const Inputs& in) { return conv_transpose2d(in[0], in[1], in[2], options); },
                                  {random(x, 1), random(weight, 2), random({weight[1] * options.groups}, 3)}));
  };
  check({2, 3, 4, 3}, {3, 2, 4, 4}, {.stride = 2, .padding = 1});
  check({1, 3, 2, 4}, {4, 3, 3, 2}, {.stride = {3, 2}, .padding = {1, 0}, .output_padding = {2, 1}, .groups = 2});
  check({1, 2, 2, 2}, {2, 1, 2, 3}, {.dilation = 2});
  check({2, 1, 1, 2}, {2, 3, 3, 3}, {});
  expect_passed(
      check_gradients([](const Inputs& in) { return add(conv_transpose2d(in[0], in[1]), conv_transpose2d(in[0], in[1])); },
                      {random({1, 2, 3, 2}, 1), random({2, 2, 2, 2}, 2)}));
}

TEST_CASE("gradients of pooling") {
  for (const ops::Pool2dOptions& options : {ops::Pool2dOptions{.kernel = 2},
                                            {.kernel = 3, .stride = 2, .padding = 1},
                                            {.kernel = {2, 3}, .stride = {3, 1}, .ceil_mode = true},
                                            {.kernel = 2, .stride = 1, .padding = 1, .dilation = {2, 3}}}) {
    expect_passed(check_gradients([&](const Inputs& in) { return max_pool2d(in[0], options); }, {random({2, 7, 6, 3}, 1)}));
    expect_passed(check_gradients([&](const Inputs& in) { return add(max_pool2d(in[0], options), max_pool2d(in[0], options)); },
                                  {random({1, 7, 6, 3}, 1)}));
  }
  for (const ops::AvgPool2dOptions& options : {ops::AvgPool2dOptions{.kernel = 2},
                                               {.kernel = 3, .stride = 2, .padding = 1, .count_include_pad = false},
                                               {.kernel = {2, 3}, .stride = {3, 1}, .padding = {0, 1}, .ceil_mode = true}}) {
    expect_passed(check_gradients([&](const Inputs& in) { return avg_pool2d(in[0], options); }, {random({2, 7, 6, 3}, 1)}));
    expect_passed(check_gradients([&](const Inputs& in) { return add(avg_pool2d(in[0], options), avg_pool2d(in[0], options)); },
                                  {random({1, 7, 6, 3}, 1)}));
  }
  for (const ops::Extent2d& output : {ops::Extent2d(1), ops::Extent2d(3, 4), ops::Extent2d(9, 6)}) {
    expect_passed(
        check_gradients([&](const Inputs& in) { return adaptive_avg_pool2d(in[0], output); }, {random({2, 7, 6, 3}, 1)}));
    expect_passed(
        check_gradients([&](const Inputs& in) { return adaptive_max_pool2d(in[0], output); }, {random({2, 7, 6, 3}, 1)}));
  }
}

TEST_CASE("an empty batch of images has gradients of zero") {
  Tape tape;
  std::vector<double> gradients;
  const auto watched = [&](const Shape& shape) {
    return watch(random(shape, 2),
                 [&](const Tensor<double>& dy) { gradients.insert(gradients.end(), dy.data(), dy.data() + dy.numel()); });
  };
  const auto weight = watched({2, 3, 3, 3});
  const auto bias = watched({2});
  const auto images = watch(random({0, 8, 8, 3}, 1), [](const Tensor<double>& dy) { CHECK(dy.shape() == Shape{0, 8, 8, 3}); });
  const auto pooled = adaptive_avg_pool2d(max_pool2d(conv2d(images, weight, bias), {.kernel = 2}), 1);
  CHECK(pooled.shape() == Shape{0, 1, 1, 2});
  sum(pooled).backward();
  CHECK(gradients == std::vector<double>(2 * 27 + 2, 0.0));
}

TEST_CASE("functions of images say what does not fit") {
  const Variable<double> x(random({1, 4, 5, 3}, 1));
  const Variable<double> weight(random({2, 3, 3, 3}, 2));
  const Variable<double> row(random({4}, 2));
  CHECK_THROWS_WITH(conv2d(row, weight), ContainsSubstring("conv2d: x [4] needs [batch, height, width, channels]"));
  CHECK_THROWS_WITH(conv2d(x, Variable<double>(random({2, 3, 5, 5}, 2))),
                    ContainsSubstring("conv2d: a kernel of 5 with dilation 1 does not fit 4 pixels"));
  CHECK_THROWS_WITH(conv2d(x, Variable<double>(random({2, 4, 3, 3}, 2))), ContainsSubstring("[1, 4, 5, 3] with 3 channels"));
  CHECK_THROWS_WITH(conv2d(x, weight, row), ContainsSubstring("conv2d: bias has shape [4], but needs 2 elements"));
  CHECK_THROWS_WITH(conv_transpose2d(x, Variable<double>(random({3, 2, 3, 3}, 2)), {}, {.stride = 2, .output_padding = {1, 2}}),
                    ContainsSubstring("an output padding of 2 needs to be below the stride of 2"));
  CHECK_THROWS_WITH(conv_transpose2d(x, weight),
                    ContainsSubstring("conv_transpose2d: a weight of shape [2, 3, 3, 3] in 1 groups is for 2 channels and does "
                                      "not fit images [1, 4, 5, 3] with 3"));
  CHECK_THROWS_WITH(conv_transpose2d(x, Variable<double>(random({3, 2, 3, 3}, 2)), {}, {.groups = 2}),
                    ContainsSubstring("conv_transpose2d: a weight of shape [3, 2, 3, 3] in 2 groups"));
  Tensor<double> too_small({1, 5, 7, 2}), dx({1, 4, 5, 3}), dweight({3, 2, 3, 3});
  CHECK_THROWS_WITH(ops::conv_transpose2d(x.value(), dweight, {}, {}, too_small),
                    ContainsSubstring("conv_transpose2d: the result has shape [1, 5, 7, 2], but needs [1, 6, 7, 2]"));
  CHECK_THROWS_WITH(ops::conv_transpose2d_backward_data(too_small, dweight, {}, dx, false),
                    ContainsSubstring("conv_transpose2d_backward_data: the result has shape [1, 5, 7, 2]"));
  CHECK_THROWS_WITH(ops::conv_transpose2d_backward_weight(x.value(), too_small, {}, dweight, false),
                    ContainsSubstring("conv_transpose2d_backward_weight: the result has shape [1, 5, 7, 2]"));
  CHECK_THROWS_WITH(max_pool2d(row, {.kernel = 2}), ContainsSubstring("max_pool2d: x [4] needs"));
  CHECK_THROWS_WITH(max_pool2d(x, {.kernel = 5}),
                    ContainsSubstring("max_pool2d: a kernel of 5 with dilation 1 does not fit 4"));
  CHECK_THROWS_WITH(avg_pool2d(x, {.kernel = 3, .padding = 2}),
                    ContainsSubstring("avg_pool2d: a padding of 2 is not between 0"));
  CHECK_THROWS_WITH(avg_pool2d(x, {}), ContainsSubstring("avg_pool2d: kernel 0"));
  CHECK_THROWS_WITH(adaptive_avg_pool2d(x, 0), ContainsSubstring("adaptive_avg_pool2d: 4 pixels cannot become 0"));
}
