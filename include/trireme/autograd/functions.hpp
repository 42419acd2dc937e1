#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <utility>

#include "trireme/autograd/variable.hpp"
#include "trireme/ops/elementwise.hpp"

// Operations on variables: forward now, backward on the current tape. T: float, double, bfloat16, float16; A, what weights and
// gradients of weights, norms and losses have in mixed precision, is float for the last two.
namespace trireme {

// x in another element type: from and to float.
template <typename To, typename From, typename D>
Variable<To, D> cast(const Variable<From, D>& x);

template <typename T, typename D>
Variable<T, D> reshape(const Variable<T, D>& x, const Shape& shape);

template <typename T, typename D>
Variable<T, D> add(const Variable<T, D>& a, const Variable<T, D>& b);

template <typename T, typename D>
Variable<T, D> multiply(const Variable<T, D>& a, const Variable<T, D>& b);

template <typename T, typename D>
Variable<T, D> scale(const Variable<T, D>& x, Accumulate<T> factor);

template <typename T, typename D>
Variable<T, D> sum(const Variable<T, D>& x);  // a scalar

template <typename T, typename D>
Variable<T, D> activation(ops::Activation kind, const Variable<T, D>& x);
template <typename T, typename D>
Variable<T, D> relu(const Variable<T, D>& x) {
  return activation(ops::Activation::relu, x);
}
template <typename T, typename D>
Variable<T, D> tanh(const Variable<T, D>& x) {
  return activation(ops::Activation::tanh, x);
}
template <typename T, typename D>
Variable<T, D> sigmoid(const Variable<T, D>& x) {
  return activation(ops::Activation::sigmoid, x);
}
template <typename T, typename D>
Variable<T, D> gelu(const Variable<T, D>& x) {  // the tanh form, as GPT-2
  return activation(ops::Activation::gelu_tanh, x);
}

template <typename T, typename D>
Variable<T, D> gelu_erf(const Variable<T, D>& x) {  // the exact form
  return activation(ops::Activation::gelu_erf, x);
}
template <typename T, typename D>
Variable<T, D> silu(const Variable<T, D>& x) {
  return activation(ops::Activation::silu, x);
}
template <typename T, typename D>
Variable<T, D> leaky_relu(const Variable<T, D>& x, double slope = 0.01);
template <typename T, typename D>
Variable<T, D> softplus(const Variable<T, D>& x, const ops::SoftplusOptions& options = {});

// A copy with two dims exchanged; negative dims count from the end.
template <typename T, typename D>
Variable<T, D> transpose(const Variable<T, D>& x, int first, int second);

// Over one dim, the last unless said; another one costs two transposed copies.
template <typename T, typename D>
Variable<T, D> softmax(const Variable<T, D>& x, int dim = -1);
template <typename T, typename D>
Variable<T, D> log_softmax(const Variable<T, D>& x, int dim = -1);

// Dim 0 of x counts samples: which elements are dropped depends on (the tape's seed and step, `stream`, the global index of
// the element), never on how samples are spread over ranks. Without a tape x itself: evaluation drops nothing.
template <typename T, typename D>
Variable<T, D> dropout(const Variable<T, D>& x, double probability, std::string_view stream);

// [..., in] x [out, in]^T (+ [out]) -> [..., out]
template <typename T, typename D>
Variable<T, D> linear(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                      const Variable<Accumulate<T>, D>& bias = {});

// Over the last dim; weight and bias [width] may be undefined.
template <typename T, typename D>
Variable<T, D> layer_norm(const Variable<T, D>& x, const Variable<T, D>& weight, const Variable<T, D>& bias, double epsilon);

// The norm of a float variable, rounded to T for the matrix product that follows.
template <typename T, typename D>
requires(!std::same_as<T, Accumulate<T>>) Variable<T, D> layer_norm(const Variable<Accumulate<T>, D>& x,
                                                                    const Variable<Accumulate<T>, D>& weight,
                                                                    const Variable<Accumulate<T>, D>& bias, double epsilon);

// {x + residual, layer_norm(x + residual)} in one pass.
template <typename T, typename D>
std::pair<Variable<Accumulate<T>, D>, Variable<T, D>> residual_layer_norm(const Variable<Accumulate<T>, D>& x,
                                                                          const Variable<T, D>& residual,
                                                                          const Variable<Accumulate<T>, D>& weight,
                                                                          const Variable<Accumulate<T>, D>& bias,
                                                                          double epsilon);

// [batch, time, 3 * width] -> [batch, time, width]; see ops/attention.hpp.
template <typename T, typename D>
Variable<T, D> causal_attention(const Variable<T, D>& qkv, int heads);

// index[...] into weight[rows, width] -> [..., width]
template <typename T, typename D>
Variable<T, D> embedding(const Tensor<std::int32_t, D>& index, const Variable<T, D>& weight);

// Token plus position: tokens[batch, time] into token_weight, 0 .. time-1 into position_weight -> [batch, time, width].
template <typename T, typename D>
Variable<T, D> token_embedding(const Tensor<std::int32_t, D>& tokens, const Variable<T, D>& token_weight,
                               const Variable<T, D>& position_weight);

// The loss of a micro-batch as a sum, with what a mean over several micro-batches and ranks needs.
template <typename T, typename D = Cpu>
struct Loss {
  Variable<T, D> sum;      // over kept targets
  std::int64_t kept = 0;   // targets that count
  std::int64_t count = 0;  // all targets, the ignored ones too: the same in every micro-batch of a step
  double scale = 1;        // of the gradients: amp::GradScaler

  double mean() const { return kept == 0 ? 0.0 : static_cast<double>(sum.value().item()) / static_cast<double>(kept); }

  // Gradients of scale * sum / count; the optimizer step corrects by count / kept of the whole step.
  void backward() const { sum.backward(static_cast<T>(scale / static_cast<double>(count))); }
};

// Softmax cross-entropy of logits[..., classes] with one class number for each row; ops::ignored_target rows count for nothing.
template <typename T, typename D>
Loss<Accumulate<T>, D> cross_entropy(const Variable<T, D>& logits, const Tensor<std::int32_t, D>& targets);

}  // namespace trireme
