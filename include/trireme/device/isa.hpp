#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace device {

// Instruction sets that kernel files are compiled for, each one including those before it.
enum class Isa : std::uint8_t { baseline, avx2, avx512 };

std::string_view name_of(Isa isa);

// The best one that this processor has and this build has kernels for, or the one that the environment variable TRIREME_ISA
// names. Throws Error when there is none, and when TRIREME_ISA names another or none at all.
Isa current_isa();

// The best one whose kernels run on a processor with these features, each named as by __builtin_cpu_supports.
Isa best_isa(std::span<const std::string_view> features);

// The rule of current_isa(): the processor's best one, those that kernels are built for, least first, and what TRIREME_ISA
// says, null when unset.
Isa choose_isa(Isa best, std::span<const Isa> built, const char* forced);

}  // namespace device
}  // namespace trireme

// TRIREME_KERNEL_TABLE(Table, name), in the namespace of a room: each variant of a kernel file defines one constant of type
// Table, a struct of function pointers, as <room>::TRIREME_ISA::name. <room>::name() is the one for this processor.
#if defined(__x86_64__)
#define TRIREME_KERNEL_TABLE(Table, name)                       \
  namespace baseline {                                          \
  extern const Table name;                                      \
  }                                                             \
  namespace avx2 {                                              \
  extern const Table name;                                      \
  }                                                             \
  namespace avx512 {                                            \
  extern const Table name;                                      \
  }                                                             \
  inline const Table& name() {                                  \
    switch (::trireme::device::current_isa()) {                 \
      case ::trireme::device::Isa::avx512: return avx512::name; \
      case ::trireme::device::Isa::avx2: return avx2::name;     \
      case ::trireme::device::Isa::baseline: break;             \
    }                                                           \
    return baseline::name;                                      \
  }
#else
#define TRIREME_KERNEL_TABLE(Table, name) \
  namespace baseline {                    \
  extern const Table name;                \
  }                                       \
  inline const Table& name() { return baseline::name; }
#endif
