#include <fmt/format.h>

#include <vector>

#include "onnx/builder.hpp"

namespace trireme::onnx::detail {
namespace {

constexpr std::int64_t yes = 1;

void require_evaluation(Builder& b) {
  if (b.whole("training") != 0) b.refuse("trains: it normalises by the batch");
}

std::string scaled(Builder& b, std::string x, std::size_t weight, std::size_t bias) {
  if (b.has(weight)) x = b.node("Mul", {x, b.operand(weight)});
  if (b.has(bias)) x = b.node("Add", {x, b.operand(bias)});
  return x;
}

// x / sqrt(mean square + epsilon) over these dims.
std::string over_root(Builder& b, const std::string& x, const Numbers& dims) {
  const std::string mean = b.node("ReduceMean", {b.node("Mul", {x, x})}, {{"axes", dims}, {"keepdims", yes}});
  return b.node("Div", {x, b.node("Sqrt", {b.node("Add", {mean, b.number(b.real("epsilon"))})})});
}

std::string layer_norm_of(Builder& b, const std::string& x, std::size_t weight, std::size_t bias) {
  const Dim width = b.dims(0).back();
  if (!width.is_constant()) b.refuse("normalises a dim of dynamic extent");
  std::vector<std::string> operands{x};
  const std::vector<float> ones(static_cast<std::size_t>(width.first), 1.0F);
  operands.push_back(b.has(weight) ? b.operand(weight) : b.floats(ones));
  if (b.has(bias)) operands.push_back(b.operand(bias));
  return b.node("LayerNormalization", operands,
                {{"axis", std::int64_t{-1}}, {"epsilon", static_cast<float>(b.real("epsilon"))}});
}

std::string rms_norm_of(Builder& b, const std::string& x, std::size_t weight) {
  return scaled(b, over_root(b, x, {-1}), weight, weight + 1);
}

// Results: the sum, and its norm.
template <bool rms>
void residual_norm(Builder& b) {
  const std::string sum = b.node("Add", {b.operand(0), b.operand(1)});
  b.set_result(sum, 0);
  b.set_result(rms ? rms_norm_of(b, sum, 2) : layer_norm_of(b, sum, 2, 3), 1);
}

// By running statistics; operands from `weight` on: weight, bias, mean, variance.
std::string batch_norm_of(Builder& b, std::size_t weight) {
  require_evaluation(b);
  const std::string variance = b.operand(weight + 3);
  const std::string epsilon = b.number(b.real("epsilon"));
  const std::string deviation = b.once(fmt::format("deviation {} {}", variance, epsilon), [&] {
    return b.node("Sqrt", {b.node("Add", {variance, epsilon})});
  });
  const std::string centred = b.node("Sub", {b.operand(0), b.operand(weight + 2)});
  return scaled(b, b.node("Div", {centred, deviation}), weight, weight + 1);
}

void group_norm(Builder& b) {
  const Dims dims = b.dims(0);
  const std::int64_t groups = b.whole("groups"), channels = b.fixed(dims.back());
  Dim pixels(1);
  for (std::size_t i = 1; i + 1 < dims.size(); ++i) pixels = {pixels.first * dims[i].first, pixels.second * dims[i].second};
  const Dims grouped{dims[0], pixels, groups, channels / groups};
  const std::string x = b.reshape(b.operand(0), dims, grouped);
  const std::string mean = b.node("ReduceMean", {x}, {{"axes", Numbers{1, 3}}, {"keepdims", yes}});
  const std::string normalized = over_root(b, b.node("Sub", {x, mean}), {1, 3});
  b.set_result(scaled(b, b.reshape(normalized, grouped, dims), 1, 2));
}

}  // namespace

void add_norms(Emitters& to) {
  to["layer_norm"] = [](Builder& b) { b.set_result(layer_norm_of(b, b.operand(0), 1, 2)); };
  to["residual_layer_norm"] = residual_norm<false>;
  to["rms_norm"] = [](Builder& b) { b.set_result(rms_norm_of(b, b.operand(0), 1)); };
  to["residual_rms_norm"] = residual_norm<true>;
  to["batch_norm"] = [](Builder& b) { b.set_result(batch_norm_of(b, 1)); };
  to["batch_norm_relu"] = [](Builder& b) { b.set_result(b.node("Relu", {batch_norm_of(b, 1)})); };
  to["batch_norm_add_relu"] = [](Builder& b) {
    b.set_result(b.node("Relu", {b.node("Add", {batch_norm_of(b, 2), b.operand(1)})}));
  };
  to["group_norm"] = group_norm;
}

}  // namespace trireme::onnx::detail
