#include <cmath>
#include <limits>
#include <numbers>

#include "onnx/builder.hpp"

// Pointwise functions.
namespace trireme::onnx::detail {
namespace {

template <OperatorName op>
void unary(Builder& b) {
  b.set_result(b.node(op.text, {b.operand(0)}));
}

// A function of two operands, or of one operand and a number.
template <OperatorName op>
void binary(Builder& b) {
  if (!b.has_setting("number")) return b.set_result(b.node(op.text, {b.operand(0), b.operand(1)}));
  const std::string x = b.operand(0), number = b.number(b.real("number"));
  b.set_result(b.whole("number_first") != 0 ? b.node(op.text, {number, x}) : b.node(op.text, {x, number}));
}

// The function of the first operand times the second.
template <typename F>
void gate(Builder& b, const F& function) {
  b.set_result(b.node("Mul", {function(b.operand(0)), b.operand(1)}));
}

std::string silu_of(Builder& b, const std::string& x) { return b.node("Mul", {x, b.node("Sigmoid", {x})}); }

std::string gelu_erf_of(Builder& b, const std::string& x) {
  const std::string inner = b.node("Erf", {b.node("Mul", {x, b.number(1 / std::numbers::sqrt2)})});
  return b.node("Mul", {b.node("Mul", {x, b.number(0.5)}), b.node("Add", {inner, b.number(1)})});
}

void where(Builder& b) {
  const std::string mask = b.cast(b.operand(0), Type::boolean);
  if (!b.has_setting("number")) return b.set_result(b.node("Where", {mask, b.operand(1), b.operand(2)}));
  const std::string x = b.operand(1), number = b.number(b.real("number"));
  b.set_result(b.whole("number_first") != 0 ? b.node("Where", {mask, number, x}) : b.node("Where", {mask, x, number}));
}

void softplus(Builder& b) {
  const double beta = b.real("beta"), threshold = b.real("threshold");
  const std::string x = b.operand(0);
  const std::string scaled = b.node("Mul", {x, b.number(beta)});
  const std::string soft = b.node("Div", {b.node("Softplus", {scaled}), b.number(beta)});
  b.set_result(b.node("Where", {b.node("Greater", {scaled, b.number(threshold)}), x, soft}));
}

// exp(x) - 1 and log(1 + x) lose digits near 0. There, these functions take their place: 2 t / (1 - t) with t = tanh(x / 2),
// and 2 atanh(x / (2 + x)).
std::string near_zero(Builder& b, const std::string& near, const std::string& far) {
  const std::string is_near = b.node("Less", {b.node("Abs", {b.operand(0)}), b.number(0.5)});
  return b.node("Where", {is_near, near, far});
}
void expm1(Builder& b) {
  const std::string x = b.operand(0), t = b.node("Tanh", {b.node("Mul", {x, b.number(0.5)})});
  const std::string near = b.node("Div", {b.node("Mul", {t, b.number(2)}), b.node("Sub", {b.number(1), t})});
  b.set_result(near_zero(b, near, b.node("Sub", {b.node("Exp", {x}), b.number(1)})));
}
void log1p(Builder& b) {
  const std::string x = b.operand(0);
  const std::string near = b.node("Atanh", {b.node("Div", {x, b.node("Add", {x, b.number(2)})})});
  b.set_result(near_zero(b, b.node("Mul", {near, b.number(2)}), b.node("Log", {b.node("Add", {x, b.number(1)})})));
}

void clamp(Builder& b) {
  b.set_result(b.node("Clip", {b.operand(0), b.number(b.real("lowest")), b.number(b.real("highest"))}));
}

}  // namespace

// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
std::string gelu_tanh_of(Builder& b, const std::string& x) {
  const std::string cube = b.node("Mul", {b.node("Mul", {x, x}), x});
  const std::string sum = b.node("Add", {x, b.node("Mul", {cube, b.number(0.044715)})});
  const std::string inner = b.node("Tanh", {b.node("Mul", {sum, b.number(std::sqrt(2 / std::numbers::pi))})});
  return b.node("Mul", {b.node("Mul", {x, b.number(0.5)}), b.node("Add", {inner, b.number(1)})});
}

void add_pointwise(Emitters& to) {
  to["add"] = binary<"Add">;
  to["subtract"] = binary<"Sub">;
  to["multiply"] = binary<"Mul">;
  to["divide"] = binary<"Div">;
  to["minimum"] = binary<"Min">;
  to["maximum"] = binary<"Max">;
  to["pow"] = binary<"Pow">;
  to["shift"] = [](Builder& b) { b.set_result(b.node("Add", {b.operand(0), b.number(b.real("summand"))})); };
  to["scale"] = [](Builder& b) { b.set_result(b.node("Mul", {b.operand(0), b.number(b.real("factor"))})); };
  to["where"] = where;
  to["cast"] = [](Builder& b) { b.set_result(b.operand(0)); };  // all floats are float32 there
  to["abs"] = unary<"Abs">;
  to["neg"] = unary<"Neg">;
  to["sign"] = unary<"Sign">;
  to["exp"] = unary<"Exp">;
  to["expm1"] = expm1;
  to["log1p"] = log1p;
  to["log"] = unary<"Log">;
  to["sqrt"] = unary<"Sqrt">;
  to["sin"] = unary<"Sin">;
  to["cos"] = unary<"Cos">;
  to["erf"] = unary<"Erf">;
  to["floor"] = unary<"Floor">;
  to["ceil"] = unary<"Ceil">;
  to["round"] = unary<"Round">;
  to["reciprocal"] = unary<"Reciprocal">;
  to["relu"] = unary<"Relu">;
  to["sigmoid"] = unary<"Sigmoid">;
  to["tanh"] = unary<"Tanh">;
  to["selu"] = unary<"Selu">;
  to["softsign"] = unary<"Softsign">;
  to["hardswish"] = unary<"HardSwish">;
  to["square"] = [](Builder& b) { b.set_result(b.node("Mul", {b.operand(0), b.operand(0)})); };
  to["rsqrt"] = [](Builder& b) { b.set_result(b.node("Reciprocal", {b.node("Sqrt", {b.operand(0)})})); };
  to["clamp"] = clamp;
  to["relu6"] = [](Builder& b) { b.set_result(b.node("Clip", {b.operand(0), b.number(0), b.number(6)})); };
  to["elu"] = [](Builder& b) { b.set_result(b.node("Elu", {b.operand(0)}, {{"alpha", static_cast<float>(b.real("alpha"))}})); };
  to["hardsigmoid"] = [](Builder& b) {
    b.set_result(b.node("HardSigmoid", {b.operand(0)}, {{"alpha", 1.0F / 6}, {"beta", 0.5F}}));
  };
  to["mish"] = [](Builder& b) {
    b.set_result(b.node("Mul", {b.operand(0), b.node("Tanh", {b.node("Softplus", {b.operand(0)})})}));
  };
  to["logsigmoid"] = [](Builder& b) { b.set_result(b.node("Neg", {b.node("Softplus", {b.node("Neg", {b.operand(0)})})})); };
  to["leaky_relu"] = [](Builder& b) {
    b.set_result(b.node("LeakyRelu", {b.operand(0)}, {{"alpha", static_cast<float>(b.real("slope"))}}));
  };
  to["softplus"] = softplus;
  to["glu"] = [](Builder& b) { gate(b, [&](const auto& x) { return b.node("Sigmoid", {x}); }); };
  to["reglu"] = [](Builder& b) { gate(b, [&](const auto& x) { return b.node("Relu", {x}); }); };
  to["tanh_glu"] = [](Builder& b) { gate(b, [&](const auto& x) { return b.node("Tanh", {x}); }); };
  to["swiglu"] = [](Builder& b) { gate(b, [&](const auto& x) { return silu_of(b, x); }); };
  to["geglu"] = [](Builder& b) { gate(b, [&](const auto& x) { return gelu_erf_of(b, x); }); };
  to["geglu_tanh"] = [](Builder& b) { gate(b, [&](const auto& x) { return gelu_tanh_of(b, x); }); };
  to["silu"] = [](Builder& b) { b.set_result(silu_of(b, b.operand(0))); };
  to["gelu_erf"] = [](Builder& b) { b.set_result(gelu_erf_of(b, b.operand(0))); };
  to["gelu_tanh"] = [](Builder& b) { b.set_result(gelu_tanh_of(b, b.operand(0))); };
}

}  // namespace trireme::onnx::detail
