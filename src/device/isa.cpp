#include "trireme/device/isa.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <string>

#include "trireme/core/error.hpp"

namespace trireme::device {
namespace {

constexpr std::array all_isas{Isa::baseline, Isa::avx2, Isa::avx512};

Isa best_isa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  const bool avx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  if (avx2 && avx512) return Isa::avx512;
  if (avx2) return Isa::avx2;
#endif
  return Isa::baseline;
}

std::string names_up_to(Isa best) {
  std::string names;
  for (const Isa isa : all_isas) {
    if (isa <= best) names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(isa));
  }
  return names;
}

}  // namespace

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::baseline: return "baseline";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
  }
  return "unknown";
}

Isa choose_isa(Isa best, const char* forced) {
  if (forced == nullptr) return best;
  for (const Isa isa : all_isas) {
    if (name_of(isa) == forced && isa <= best) return isa;
  }
  throw Error({.code = ErrorCode::not_available,
               .message = fmt::format("this processor has no instruction set \"{}\"", forced),
               .name = "TRIREME_ISA",
               .wanted = names_up_to(best),
               .had = forced,
               .hint = "unset TRIREME_ISA or set it to one of those"});
}

Isa current_isa() {
  static const Isa isa = choose_isa(best_isa(), std::getenv("TRIREME_ISA"));
  return isa;
}

}  // namespace trireme::device
