#include "trireme/ops/pointwise/pointwise_kind.hpp"

namespace trireme::ops {

std::string_view name_of(Binary kind) {
  switch (kind) {
    case Binary::add: return "add";
    case Binary::subtract: return "subtract";
    case Binary::multiply: return "multiply";
    case Binary::divide: return "divide";
    case Binary::minimum: return "minimum";
    case Binary::maximum: return "maximum";
    case Binary::pow: return "pow";
  }
  return {};
}

std::string_view name_of(Unary kind) {
  switch (kind) {
    case Unary::abs: return "abs";
    case Unary::neg: return "neg";
    case Unary::sign: return "sign";
    case Unary::clamp: return "clamp";
    case Unary::square: return "square";
    case Unary::exp: return "exp";
    case Unary::expm1: return "expm1";
    case Unary::log: return "log";
    case Unary::log1p: return "log1p";
    case Unary::sqrt: return "sqrt";
    case Unary::rsqrt: return "rsqrt";
    case Unary::reciprocal: return "reciprocal";
    case Unary::sin: return "sin";
    case Unary::cos: return "cos";
    case Unary::erf: return "erf";
    case Unary::floor: return "floor";
    case Unary::ceil: return "ceil";
    case Unary::round: return "round";
    case Unary::elu: return "elu";
    case Unary::mish: return "mish";
    case Unary::hardswish: return "hardswish";
    case Unary::hardsigmoid: return "hardsigmoid";
    case Unary::relu6: return "relu6";
    case Unary::softsign: return "softsign";
    case Unary::logsigmoid: return "logsigmoid";
  }
  return {};
}

std::string_view name_of(Comparison kind) {
  switch (kind) {
    case Comparison::eq: return "eq";
    case Comparison::ne: return "ne";
    case Comparison::lt: return "lt";
    case Comparison::le: return "le";
    case Comparison::gt: return "gt";
    case Comparison::ge: return "ge";
  }
  return {};
}

std::string_view name_of(FloatTest kind) {
  switch (kind) {
    case FloatTest::isnan: return "isnan";
    case FloatTest::isinf: return "isinf";
    case FloatTest::isfinite: return "isfinite";
  }
  return {};
}

std::string_view name_of(Logical kind) {
  switch (kind) {
    case Logical::logical_and: return "logical_and";
    case Logical::logical_or: return "logical_or";
    case Logical::logical_xor: return "logical_xor";
  }
  return {};
}

}  // namespace trireme::ops
