#include "trireme/device/cuda.hpp"

namespace trireme::device {
namespace {

bool& allowed() {
  thread_local bool value = false;
  return value;
}

}  // namespace

void allow_tf32(bool allow) { allowed() = allow; }
bool tf32_allowed() { return allowed(); }

}  // namespace trireme::device
