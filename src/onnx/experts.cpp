#include "onnx/builder.hpp"

// Mixtures of experts. In the graph all experts compute all tokens, [experts, tokens, features] instead of rows for each
// expert. An expert that a token did not choose has the weight 0.
namespace trireme::onnx::detail {
namespace {

void take_rows(Builder& b) {
  if (b.whole("limited") != 0) b.refuse("limits the tokens of an expert by a capacity, which depends on all of them");
  b.set_result(b.node("Unsqueeze", {b.operand(0), b.numbers_of({0})}));
}

void expert_linear(Builder& b) {
  const std::int64_t experts = b.whole("experts"), out = b.fixed(b.dims(1)[0]) / experts, in = b.fixed(b.dims(1)[1]);
  const std::string weights = b.reshape(b.operand(1), b.dims(1), {experts, out, in});
  b.set_result(b.node("MatMul", {b.operand(0), b.transpose(weights, {0, 2, 1})}));
}

void combine_rows(Builder& b) {
  const Dim tokens = b.dims(1)[0], experts = b.whole("experts");
  const std::string choices = b.choices_of(1, b.dims(1));
  if (choices.empty()) b.refuse("has weights that do not come from a topk() of as many experts for each token");
  const std::string none = b.node("Expand", {b.number(0), b.extents({tokens, experts})});
  const std::string weights =
      b.node("ScatterElements", {none, choices, b.operand(1)}, {{"axis", std::int64_t{1}}});  // [tokens, experts]
  const std::string of_experts = b.node("Unsqueeze", {b.transpose(weights, {1, 0}), b.numbers_of({2})});
  b.set_result(
      b.node("ReduceSum", {b.node("Mul", {b.operand(0), of_experts}), b.numbers_of({0})}, {{"keepdims", std::int64_t{0}}}));
}

}  // namespace

void add_experts(Emitters& to) {
  to["take_expert_rows"] = take_rows;
  to["expert_linear"] = expert_linear;
  to["combine_expert_rows"] = combine_rows;
}

}  // namespace trireme::onnx::detail
