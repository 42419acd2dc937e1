#include <map>

#include "ops/reference_fixture.hpp"
#include "ops/reference_recurrent.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/embedding.hpp"
#include "trireme/autograd/operations/loss.hpp"
#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/autograd/operations/norm.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/ops/array/transpose.hpp"
#include "trireme/ops/attention/attention.hpp"
#include "trireme/ops/elementwise/elementwise.hpp"
#include "trireme/ops/embedding/embedding.hpp"
#include "trireme/ops/loss/elementwise_loss.hpp"
#include "trireme/ops/loss/loss.hpp"
#include "trireme/ops/matmul/batched_matmul.hpp"
#include "trireme/ops/matmul/matmul.hpp"
#include "trireme/ops/norm/norm.hpp"
#include "trireme/ops/reduce/reduce.hpp"
#include "trireme/ops/reduce/softmax.hpp"

namespace trireme::ops {
namespace {

void run_activation(Activation kind, OpFixture& fixture) {
  fixture.know_options({});
  const auto x = fixture.input("x");
  Tensor<float> y(x.shape());
  Tensor<float> dx(x.shape());
  activation(kind, x, y);
  activation_backward(kind, x, fixture.input("gout_out"), dx, false);
  fixture.result("out", y);
  fixture.result("grad_x", dx);
}

void run_leaky_relu(OpFixture& fixture) {
  fixture.know_options({"negative_slope"});
  const double slope = fixture.hyper().at("negative_slope");
  const auto x = fixture.input("x");
  Tensor<float> y(x.shape());
  Tensor<float> dx(x.shape());
  leaky_relu(x, slope, y);
  leaky_relu_backward(x, slope, fixture.input("gout_out"), dx, false);
  fixture.result("out", y);
  fixture.result("grad_x", dx);
}

void run_softplus(OpFixture& fixture) {
  fixture.know_options({});
  const auto x = fixture.input("x");
  Tensor<float> y(x.shape());
  Tensor<float> dx(x.shape());
  softplus(x, {}, y);
  softplus_backward(x, {}, fixture.input("gout_out"), dx, false);
  fixture.result("out", y);
  fixture.result("grad_x", dx);
}

Tensor<float> transposed(const Tensor<float>& x, int first, int second) {
  Tensor<float> y(transposed_shape(x.shape(), first, second));
  transpose(x, first, second, y);
  return y;
}

template <typename Forward, typename Backward>
void run_softmax(OpFixture& fixture, const Forward& forward, const Backward& backward) {
  fixture.know_options({"dim"});
  const int dim = fixture.hyper().at("dim");
  auto y = transposed(fixture.input("x"), dim, -1);
  auto dx = transposed(fixture.input("gout_out"), dim, -1);
  forward(y, y);
  backward(y, dx, dx, false);
  fixture.result("out", transposed(y, dim, -1));
  fixture.result("grad_x", transposed(dx, dim, -1));
}

void run_linear(OpFixture& fixture) {
  fixture.know_options({"bias"});
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
}

void run_matmul(OpFixture& fixture) {
  fixture.know_options({});
  const auto a = fixture.input("a");
  const auto b = fixture.input("b");
  const auto dc = fixture.input("gout_out");
  Tensor<float> c(dc.shape()), da(a.shape()), db(b.shape());
  batched_matmul(a, b, c);
  batched_matmul_backward<float, Cpu>({.a = a, .b = b, .dc = dc, .da = da, .db = db});
  fixture.result("out", c);
  fixture.result("grad_a", da);
  fixture.result("grad_b", db);
}

void run_rms_norm(OpFixture& fixture) {
  fixture.know_options({"eps"});
  const auto x = fixture.input("x");
  const auto weight = fixture.input("weight");
  const Tensor<float> y(x.shape()), dx(x.shape()), rstd({x.shape().rows()}), dweight(weight.shape());
  rms_norm<float, Cpu>({.x = x, .weight = weight, .epsilon = fixture.hyper().at("eps"), .y = y, .rstd = rstd});
  rms_norm_backward<float, Cpu>(
      {.x = x, .weight = weight, .rstd = rstd, .dy = fixture.input("gout_out"), .dx = dx, .dweight = dweight});
  fixture.result("out", y);
  fixture.result("grad_x", dx);
  fixture.result("grad_weight", dweight);
}

void run_layer_norm(OpFixture& fixture) {
  fixture.know_options({"normalized_shape", "eps", "affine"});
  const auto watched = [&fixture](const std::string& name) -> Variable<float> {
    if (!fixture.has(name)) return {};
    return watch(fixture.input(name),
                 [&fixture, name](const Tensor<float>& gradient) { fixture.result("grad_" + name, gradient); });
  };
  const auto dims = static_cast<int>(fixture.hyper().at("normalized_shape").size());
  const Tape tape;
  const auto y = layer_norm(watched("x"), watched("weight"), watched("bias"), fixture.hyper().at("eps").get<double>(), dims);
  fixture.result("out", y.value());
  y.backward(fixture.input("gout_out"));
}

void run_cross_entropy(OpFixture& fixture) {
  fixture.know_options({"reduction", "ignore_index", "label_smoothing", "class_weight"});
  const auto& hyper = fixture.hyper();
  const CrossEntropyOptions<float, Cpu> options{.ignore_index = hyper.at("ignore_index"),
                                                .label_smoothing = hyper.at("label_smoothing"),
                                                .class_weight = fixture.input_or_undefined("class_weight")};
  const auto stored = fixture.input("logits");  // classes are dim 1
  const std::int64_t batch = stored.dim(0);
  const std::int64_t classes = stored.dim(1);
  const std::int64_t places = stored.numel() / (batch * classes);
  const std::int64_t rows = batch * places;
  const auto targets = fixture.indices("target").reshape({rows});
  const auto logits = transposed(stored.reshape({batch, classes, places}), 1, 2).reshape({rows, classes});
  Tensor<float> exponentials({2, rows});
  Tensor<float> dlogits(logits.shape());
  const auto result = cross_entropy(logits, targets, exponentials, options);
  const std::string reduction = hyper.at("reduction");
  if (reduction == "none") {
    Tensor<float> losses({rows});
    cross_entropy_rows(logits, targets, exponentials, losses, options);
    cross_entropy_rows_backward(logits, targets, exponentials, fixture.input("gout_out"), dlogits, options);
    fixture.result("out", losses);
  } else {
    const double share = reduction == "mean" ? 1 / result.target_weight : 1;
    cross_entropy_backward(logits, targets, exponentials, static_cast<float>(share), dlogits, options);
    fixture.result("out", Tensor<float>::full({}, static_cast<float>(result.sum * share)));
  }
  fixture.result("grad_logits", transposed(dlogits.reshape({batch, places, classes}), 1, 2));
}

void run_elementwise_loss(ElementwiseLoss kind, const std::string& name, OpFixture& fixture) {
  fixture.know_options({"reduction"});
  const std::string reduction = fixture.hyper().at("reduction");
  if (reduction == "none") throw tests::SkippedFixture{"the loss is a sum"};
  const auto x = fixture.input(name);
  const auto target = fixture.input("target");
  const auto share = reduction == "mean" ? 1 / static_cast<float>(x.numel()) : 1;
  Tensor<float> dx(x.shape());
  elementwise_loss_backward(kind, x, target, share, dx, false);
  fixture.result("out", Tensor<float>::full({}, static_cast<float>(elementwise_loss(kind, x, target)) * share));
  fixture.result("grad_" + name, dx);
}

void run_embedding(OpFixture& fixture) {
  fixture.know_options({"padding_idx"});
  const auto& padding = fixture.hyper().at("padding_idx");
  const auto index = fixture.indices("index");
  const auto weight = fixture.input("weight");
  const auto dy = fixture.input("gout_out");
  Tensor<float> y(dy.shape());
  Tensor<float> dweight(weight.shape());
  embedding(index, weight, y);
  std::optional<std::int32_t> row;
  if (!padding.is_null()) row = padding.get<std::int32_t>();
  embedding_backward(index, dy, dweight, false, row);
  fixture.result("out", y);
  fixture.result("grad_weight", dweight);
}

// [batch, heads, time, size] as [batch, time, heads * size], and two of those side by side.
Tensor<float> heads_inside(const Tensor<float>& x) {
  return transposed(x, 1, 2).reshape({x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}
// Back.
Tensor<float> heads_outside(const Tensor<float>& x, std::int64_t heads) {
  return transposed(x.reshape({x.dim(0), x.dim(1), heads, x.dim(2) / heads}), 1, 2);
}
Tensor<float> side_by_side(const Tensor<float>& left, const Tensor<float>& right) {
  const std::int64_t rows = left.shape().rows(), width = left.dim(2) + right.dim(2);
  Tensor<float> both({left.dim(0), left.dim(1), width});
  for (std::int64_t row = 0; row < rows; ++row) {
    std::copy_n(left.data() + row * left.dim(2), left.dim(2), both.data() + row * width);
    std::copy_n(right.data() + row * right.dim(2), right.dim(2), both.data() + row * width + left.dim(2));
  }
  return both;
}
Tensor<float> columns(const Tensor<float>& x, std::int64_t begin, std::int64_t count) {
  Tensor<float> part({x.dim(0), x.dim(1), count});
  for (std::int64_t row = 0; row < x.shape().rows(); ++row) {
    std::copy_n(x.data() + row * x.dim(2) + begin, count, part.data() + row * count);
  }
  return part;
}

void run_attention(OpFixture& fixture) {
  fixture.know_options({"causal", "scale", "key_padding_mask", "window"});
  const auto& hyper = fixture.hyper();
  if (hyper.at("scale") != "1/sqrt(head_dim)") throw tests::SkippedFixture{"attention scales by 1/sqrt(head_dim)"};
  const std::int64_t heads = fixture.shape("q")[1];
  const std::int64_t kv_heads = fixture.shape("k")[1];
  const AttentionOptions options{.heads = static_cast<int>(heads),
                                 .kv_heads = static_cast<int>(kv_heads),
                                 .causal = hyper.at("causal"),
                                 .window = hyper.value("window", 0),
                                 .value_size = fixture.shape("v")[3]};
  const auto q = heads_inside(fixture.input("q"));
  const auto keys = heads_inside(fixture.input("k"));
  const auto values = heads_inside(fixture.input("v"));
  const auto kv = side_by_side(keys, values);
  const auto dout = heads_inside(fixture.input("gout_out"));
  Tensor<std::int32_t> hidden, first_keys;
  if (hyper.at("key_padding_mask")) hidden = fixture.indices("key_padding_mask");
  if (fixture.has("first_keys")) first_keys = fixture.indices("first_keys");
  const Tensor<float> out(dout.shape()), exponentials({2, q.dim(0), heads, q.dim(1)}), dq(q.shape()), dkv(kv.shape());
  scaled_dot_product_attention<float, Cpu>({.options = options,
                                            .q = q,
                                            .kv = kv,
                                            .key_padding_mask = hidden,
                                            .first_keys = first_keys,
                                            .out = out,
                                            .exponentials = exponentials});
  scaled_dot_product_attention_backward<float, Cpu>({.options = options,
                                                     .q = q,
                                                     .kv = kv,
                                                     .key_padding_mask = hidden,
                                                     .first_keys = first_keys,
                                                     .out = out,
                                                     .exponentials = exponentials,
                                                     .dout = dout,
                                                     .dq = dq,
                                                     .dkv = dkv});
  fixture.result("out", heads_outside(out, heads));
  fixture.result("grad_q", heads_outside(dq, heads));
  fixture.result("grad_k", heads_outside(columns(dkv, 0, keys.dim(2)), kv_heads));
  fixture.result("grad_v", heads_outside(columns(dkv, keys.dim(2), values.dim(2)), kv_heads));
}

}  // namespace

void run_op(const std::string& op, OpFixture& fixture) {
  static const std::map<std::string, Activation> activations{
      {"gelu_tanh", Activation::gelu_tanh}, {"gelu_erf", Activation::gelu_erf}, {"relu", Activation::relu},
      {"silu", Activation::silu},           {"sigmoid", Activation::sigmoid},   {"tanh", Activation::tanh}};
  if (const auto found = activations.find(op); found != activations.end()) return run_activation(found->second, fixture);
  if (op == "leaky_relu") return run_leaky_relu(fixture);
  if (op == "softplus") return run_softplus(fixture);
  if (op == "softmax") return run_softmax(fixture, softmax<float, Cpu>, softmax_backward<float, Cpu>);
  if (op == "log_softmax") return run_softmax(fixture, log_softmax<float, Cpu>, log_softmax_backward<float, Cpu>);
  if (op == "conv2d") return run_conv2d(fixture);
  if (op == "conv_transpose2d") return run_conv_transpose2d(fixture);
  if (op == "max_pool2d") return run_max_pool2d(fixture);
  if (op == "avg_pool2d") return run_avg_pool2d(fixture);
  if (op == "adaptive_avg_pool2d") return run_adaptive_avg_pool2d(fixture);
  if (op == "linear") return run_linear(fixture);
  if (op == "matmul") return run_matmul(fixture);
  if (op == "layer_norm") return run_layer_norm(fixture);
  if (op == "batch_norm") return run_batch_norm(fixture);
  if (op == "group_norm") return run_group_norm(fixture);
  if (op == "rms_norm") return run_rms_norm(fixture);
  if (op == "cross_entropy") return run_cross_entropy(fixture);
  if (op == "mse_loss") return run_elementwise_loss(ElementwiseLoss::squared_error, "x", fixture);
  if (op == "bce_with_logits") return run_elementwise_loss(ElementwiseLoss::binary_cross_entropy, "logits", fixture);
  if (op == "embedding") return run_embedding(fixture);
  if (op == "lstm") return run_lstm(fixture);
  if (op == "gru") return run_gru(fixture);
  if (op == "scaled_dot_product_attention") return run_attention(fixture);
  throw tests::SkippedFixture{"there is no operation " + op};
}

}  // namespace trireme::ops
