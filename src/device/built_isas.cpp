#include "device/built_isas.hpp"

#include <array>

namespace trireme::device {

std::span<const Isa> built_isas() {
  static constexpr std::array isas{TRIREME_BUILT_ISAS};
  return isas;
}

}  // namespace trireme::device
