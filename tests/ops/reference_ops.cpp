#include <map>

#include "ops/reference_fixture.hpp"
#include "ops/reference_recurrent.hpp"
#include "trireme/ops/attention.hpp"
#include "trireme/ops/elementwise.hpp"
#include "trireme/ops/embedding.hpp"
#include "trireme/ops/loss.hpp"
#include "trireme/ops/matmul.hpp"
#include "trireme/ops/norm.hpp"
#include "trireme/ops/reduce.hpp"
#include "trireme/ops/softmax.hpp"
#include "trireme/ops/transpose.hpp"

namespace trireme::ops {
namespace {

bool run_activation(Activation kind, OpFixture& fixture) {
  const auto x = fixture.input("x");
  Tensor<float> y(x.shape());
  Tensor<float> dx(x.shape());
  activation(kind, x, y);
  activation_backward(kind, x, fixture.input("gout_out"), dx, false);
  fixture.result("out", y);
  fixture.result("grad_x", dx);
  return true;
}

bool run_leaky_relu(OpFixture& fixture) {
  const double slope = fixture.hyper().at("negative_slope");
  const auto x = fixture.input("x");
  Tensor<float> y(x.shape());
  Tensor<float> dx(x.shape());
  leaky_relu(x, slope, y);
  leaky_relu_backward(x, slope, fixture.input("gout_out"), dx, false);
  fixture.result("out", y);
  fixture.result("grad_x", dx);
  return true;
}

bool run_softplus(OpFixture& fixture) {
  const auto x = fixture.input("x");
  Tensor<float> y(x.shape());
  Tensor<float> dx(x.shape());
  softplus(x, {}, y);
  softplus_backward(x, {}, fixture.input("gout_out"), dx, false);
  fixture.result("out", y);
  fixture.result("grad_x", dx);
  return true;
}

Tensor<float> transposed(const Tensor<float>& x, int first, int second) {
  Tensor<float> y(transposed_shape(x.shape(), first, second));
  transpose(x, first, second, y);
  return y;
}

template <typename Forward, typename Backward>
bool run_softmax(OpFixture& fixture, const Forward& forward, const Backward& backward) {
  const int dim = fixture.hyper().at("dim");
  auto y = transposed(fixture.input("x"), dim, -1);
  auto dx = transposed(fixture.input("gout_out"), dim, -1);
  forward(y, y);
  backward(y, dx, dx, false);
  fixture.result("out", transposed(y, dim, -1));
  fixture.result("grad_x", transposed(dx, dim, -1));
  return true;
}

bool run_linear(OpFixture& fixture) {
  const auto x = fixture.input("x");
  const auto weight = fixture.input("weight");
  const auto dy = fixture.input("gout_out");
  Tensor<float> y(dy.shape());
  Tensor<float> dx(x.shape());
  Tensor<float> dweight(weight.shape());
  Tensor<float> dbias({weight.dim(0)});
  linear(x, weight, fixture.input_or_undefined("bias"), y);
  matmul(dy, weight, dx);
  matmul(dy, x, dweight, {.transpose_a = true});
  sum_rows(dy, dbias, false);
  fixture.result("out", y);
  fixture.result("grad_x", dx);
  fixture.result("grad_weight", dweight);
  fixture.result("grad_bias", dbias);
  return true;
}

// Matrix `index` of the result as a matrix of an operand whose leading dims may be 1 or missing.
Tensor<float> broadcast_matrix(const Tensor<float>& operand, const Shape& result, std::int64_t index) {
  std::int64_t place = 0;
  std::int64_t step = 1;
  for (int dim = -3; dim >= -result.size(); --dim) {
    const std::int64_t coordinate = index % result[dim];
    index /= result[dim];
    if (-dim > operand.shape().size()) continue;
    place += (operand.dim(dim) == 1 ? 0 : coordinate) * step;
    step *= operand.dim(dim);
  }
  const Shape matrix{operand.dim(-2), operand.dim(-1)};
  return operand.reshape({operand.numel() / matrix.numel(), matrix[0], matrix[1]}).narrow(place, 1).reshape(matrix);
}

bool run_matmul(OpFixture& fixture) {
  const auto a = fixture.input("a");
  const auto b = fixture.input("b");
  const auto dc = fixture.input("gout_out");
  const Tensor<float> c(dc.shape());
  const auto da = Tensor<float>::zeros(a.shape());
  const auto db = Tensor<float>::zeros(b.shape());
  for (std::int64_t index = 0; index < c.numel() / (c.dim(-2) * c.dim(-1)); ++index) {
    const auto at = [&](const Tensor<float>& tensor) { return broadcast_matrix(tensor, c.shape(), index); };
    auto to = at(c);
    auto to_a = at(da);
    auto to_b = at(db);
    matmul(at(a), at(b), to);
    matmul(at(dc), at(b), to_a, {.transpose_b = true, .accumulate = true});
    matmul(at(a), at(dc), to_b, {.transpose_a = true, .accumulate = true});
  }
  fixture.result("out", c);
  fixture.result("grad_a", da);
  fixture.result("grad_b", db);
  return true;
}

bool run_layer_norm(OpFixture& fixture) {
  const auto x = fixture.input("x");
  const auto weight = fixture.input_or_undefined("weight");
  const std::int64_t rows = x.shape().rows();
  const Shape width{x.shape().back()};
  const Tensor<float> y(x.shape()), dx(x.shape()), mean({rows}), rstd({rows}), dweight(width), dbias(width);
  layer_norm<float, Cpu>({.x = x,
                          .weight = weight,
                          .bias = fixture.input_or_undefined("bias"),
                          .epsilon = fixture.hyper().at("eps"),
                          .y = y,
                          .mean = mean,
                          .rstd = rstd});
  layer_norm_backward<float, Cpu>({.x = x,
                                   .weight = weight,
                                   .mean = mean,
                                   .rstd = rstd,
                                   .dy = fixture.input("gout_out"),
                                   .dx = dx,
                                   .dweight = dweight,
                                   .dbias = dbias});
  fixture.result("out", y);
  fixture.result("grad_x", dx);
  fixture.result("grad_weight", dweight);
  fixture.result("grad_bias", dbias);
  return true;
}

bool run_cross_entropy(OpFixture& fixture) {
  if (fixture.hyper().at("label_smoothing") != 0.0 || fixture.hyper().at("class_weight")) return false;
  auto targets = fixture.indices("target");
  for (std::int32_t& target : targets.span()) {
    if (target == fixture.hyper().at("ignore_index")) target = ignored_target;
  }
  const auto stored = fixture.input("logits");  // classes are dim 1
  const std::int64_t batch = stored.dim(0);
  const std::int64_t classes = stored.dim(1);
  const std::int64_t places = stored.numel() / (batch * classes);
  const std::int64_t rows = batch * places;
  const auto logits = transposed(stored.reshape({batch, classes, places}), 1, 2).reshape({rows, classes});
  Tensor<float> log_sum_exp({rows});
  Tensor<float> dlogits(logits.shape());
  const std::string reduction = fixture.hyper().at("reduction");
  if (reduction == "none") {
    const auto upstream = fixture.input("gout_out");
    Tensor<float> losses({rows});
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto one = logits.narrow(row, 1);
      const auto target = targets.reshape({rows}).narrow(row, 1);
      auto lse = log_sum_exp.narrow(row, 1);
      auto gradient = dlogits.narrow(row, 1);
      losses.data()[row] = static_cast<float>(cross_entropy(one, target, lse).sum);
      cross_entropy_backward(one, target, lse, upstream.data()[row], gradient);
    }
    fixture.result("out", losses);
  } else {
    const auto result = cross_entropy(logits, targets, log_sum_exp);
    const double share = reduction == "mean" ? 1 / static_cast<double>(result.kept) : 1;
    cross_entropy_backward(logits, targets, log_sum_exp, static_cast<float>(share), dlogits);
    fixture.result("out", Tensor<float>::full({}, static_cast<float>(result.sum * share)));
  }
  fixture.result("grad_logits", transposed(dlogits.reshape({batch, places, classes}), 1, 2));
  return true;
}

bool run_embedding(OpFixture& fixture) {
  if (!fixture.hyper().at("padding_idx").is_null()) return false;
  const auto index = fixture.indices("index");
  const auto weight = fixture.input("weight");
  const auto dy = fixture.input("gout_out");
  Tensor<float> y(dy.shape());
  Tensor<float> dweight(weight.shape());
  embedding(index, weight, y);
  embedding_backward(index, dy, dweight, false);
  fixture.result("out", y);
  fixture.result("grad_weight", dweight);
  return true;
}

// Copies between [batch, heads, time, size] and part `part` of `parts` in a packed [batch, time, parts * heads * size].
void copy_packed(const Tensor<float>& separate, const Tensor<float>& packed, int part, int parts, bool pack) {
  const std::int64_t heads = separate.dim(1), time = separate.dim(2), size = separate.dim(3);
  for (std::int64_t i = 0; i < separate.numel(); ++i) {
    const std::int64_t j = i % size, row = i / size % time, head = i / (size * time) % heads, batch = i / (size * time * heads);
    float& place = packed.data()[(((batch * time + row) * parts + part) * heads + head) * size + j];
    (pack ? place : separate.data()[i]) = pack ? separate.data()[i] : place;
  }
}

bool run_attention(OpFixture& fixture) {
  const auto& hyper = fixture.hyper();
  if (!hyper.at("causal") || hyper.at("key_padding_mask") || hyper.at("scale") != "1/sqrt(head_dim)") return false;
  const auto q = fixture.input("q");
  if (fixture.shape("k") != q.shape()) return false;
  const std::int64_t width = q.dim(1) * q.dim(3);
  const auto heads = static_cast<int>(q.dim(1));
  const Tensor<float> qkv({q.dim(0), q.dim(2), 3 * width});
  const Tensor<float> dout({q.dim(0), q.dim(2), width});
  copy_packed(q, qkv, 0, 3, true);
  copy_packed(fixture.input("k"), qkv, 1, 3, true);
  copy_packed(fixture.input("v"), qkv, 2, 3, true);
  copy_packed(fixture.input("gout_out"), dout, 0, 1, true);
  Tensor<float> out(dout.shape()), log_sum_exp({q.dim(0), q.dim(1), q.dim(2)}), dqkv(qkv.shape());
  causal_attention(qkv, heads, out, log_sum_exp);
  causal_attention_backward(qkv, heads, out, log_sum_exp, dout, dqkv);
  const auto give = [&](const std::string& name, const Tensor<float>& packed, int part, int parts) {
    const Tensor<float> separate(q.shape());
    copy_packed(separate, packed, part, parts, false);
    fixture.result(name, separate);
  };
  give("out", out, 0, 1);
  give("grad_q", dqkv, 0, 3);
  give("grad_k", dqkv, 1, 3);
  give("grad_v", dqkv, 2, 3);
  return true;
}

}  // namespace

bool run_op(const std::string& op, OpFixture& fixture) {
  static const std::map<std::string, Activation> activations{
      {"gelu_tanh", Activation::gelu_tanh}, {"gelu_erf", Activation::gelu_erf}, {"relu", Activation::relu},
      {"silu", Activation::silu},           {"sigmoid", Activation::sigmoid},   {"tanh", Activation::tanh}};
  if (const auto found = activations.find(op); found != activations.end()) return run_activation(found->second, fixture);
  if (op == "leaky_relu") return run_leaky_relu(fixture);
  if (op == "softplus") return run_softplus(fixture);
  if (op == "softmax") return run_softmax(fixture, softmax<float, Cpu>, softmax_backward<float, Cpu>);
  if (op == "log_softmax") return run_softmax(fixture, log_softmax<float, Cpu>, log_softmax_backward<float, Cpu>);
  if (op == "linear") return run_linear(fixture);
  if (op == "matmul") return run_matmul(fixture);
  if (op == "layer_norm") return run_layer_norm(fixture);
  if (op == "cross_entropy") return run_cross_entropy(fixture);
  if (op == "embedding") return run_embedding(fixture);
  if (op == "lstm") return run_lstm(fixture);
  if (op == "gru") return run_gru(fixture);
  if (op == "scaled_dot_product_attention") return run_attention(fixture);
  return false;
}

}  // namespace trireme::ops
