#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace device {

// Instruction sets that kernel files are compiled for. Each includes the previous ones.
enum class Isa : std::uint8_t { baseline, avx2, avx512 };

std::string_view name_of(Isa isa);

// The best instruction set that this processor supports and this build has kernels for, or the instruction set that the
// environment variable TRIREME_ISA names. Throws Error if there is none, or if the processor or the build lacks the instruction
// set that TRIREME_ISA names.
Isa current_isa();

// The best instruction set for a processor with these features, named as for __builtin_cpu_supports.
Isa best_isa(std::span<const std::string_view> features);

// Implements current_isa(). `best` is the best instruction set of the processor, `built` are the instruction sets with kernels
// in this build, ascending, and `forced` is the value of TRIREME_ISA or null.
Isa choose_isa(Isa best, std::span<const Isa> built, const char* forced);

}  // namespace device
}  // namespace trireme

// Use TRIREME_KERNEL_TABLE(Table, name) in the namespace of a room. It defines <room>::name(), which returns the table for this
// processor. Table is a struct of function pointers. Each variant of the kernel file must define its own table as the constant
// <room>::TRIREME_ISA::name.
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
