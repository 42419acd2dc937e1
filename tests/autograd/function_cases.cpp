#include "autograd/function_cases.hpp"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "autograd/lone_axis.hpp"
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
#include "trireme/autograd/operations/pointwise.hpp"
#include "trireme/autograd/operations/pooling.hpp"
#include "trireme/autograd/operations/recurrent.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/autograd/operations/resize.hpp"
#include "trireme/autograd/operations/search.hpp"
#include "trireme/autograd/tensor_parallel/operations.hpp"
#include "trireme/ops/reduce/softmax.hpp"

namespace trireme::tests {
namespace {

using Case = FunctionCase;

Tensor<std::int32_t> integers(const Shape& shape, const std::vector<std::int32_t>& values) {
  return Tensor<std::int32_t>::from(shape, values);
}

Tensor<double> probabilities(const Shape& shape) {
  Tensor<double> result(shape);
  ops::softmax(random(shape, 20), result);
  return result;
}

Variable<double> all_of(const RecurrentResult<double>& result) {
  auto total = add(sum(result.out), scale(sum(multiply(result.h_n, result.h_n)), 0.5));
  return result.c_n.value().defined() ? add(total, sum(multiply(result.c_n, result.c_n))) : total;
}

Variable<double> recurrent(ops::RecurrentCell cell, const Inputs& in, const Variable<double>& c0) {
  const std::vector<RecurrentVariables<double>> directions{
      {.weight_ih = in[2], .weight_hh = in[3], .bias_ih = in[4], .bias_hh = in[5]},
      {.weight_ih = in[2], .weight_hh = in[3], .bias_ih = in[4], .bias_hh = {}}};
  return all_of(recurrent_layer<double, Cpu>(cell, in[0], in[1], c0, directions));
}

// Of three tokens with two choices of two experts.
ExpertRows expert_rows() {
  const auto chosen = Tensor<std::int64_t>::from({3, 2}, {0, 1, 1, 0, 1, 0});
  return std::make_shared<const ops::ExpertRows>(ops::expert_rows(chosen, {.experts = 2}));
}

std::vector<Case> elementwise_cases() {
  std::vector<Case> cases{
      {"cast", {random({2, 3}, 1)}, [](const Inputs& in) { return cast<double>(in[0]); }},
      {"reshape", {random({2, 3}, 1)}, [](const Inputs& in) { return reshape(in[0], {6}); }},
      {"add", {random({2, 3}, 1), random({2, 3}, 2)}, [](const Inputs& in) { return add(in[0], in[1]); }},
      {"add to itself", {random({2, 3}, 1)}, [](const Inputs& in) { return add(in[0], in[0]); }},
      {"subtract", {random({2, 3}, 1), random({2, 3}, 2)}, [](const Inputs& in) { return subtract(in[0], in[1]); }},
      {"subtract from itself", {random({2, 3}, 1)}, [](const Inputs& in) { return subtract(in[0], in[0]); }},
      {"divide", {random({2, 3}, 1), random({2, 3}, 2)}, [](const Inputs& in) { return divide(in[0], in[1]); }},
      {"divide by itself", {random({2, 3}, 1)}, [](const Inputs& in) { return divide(in[0], in[0]); }},
      {"shift", {random({2, 3}, 1)}, [](const Inputs& in) { return shift(in[0], 1.5); }},
      {"multiply", {random({2, 3}, 1), random({2, 3}, 2)}, [](const Inputs& in) { return multiply(in[0], in[1]); }},
      {"multiply by itself", {random({2, 3}, 1)}, [](const Inputs& in) { return multiply(in[0], in[0]); }},
      {"scale", {random({2, 3}, 1)}, [](const Inputs& in) { return scale(in[0], -2.5); }},
      {"sum", {random({2, 3}, 1)}, [](const Inputs& in) { return sum(in[0]); }},
      {"leaky_relu", {random({7}, 1)}, [](const Inputs& in) { return leaky_relu(in[0], 0.2); }},
      {"softplus", {random({7}, 1)}, [](const Inputs& in) { return softplus(in[0], {.beta = 3, .threshold = 2}); }},
      {"dropout", {random({4, 9}, 1)}, [](const Inputs& in) { return dropout(in[0], 0.3, "layer"); }},
      {"dropout twice",
       {random({4, 9}, 1)},
       [](const Inputs& in) { return add(dropout(in[0], 0.3, "layer"), dropout(in[0], 0.3, "layer")); }},
      {"transpose", {random({2, 3, 4}, 1)}, [](const Inputs& in) { return transpose(in[0], 0, 2); }},
      {"softmax", {random({3, 4}, 1)}, [](const Inputs& in) { return softmax(in[0]); }},
      {"softmax over dim 0", {random({3, 4}, 1)}, [](const Inputs& in) { return softmax(in[0], 0); }},
      {"log_softmax", {random({3, 4}, 1)}, [](const Inputs& in) { return log_softmax(in[0]); }},
      {"log_softmax over dim 0", {random({3, 4}, 1)}, [](const Inputs& in) { return log_softmax(in[0], 0); }}};
  using ops::Activation;
  for (const auto kind : {Activation::gelu_tanh, Activation::gelu_erf, Activation::relu, Activation::silu, Activation::sigmoid,
                          Activation::tanh}) {
    cases.push_back({"activation " + std::to_string(static_cast<int>(kind)), {random({7}, 3)}, [kind](const Inputs& in) {
                       return activation(kind, in[0]);
                     }});
  }
  return cases;
}

Tensor<double> positive(const Shape& shape, std::uint64_t stream) {
  Tensor<double> x = random(shape, stream);
  for (double& element : x.span()) element = std::abs(element) + 0.5;
  return x;
}

std::vector<Case> pointwise_cases() {
  using ops::Unary;
  std::vector<Case> cases{
      {"add, repeated", {random({2, 3}, 1), random({3}, 2)}, [](const Inputs& in) { return add(in[0], in[1]); }},
      {"subtract, repeated", {random({3}, 1), random({2, 3}, 2)}, [](const Inputs& in) { return subtract(in[0], in[1]); }},
      {"multiply, repeated", {random({2, 1}, 1), random({3}, 2)}, [](const Inputs& in) { return multiply(in[0], in[1]); }},
      {"divide, repeated", {random({2, 3}, 1), positive({}, 2)}, [](const Inputs& in) { return divide(in[0], in[1]); }},
      {"divide, a number", {positive({3}, 1)}, [](const Inputs& in) { return divide(2, in[0]); }},
      {"minimum", {random({2, 3}, 1), random({2, 3}, 2)}, [](const Inputs& in) { return minimum(in[0], in[1]); }},
      {"maximum, repeated", {random({2, 3}, 1), random({2, 1}, 2)}, [](const Inputs& in) { return maximum(in[0], in[1]); }},
      {"maximum, a number", {random({7}, 1)}, [](const Inputs& in) { return maximum(in[0], 0.25); }},
      {"pow", {positive({2, 3}, 1), random({3}, 2)}, [](const Inputs& in) { return pow(in[0], in[1]); }},
      {"pow of x by itself", {positive({3}, 1)}, [](const Inputs& in) { return pow(in[0], in[0]); }},
      {"pow, a number", {random({7}, 1)}, [](const Inputs& in) { return pow(in[0], 3); }},
      {"pow, of a number", {random({7}, 1)}, [](const Inputs& in) { return pow(2.5, in[0]); }},
      {"where", {random({2, 3}, 1), random({3}, 2)}, [](const Inputs& in) { return where(in[0].value() > 0, in[0], in[1]); }},
      {"where, repeated",
       {random({3}, 1), random({}, 2)},
       [](const Inputs& in) {
         return where(Tensor<bool>::from({2, 1}, {true, false}), in[0], in[1]);
       }},
      {"where, a number", {random({7}, 1)}, [](const Inputs& in) { return where(in[0].value() > 0, 1, in[0]); }},
      {"where, masked_fill", {random({7}, 1)}, [](const Inputs& in) { return masked_fill(in[0], in[0] > 0, -1); }},
      {"map",
       {random({2, 3}, 1), random({3}, 2)},
       [](const Inputs& in) { return map([](auto x, auto y) { return x * sigmoid(y); }, in[0], in[1]); }},
      {"map of x twice", {random({3}, 1)}, [](const Inputs& in) {
         return map([](auto x, auto y) { return x * sigmoid(y); }, in[0], in[0]);
       }}};
  const auto add_unary = [&](const Tensor<double>& x, std::initializer_list<Unary> kinds) {
    for (const Unary kind : kinds) {
      cases.push_back({std::string(ops::name_of(kind)), {x}, [kind](const Inputs& in) {
                         return pointwise(kind, in[0], {.first = -0.5, .second = 1.5});
                       }});
    }
  };
  add_unary(random({7}, 1), {Unary::abs,   Unary::neg,      Unary::sign,      Unary::clamp,     Unary::square,      Unary::exp,
                             Unary::expm1, Unary::sin,      Unary::cos,       Unary::erf,       Unary::floor,       Unary::ceil,
                             Unary::round, Unary::elu,      Unary::mish,      Unary::hardswish, Unary::hardsigmoid, Unary::selu,
                             Unary::relu6, Unary::softsign, Unary::logsigmoid});
  add_unary(positive({7}, 1), {Unary::log, Unary::log1p, Unary::sqrt, Unary::rsqrt, Unary::reciprocal});
  return cases;
}

std::vector<Case> reduction_cases() {
  const auto x = random({2, 3, 4}, 1);
  return {{"sum over dims",
           {x},
           [](const Inputs& in) {
             return sum(in[0], {0, 2});
           }},
          {"mean", {x}, [](const Inputs& in) { return mean(in[0], 1); }},
          {"prod", {x}, [](const Inputs& in) { return prod(in[0], -1, true); }},
          {"max",
           {x},
           [](const Inputs& in) {
             return max(in[0], {0, 2});
           }},
          {"min", {x}, [](const Inputs& in) { return min(in[0]); }},
          {"logsumexp", {x}, [](const Inputs& in) { return logsumexp(in[0], 0); }},
          {"var",
           {x},
           [](const Inputs& in) {
             return var(in[0], {1, 2});
           }},
          {"stddev", {x}, [](const Inputs& in) { return stddev(in[0], 2); }},
          {"norm", {x}, [](const Inputs& in) { return norm(in[0]); }},
          {"max_with_index", {x}, [](const Inputs& in) { return max_with_index(in[0], 1).values; }},
          {"min_with_index", {x}, [](const Inputs& in) { return min_with_index(in[0], -1).values; }},
          {"sort", {x}, [](const Inputs& in) { return sort(in[0], 0).values; }},
          {"topk", {x}, [](const Inputs& in) { return topk(in[0], 2).values; }},
          {"cumsum", {x}, [](const Inputs& in) { return cumsum(in[0], 1); }},
          {"cumprod", {x}, [](const Inputs& in) { return cumprod(in[0], -1); }}};
}

std::vector<Case> movement_cases() {
  const auto x = random({2, 3, 4}, 1);
  const auto index = Tensor<std::int64_t>::from({2, 2, 4}, {2, 0, 1, 1, 2, 0, 1, 2, 1, 1, 1, 0, 1, 1, 0, 0});
  const auto rows = integers({4}, {2, 0, 2, 2});
  return {
      {"permute",
       {x},
       [](const Inputs& in) {
         return permute(in[0], {2, 0, 1});
       }},
      {"slice", {x}, [](const Inputs& in) { return slice(in[0], -1, 0, 4, 3); }},
      {"slice, a view", {x}, [](const Inputs& in) { return slice(in[0], 0, 1); }},
      {"slice, of two dims",
       {x},
       [](const Inputs& in) {
         return slice(in[0], {{}, {1}, {0, -1, 2}});
       }},
      {"narrow", {x}, [](const Inputs& in) { return narrow(in[0], 0, 1, 1); }},
      {"split", {x}, [](const Inputs& in) { return split(in[0], 4, 2)[0]; }},
      {"expand",
       {x},
       [](const Inputs& in) {
         return expand(in[0], {2, 2, 3, 4});
       }},
      {"repeat",
       {x},
       [](const Inputs& in) {
         return repeat(in[0], {2, 1, 3});
       }},
      {"roll",
       {x},
       [](const Inputs& in) {
         return roll(in[0], {1, -2}, {0, 2});
       }},
      {"unfold", {x}, [](const Inputs& in) { return unfold(in[0], -1, 2, 1); }},
      {"flip",
       {x},
       [](const Inputs& in) {
         return flip(in[0], {0, 2});
       }},
      {"pad",
       {x},
       [](const Inputs& in) {
         return pad(in[0], {1, -2, 0, 1});
       }},
      {"pad, reflect",
       {x},
       [](const Inputs& in) {
         return pad(in[0], {3, 1, 2, 0}, {.mode = PadMode::reflect});
       }},
      {"pad, replicate",
       {x},
       [](const Inputs& in) {
         return pad(in[0], {3, 1, 2, 0}, {.mode = PadMode::replicate});
       }},
      {"triu", {x}, [](const Inputs& in) { return triu(in[0], 1); }},
      {"tril", {x}, [](const Inputs& in) { return tril(in[0]); }},
      {"squeeze", {random({2, 1, 3}, 1)}, [](const Inputs& in) { return squeeze(in[0]); }},
      {"unsqueeze", {x}, [](const Inputs& in) { return unsqueeze(in[0], -1); }},
      {"cat", {x, random({2, 1, 4}, 2)}, [](const Inputs& in) { return cat(in, 1); }},
      {"cat to itself",
       {x},
       [](const Inputs& in) {
         return cat({in[0], in[0]}, -1);
       }},
      {"stack", {x, random({2, 3, 4}, 2)}, [](const Inputs& in) { return stack(in, 1); }},
      {"gather", {x}, [=](const Inputs& in) { return gather(in[0], 1, index); }},
      {"scatter", {x, random({2, 2, 4}, 2)}, [=](const Inputs& in) { return scatter(in[0], 1, index, in[1]); }},
      {"scatter_add", {x, random({2, 2, 4}, 2)}, [=](const Inputs& in) { return scatter_add(in[0], 1, index, in[1]); }},
      {"scatter of less",
       {x, random({2, 4, 4}, 2)},
       [=](const Inputs& in) {
         return scatter(in[0], 1, slice(index, {{0, 1}, {}, {0, 3}}), in[1]);
       }},
      {"scatter_reduce",
       {x, random({2, 2, 4}, 2)},
       [=](const Inputs& in) { return scatter_reduce(in[0], 1, index, in[1], ScatterReduction::amax); }},
      {"slice_scatter", {x, random({2, 2, 4}, 2)}, [](const Inputs& in) { return slice_scatter(in[0], in[1], 1, 0, 3, 2); }},
      {"index_select", {x}, [=](const Inputs& in) { return index_select(in[0], 1, rows); }},
      {"index_add", {x, random({2, 4, 4}, 2)}, [=](const Inputs& in) { return index_add(in[0], 1, rows, in[1]); }},
      {"interpolate", {random({1, 2, 3, 4}, 1)}, [](const Inputs& in) {
         return interpolate(in[0], {.size = {2, 7}, .mode = InterpolateMode::bilinear});
       }}};
}

std::vector<Case> product_cases() {
  const auto index = integers({2, 3}, {1, 0, 4, 4, 2, 1});
  const ops::RotaryOptions turned{.size = 4, .heads = 2, .first_position = 3};
  return {
      {"linear",
       {random({2, 3, 5}, 1), random({4, 5}, 2), random({4}, 3)},
       [](const Inputs& in) { return linear(in[0], in[1], in[2]); }},
      {"linear without bias", {random({3, 5}, 1), random({4, 5}, 2)}, [](const Inputs& in) { return linear(in[0], in[1]); }},
      {"linear by itself", {random({3, 3}, 1)}, [](const Inputs& in) { return linear(in[0], in[0]); }},
      {"linear of a bias that is its x",
       {random({3}, 1), random({3, 3}, 2)},
       [](const Inputs& in) { return linear(in[0], in[1], in[0]); }},
      {"linear_gelu_linear of one weight and one bias",
       {random({2, 3}, 1), random({3, 3}, 2), random({3}, 3)},
       [](const Inputs& in) { return linear_gelu_linear(in[0], in[1], in[2], in[1], in[2]); }},
      {"linear_gelu_linear",
       {random({3, 4}, 1), random({5, 4}, 2), random({5}, 3), random({2, 5}, 4), random({2}, 5)},
       [](const Inputs& in) { return linear_gelu_linear(in[0], in[1], in[2], in[3], in[4]); }},
      {"matmul", {random({2, 3}, 1), random({3, 4}, 2)}, [](const Inputs& in) { return matmul(in[0], in[1]); }},
      {"matmul, broadcast",
       {random({2, 1, 2, 3}, 1), random({4, 3, 2}, 2)},
       [](const Inputs& in) { return matmul(in[0], in[1]); }},
      {"matmul of a vector", {random({3}, 1), random({2, 3, 2}, 2)}, [](const Inputs& in) { return matmul(in[0], in[1]); }},
      {"dot", {random({3}, 1), random({3}, 2)}, [](const Inputs& in) { return dot(in[0], in[1]); }},
      {"dot of itself", {random({3}, 1)}, [](const Inputs& in) { return dot(in[0], in[0]); }},
      {"outer", {random({3}, 1), random({2}, 2)}, [](const Inputs& in) { return outer(in[0], in[1]); }},
      {"einsum",
       {random({2, 3, 4}, 1), random({2, 4, 2}, 2)},
       [](const Inputs& in) { return einsum("bij,bjk->ik", in[0], in[1]); }},
      {"matmul by itself", {random({2, 3, 3}, 1)}, [](const Inputs& in) { return matmul(in[0], in[0]); }},
      {"scaled_dot_product_attention, packed",
       {random({2, 3, 12}, 1)},
       [](const Inputs& in) { return scaled_dot_product_attention(in[0], {}, {.heads = 2, .causal = true}); }},
      {"scaled_dot_product_attention",
       {random({2, 2, 6}, 1), random({2, 4, 6}, 2)},
       [](const Inputs& in) { return scaled_dot_product_attention(in[0], in[1], {.heads = 2, .kv_heads = 1}); }},
      {"scaled_dot_product_attention, larger values",
       {random({2, 2, 6}, 1), random({2, 4, 8}, 2)},
       [](const Inputs& in) {
         return scaled_dot_product_attention(in[0], in[1], {.heads = 2, .kv_heads = 1, .value_size = 5});
       }},
      {"scaled_dot_product_attention, packed, smaller values",
       {random({2, 3, 16}, 1)},
       [](const Inputs& in) { return scaled_dot_product_attention(in[0], {}, {.heads = 2, .causal = true, .value_size = 2}); }},
      {"rotary", {random({1, 3, 9}, 1)}, [=](const Inputs& in) { return rotary(in[0], turned); }},
      {"embedding", {random({5, 3}, 1)}, [=](const Inputs& in) { return embedding(index, in[0]); }},
      {"token_embedding",
       {random({5, 3}, 1), random({4, 3}, 2)},
       [=](const Inputs& in) { return token_embedding(index, in[0], in[1]); }},
      {"token_embedding of one table",
       {random({5, 3}, 1)},
       [=](const Inputs& in) { return token_embedding(index, in[0], in[0]); }},
      {"lstm",
       {random({2, 3, 2}, 1), random({2, 2, 3}, 2), random({12, 2}, 3), random({12, 3}, 4), random({12}, 5), random({12}, 6)},
       [](const Inputs& in) { return recurrent(ops::RecurrentCell::lstm, in, in[1]); }},
      {"gru",
       {random({2, 3, 2}, 1), random({2, 2, 3}, 2), random({9, 2}, 3), random({9, 3}, 4), random({9}, 5), random({9}, 6)},
       [](const Inputs& in) { return recurrent(ops::RecurrentCell::gru, in, {}); }},
      {"gru of one weight and one bias",
       {random({2, 3, 3}, 1), random({2, 2, 3}, 2), random({9, 3}, 3), random({9}, 4)},
       [](const Inputs& in) {
         return recurrent(ops::RecurrentCell::gru, {in[0], in[1], in[2], in[2], in[3], in[3]}, {});
       }}};
}

std::vector<Case> norm_cases() {
  const std::vector rows{random({3, 4}, 1), random({4}, 2), random({4}, 3)};
  const std::vector with_residual{random({3, 4}, 1), random({3, 4}, 2), random({4}, 3), random({4}, 4)};
  const std::vector images{random({2, 2, 2, 4}, 1), random({4}, 2), random({4}, 3)};
  std::vector images_with_residual = images;
  images_with_residual.push_back(random({2, 2, 2, 4}, 4));
  const RunningStatistics<double> running{.mean = random({4}, 8), .var = Tensor<double>::full({4}, 2)};
  return {{"layer_norm", rows, [](const Inputs& in) { return layer_norm(in[0], in[1], in[2], 1e-5); }},
          {"layer_norm over two dims",
           {random({3, 2, 4}, 1), random({2, 4}, 2), random({2, 4}, 3)},
           [](const Inputs& in) { return layer_norm(in[0], in[1], in[2], 1e-5, 2); }},
          {"layer_norm without weights", {rows[0]}, [](const Inputs& in) { return layer_norm(in[0], {}, {}, 1e-5); }},
          {"residual_layer_norm", with_residual,
           [](const Inputs& in) {
             const auto [stream, y] = residual_layer_norm(in[0], in[1], in[2], in[3], 1e-5);
             return add(stream, y);
           }},
          {"residual_layer_norm, the sum", with_residual,
           [](const Inputs& in) { return residual_layer_norm(in[0], in[1], in[2], in[3], 1e-5).first; }},
          {"residual_layer_norm, the norm", with_residual,
           [](const Inputs& in) { return residual_layer_norm(in[0], in[1], in[2], in[3], 1e-5).second; }},
          {"residual_layer_norm of x twice", rows,
           [](const Inputs& in) { return residual_layer_norm(in[0], in[0], in[1], in[2], 1e-5).second; }},
          {"layer_norm of a weight that is its bias",
           {rows[0], rows[1]},
           [](const Inputs& in) { return layer_norm(in[0], in[1], in[1], 1e-5); }},
          {"layer_norm over two dims of a weight that is its bias",
           {random({3, 2, 4}, 1), random({2, 4}, 2)},
           [](const Inputs& in) { return layer_norm(in[0], in[1], in[1], 1e-5, 2); }},
          {"layer_norm of x alone", {rows[1]}, [](const Inputs& in) { return layer_norm(in[0], in[0], in[0], 1e-5); }},
          {"residual_layer_norm of a weight that is its bias",
           {rows[0], with_residual[1], rows[1]},
           [](const Inputs& in) {
             const auto [stream, y] = residual_layer_norm(in[0], in[1], in[2], in[2], 1e-5);
             return add(stream, y);
           }},
          {"residual_layer_norm of x alone",
           {rows[1]},
           [](const Inputs& in) { return residual_layer_norm(in[0], in[0], in[0], in[0], 1e-5).second; }},
          {"rms_norm of x by itself", {rows[1]}, [](const Inputs& in) { return rms_norm(in[0], in[0], 1e-5); }},
          {"rms_norm", {rows[0], rows[1]}, [](const Inputs& in) { return rms_norm(in[0], in[1], 1e-5); }},
          {"residual_rms_norm",
           {with_residual[0], with_residual[1], with_residual[2]},
           [](const Inputs& in) {
             const auto [stream, y] = residual_rms_norm(in[0], in[1], in[2], 1e-5);
             return add(stream, y);
           }},
          {"batch_norm", images, [](const Inputs& in) { return batch_norm(in[0], in[1], in[2], {}); }},
          {"batch_norm, evaluation", images,
           [=](const Inputs& in) { return batch_norm(in[0], in[1], in[2], running, {.training = false}); }},
          {"batch_norm_relu", images, [](const Inputs& in) { return batch_norm_relu(in[0], in[1], in[2], {}); }},
          {"batch_norm_add_relu", images_with_residual,
           [](const Inputs& in) { return batch_norm_add_relu(in[0], in[3], in[1], in[2], {}); }},
          {"batch_norm of a weight that is its bias",
           {images[0], images[1]},
           [](const Inputs& in) { return batch_norm(in[0], in[1], in[1], {}); }},
          {"batch_norm_add_relu of x twice", images,
           [](const Inputs& in) { return batch_norm_add_relu(in[0], in[0], in[1], in[2], {}); }},
          {"group_norm", images, [](const Inputs& in) { return group_norm(in[0], in[1], in[2], 2); }},
          {"group_norm of a weight that is its bias", {images[0], images[1]}, [](const Inputs& in) {
             return group_norm(in[0], in[1], in[1], 2);
           }}};
}

std::vector<Case> image_cases() {
  const Tensor<double> x = random({1, 4, 4, 2}, 1);
  return {{"conv2d",
           {x, random({2, 2, 2, 2}, 2), random({2}, 3)},
           [](const Inputs& in) { return conv2d(in[0], in[1], in[2], {.padding = 1}); }},
          {"conv_transpose2d",
           {random({1, 2, 2, 2}, 1), random({2, 2, 2, 2}, 2), random({2}, 3)},
           [](const Inputs& in) { return conv_transpose2d(in[0], in[1], in[2], {.stride = 2}); }},
          {"conv2d of x by itself",
           {random({2, 2, 2, 2}, 1)},
           [](const Inputs& in) { return conv2d(in[0], in[0], {}, {.padding = 1}); }},
          {"max_pool2d", {x}, [](const Inputs& in) { return max_pool2d(in[0], {.kernel = 2}); }},
          {"avg_pool2d", {x}, [](const Inputs& in) { return avg_pool2d(in[0], {.kernel = 2}); }},
          {"adaptive_max_pool2d", {x}, [](const Inputs& in) { return adaptive_max_pool2d(in[0], 3); }},
          {"adaptive_avg_pool2d", {x}, [](const Inputs& in) { return adaptive_avg_pool2d(in[0], 3); }},
          {"flatten", {x}, [](const Inputs& in) { return flatten(in[0]); }},
          {"flatten of one channel", {random({2, 2, 3, 1}, 1)}, [](const Inputs& in) { return flatten(in[0]); }},
          {"unflatten", {random({2, 12}, 1)}, [](const Inputs& in) {
             return unflatten(in[0], {3, 2}, 2);
           }}};
}

std::vector<Case> loss_cases() {
  const auto targets = integers({3}, {3, ops::ignored_target, 0});
  const ops::CrossEntropyOptions<double, Cpu> smoothed{.label_smoothing = 0.2, .class_weight = probabilities({4})};
  const Tensor<double> target = probabilities({3, 4});
  const std::vector x{random({3, 4}, 1)};
  return {{"cross_entropy", x, [=](const Inputs& in) { return cross_entropy(in[0], targets).sum; }},
          {"cross_entropy, smoothed", x, [=](const Inputs& in) { return cross_entropy(in[0], targets, smoothed).sum; }},
          {"cross_entropy_rows", x, [=](const Inputs& in) { return cross_entropy_rows(in[0], targets, smoothed); }},
          {"add of losses", x,
           [=](const Inputs& in) { return add(cross_entropy(in[0], targets), cross_entropy(in[0], targets)).sum; }},
          {"mse_loss", x, [=](const Inputs& in) { return mse_loss(in[0], target).sum; }},
          {"bce_with_logits", x, [=](const Inputs& in) { return bce_with_logits(in[0], target, 2.5).sum; }},
          {"kl_divergence", x, [=](const Inputs& in) { return kl_divergence(in[0], target).sum; }},
          {"distillation_loss", x, [=](const Inputs& in) { return distillation_loss(in[0], target, 2.0).sum; }}};
}

std::vector<Case> tensor_parallel_cases() {
  const auto index = integers({2, 3}, {1, 0, 4, 4, 2, 1});
  const auto targets = integers({3}, {3, 1, 0});
  return {{"column_parallel_linear",
           {random({3, 5}, 1), random({4, 5}, 2), random({4}, 3)},
           [](const Inputs& in) { return column_parallel_linear(in[0], in[1], in[2], lone_axis(), false); }},
          {"row_parallel_linear",
           {random({3, 5}, 1), random({4, 5}, 2), random({4}, 3)},
           [](const Inputs& in) { return row_parallel_linear(in[0], in[1], in[2], lone_axis(), false); }},
          {"vocab_parallel_embedding",
           {random({5, 3}, 1)},
           [=](const Inputs& in) { return vocab_parallel_embedding(index, in[0], 0, 5, lone_axis(), false); }},
          {"vocab_parallel_cross_entropy",
           {random({3, 4}, 1)},
           [=](const Inputs& in) { return vocab_parallel_cross_entropy(in[0], targets, 0, 4, lone_axis()).sum; }},
          {"sum_gradient", {random({3, 4}, 1)}, [](const Inputs& in) { return sum_gradient(in[0], lone_axis()); }},
          {"gather_rows", {random({2, 2, 16}, 1)}, [](const Inputs& in) { return gather_rows(in[0], lone_axis()); }},
          {"sum_parts", {random({2, 16}, 1)}, [](const Inputs& in) { return sum_parts(in[0], lone_axis(), false); }},
          {"take_expert_rows", {random({3, 4}, 1)}, [](const Inputs& in) { return take_expert_rows(in[0], expert_rows()); }},
          {"expert_linear",
           {random({6, 4}, 1), random({6, 4}, 2)},
           [](const Inputs& in) { return expert_linear(in[0], in[1], expert_rows()); }},
          {"exchange_rows",
           {random({3, 4}, 1)},
           [](const Inputs& in) { return exchange_rows(in[0], {.to = {3}, .from = {3}}, lone_axis()); }},
          {"combine_expert_rows", {random({6, 4}, 1), random({3, 2}, 2)}, [](const Inputs& in) {
             return combine_expert_rows(in[0], in[1], expert_rows());
           }}};
}

}  // namespace

std::vector<FunctionCase> function_cases() {
  std::vector<FunctionCase> all;
  for (auto& cases : {elementwise_cases(), movement_cases(), pointwise_cases(), reduction_cases(), product_cases(),
                      norm_cases(), image_cases(), loss_cases(), tensor_parallel_cases()}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

}  // namespace trireme::tests
