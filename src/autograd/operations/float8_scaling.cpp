#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/core/error.hpp"

namespace trireme {

Float8Scaling float8_scaling_named(std::string_view name) {
  if (name == "none") return Float8Scaling::none;
  if (name == "current") return Float8Scaling::current;
  require(name == "delayed", "8-bit scaling is none, current or delayed, not {}", name);
  return Float8Scaling::delayed;
}

}  // namespace trireme
