// Errors of functions of include/trireme/autograd for undefined operands.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "autograd/lone_axis.hpp"
#include "gradient_check.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/attention.hpp"
#include "trireme/autograd/operations/convolution.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/embedding.hpp"
#include "trireme/autograd/operations/experts.hpp"
#include "trireme/autograd/operations/index.hpp"
#include "trireme/autograd/operations/loss.hpp"
#include "trireme/autograd/operations/map.hpp"
#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/autograd/operations/norm.hpp"
#include "trireme/autograd/operations/pooling.hpp"
#include "trireme/autograd/operations/recurrent.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/autograd/operations/resize.hpp"
#include "trireme/autograd/operations/search.hpp"
#include "trireme/autograd/parameter.hpp"
#include "trireme/autograd/tensor_parallel/operations.hpp"

using namespace trireme;
using namespace trireme::tests;

TEST_CASE("every function refuses operands that are undefined, with a tape and without") {
  const Variable<double> none;
  const Variable<double> one = random({}, 1);
  const Variable<double> v = random({3}, 1);
  const Variable<double> m = random({3, 3}, 1);
  const Variable<double> image = random({1, 3, 3, 3}, 1);
  const Tensor<std::int32_t> no_index;
  const auto index = Tensor<std::int32_t>::from({1, 3}, {0, 1, 2});
  const Collectives& axis = lone_axis();
  const auto rows =
      std::make_shared<const ops::ExpertRows>(ops::expert_rows(Tensor<std::int64_t>::from({3, 1}, {0, 1, 0}), {.experts = 2}));
  const auto layer = [&](const Variable<double>& x, const Variable<double>& h0, const Variable<double>& weight_ih,
                         const Variable<double>& weight_hh) {
    const std::vector<RecurrentVariables<double>> directions{
        {.weight_ih = weight_ih, .weight_hh = weight_hh, .bias_ih = {}, .bias_hh = {}}};
    recurrent_layer<double, Cpu>(ops::RecurrentCell::gru, x, h0, {}, directions);
  };
  const std::vector<std::pair<std::string, std::function<void()>>> refused{
      {"cast: operand 1 of 1", [&] { cast<double>(none); }},
      {"reshape: operand 1 of 1", [&] { reshape(none, {0}); }},
      {"add: operand 1 of 2", [&] { add(none, one); }},
      {"add: operand 2 of 2", [&] { add(one, none); }},
      {"add: operand 1 of 2", [&] { add(Loss<double>{}, Loss<double>{}); }},
      {"multiply: operand 1 of 2", [&] { multiply(none, one); }},
      {"multiply: operand 2 of 2", [&] { multiply(one, none); }},
      {"scale: operand 1 of 1", [&] { scale(none, 2); }},
      {"sum: operand 1 of 1", [&] { sum(none); }},
      {"relu: operand 1 of 1", [&] { relu(none); }},
      {"leaky_relu: operand 1 of 1", [&] { leaky_relu(none); }},
      {"softplus: operand 1 of 1", [&] { softplus(none); }},
      {"transpose: operand 1 of 1", [&] { transpose(none, 0, 1); }},
      {"softmax: operand 1 of 1", [&] { softmax(none); }},
      {"log_softmax: operand 1 of 1", [&] { log_softmax(none); }},
      {"dropout: operand 1 of 1", [&] { dropout(none, 0.5, "layer"); }},
      {"exp: operand 1 of 1", [&] { exp(none); }},
      {"minimum: operand 2 of 2", [&] { minimum(v, none); }},
      {"pow: operand 1 of 1", [&] { pow(none, 2); }},
      {"where: operand 1 of 3", [&] { where(Tensor<bool>(), v, v); }},
      {"where: operand 3 of 3", [&] { where(v > 0, v, none); }},
      {"where: operand 2 of 2", [&] { where(v > 0, none, 1); }},
      {"map: operand 2 of 2", [&] { map([](auto x, auto y) { return x + y; }, v, none); }},
      {"linear: operand 1 of 3", [&] { linear(none, m); }},
      {"linear: operand 2 of 3", [&] { linear(m, none); }},
      {"linear_gelu_linear: operand 1 of 5", [&] { linear_gelu_linear(none, m, v, m, v); }},
      {"linear_gelu_linear: operand 2 of 5", [&] { linear_gelu_linear(m, none, v, m, v); }},
      {"linear_gelu_linear: operand 4 of 5", [&] { linear_gelu_linear(m, m, v, none, v); }},
      {"matmul: operand 1 of 2", [&] { matmul(none, m); }},
      {"matmul: operand 2 of 2", [&] { matmul(m, none); }},
      {"layer_norm: operand 1 of 3", [&] { layer_norm(none, v, v, 1e-5); }},
      {"residual_layer_norm: operand 1 of 4", [&] { residual_layer_norm(none, m, v, v, 1e-5); }},
      {"residual_layer_norm: operand 2 of 4", [&] { residual_layer_norm(m, none, v, v, 1e-5); }},
      {"rms_norm: operand 1 of 2", [&] { rms_norm(none, v, 1e-5); }},
      {"residual_rms_norm: operand 1 of 3", [&] { residual_rms_norm(none, m, v, 1e-5); }},
      {"residual_rms_norm: operand 2 of 3", [&] { residual_rms_norm(m, none, v, 1e-5); }},
      {"batch_norm: operand 1 of 5", [&] { batch_norm(none, v, v, {}); }},
      {"batch_norm_relu: operand 1 of 5", [&] { batch_norm_relu(none, v, v, {}); }},
      {"batch_norm_add_relu: operand 1 of 6", [&] { batch_norm_add_relu(none, m, v, v, {}); }},
      {"batch_norm_add_relu: operand 2 of 6", [&] { batch_norm_add_relu(m, none, v, v, {}); }},
      {"group_norm: operand 1 of 3", [&] { group_norm(none, v, v, 1); }},
      {"scaled_dot_product_attention: operand 1 of 4", [&] { scaled_dot_product_attention(none, image, {}); }},
      {"rotary: operand 1 of 2", [&] { rotary(none, {.size = 2, .heads = 1}); }},
      {"embedding: operand 1 of 2", [&] { embedding(no_index, m); }},
      {"embedding: operand 2 of 2", [&] { embedding(index, none); }},
      {"token_embedding: operand 1 of 3", [&] { token_embedding(no_index, m, m); }},
      {"token_embedding: operand 2 of 3", [&] { token_embedding(index, none, m); }},
      {"token_embedding: operand 3 of 3", [&] { token_embedding(index, m, none); }},
      {"cross_entropy: operand 1 of 3", [&] { cross_entropy(none, index); }},
      {"cross_entropy: operand 2 of 3", [&] { cross_entropy(m, no_index); }},
      {"cross_entropy_rows: operand 1 of 3", [&] { cross_entropy_rows(none, index); }},
      {"cross_entropy_rows: operand 2 of 3", [&] { cross_entropy_rows(m, no_index); }},
      {"mse_loss: operand 1 of 2", [&] { mse_loss(none, one.value()); }},
      {"mse_loss: operand 2 of 2", [&] { mse_loss(one, {}); }},
      {"bce_with_logits: operand 1 of 2", [&] { bce_with_logits(none, one.value()); }},
      {"bce_with_logits: operand 2 of 2", [&] { bce_with_logits(one, {}); }},
      {"kl_divergence: operand 1 of 2", [&] { kl_divergence(none, m.value()); }},
      {"kl_divergence: operand 2 of 2", [&] { kl_divergence(m, {}); }},
      {"distillation_loss: operand 1 of 2", [&] { distillation_loss(none, m.value(), 2); }},
      {"distillation_loss: operand 2 of 2", [&] { distillation_loss(m, {}, 2); }},
      {"conv2d: operand 1 of 3", [&] { conv2d(none, image); }},
      {"conv2d: operand 2 of 3", [&] { conv2d(image, none); }},
      {"conv_transpose2d: operand 1 of 3", [&] { conv_transpose2d(none, image); }},
      {"conv_transpose2d: operand 2 of 3", [&] { conv_transpose2d(image, none); }},
      {"max_pool2d: operand 1 of 1", [&] { max_pool2d(none, {.kernel = 2}); }},
      {"avg_pool2d: operand 1 of 1", [&] { avg_pool2d(none, {.kernel = 2}); }},
      {"adaptive_max_pool2d: operand 1 of 1", [&] { adaptive_max_pool2d(none, 1); }},
      {"adaptive_avg_pool2d: operand 1 of 1", [&] { adaptive_avg_pool2d(none, 1); }},
      {"flatten: operand 1 of 1", [&] { flatten(none); }},
      {"unflatten: operand 1 of 1",
       [&] {
         unflatten(none, {1, 1}, 1);
       }},
      {"recurrent_layer: operand 1 of 8", [&] { layer(none, m, m, m); }},
      {"recurrent_layer: operand 2 of 8", [&] { layer(m, none, m, m); }},
      {"recurrent_layer: operand 4 of 8", [&] { layer(m, m, none, m); }},
      {"recurrent_layer: operand 5 of 8", [&] { layer(m, m, m, none); }},
      {"column_parallel_linear: operand 1 of 3", [&] { column_parallel_linear(none, m, v, axis, false); }},
      {"column_parallel_linear: operand 2 of 3", [&] { column_parallel_linear(m, none, v, axis, false); }},
      {"row_parallel_linear: operand 1 of 3", [&] { row_parallel_linear(none, m, v, axis, false); }},
      {"row_parallel_linear: operand 2 of 3", [&] { row_parallel_linear(m, none, v, axis, false); }},
      {"vocab_parallel_embedding: operand 1 of 2", [&] { vocab_parallel_embedding(no_index, m, 0, 3, axis, false); }},
      {"vocab_parallel_embedding: operand 2 of 2", [&] { vocab_parallel_embedding(index, none, 0, 3, axis, false); }},
      {"vocab_parallel_cross_entropy: operand 1 of 2", [&] { vocab_parallel_cross_entropy(none, index, 0, 3, axis); }},
      {"vocab_parallel_cross_entropy: operand 2 of 2", [&] { vocab_parallel_cross_entropy(m, no_index, 0, 3, axis); }},
      {"sum_gradient: operand 1 of 1", [&] { sum_gradient(none, axis); }},
      {"gather_rows: operand 1 of 1", [&] { gather_rows(none, axis); }},
      {"sum_parts: operand 1 of 1", [&] { sum_parts(none, axis, false); }},
      {"take_expert_rows: operand 1 of 1", [&] { take_expert_rows(none, rows); }},
      {"exchange_rows: operand 1 of 1", [&] { exchange_rows(none, {.to = {0}, .from = {0}}, axis); }},
      {"expert_linear: operand 1 of 2", [&] { expert_linear(none, m, rows); }},
      {"expert_linear: operand 2 of 2", [&] { expert_linear(m, none, rows); }},
      {"combine_expert_rows: operand 1 of 2", [&] { combine_expert_rows(none, m, rows); }},
      {"combine_expert_rows: operand 2 of 2", [&] { combine_expert_rows(m, none, rows); }},
      {"float8_linear: operand 1 of 3",
       [&] {
         float8_linear<Cpu>({}, random<bfloat16>({3, 3}, 1), {}, {});
       }},
      {"float8_linear: operand 2 of 3", [&] {
         float8_linear<Cpu>(random<bfloat16>({3, 3}, 1), {}, {}, {});
       }}};
  for (const auto& [message, call] : refused) {
    CAPTURE(message);
    CHECK_THROWS_WITH(call(), ContainsSubstring(message + " is undefined"));
    const Tape tape({.seed = 1});
    CHECK_THROWS_WITH(call(), ContainsSubstring(message + " is undefined"));
  }
  const Tape tape;
  CHECK_THROWS_WITH(watch(Tensor<double>(), [](const Tensor<double>&) {}),
                    ContainsSubstring("watch: operand 1 of 1 is undefined"));
}

TEST_CASE("an undefined tensor is no scalar") {
  CHECK_THROWS_WITH(Tensor<float>().clone(), "a copy of a tensor that is undefined");
  const Tape tape;
  const auto loss = sum(watch(random({2}, 1), [](const Tensor<double>&) {}));
  CHECK_THROWS_WITH(loss.backward(Tensor<double>()), "backward() with a gradient that is undefined");
}
