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
#define TRIREME_NAME(name) \
  case Unary::name: return #name;
    TRIREME_EACH_UNARY(TRIREME_NAME)
#undef TRIREME_NAME
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
