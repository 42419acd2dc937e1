#include "trireme/device/isa.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "device/built_isas.hpp"
#include "trireme/core/error.hpp"

namespace trireme::device {
namespace {

// The features that kernels are compiled with: TRIREME_ISA_FLAGS_* in cmake/TriremeKernels.cmake.
constexpr std::array<std::string_view, 3> avx2_features{"avx2", "fma", "f16c"};
constexpr std::array<std::string_view, 4> avx512_features{"avx512f", "avx512bw", "avx512dq", "avx512vl"};

std::vector<std::string_view> features_of_this_processor() {
  std::vector<std::string_view> features;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) features.emplace_back("avx2");
  if (__builtin_cpu_supports("fma")) features.emplace_back("fma");
  if (__builtin_cpu_supports("f16c")) features.emplace_back("f16c");
  if (__builtin_cpu_supports("avx512f")) features.emplace_back("avx512f");
  if (__builtin_cpu_supports("avx512bw")) features.emplace_back("avx512bw");
  if (__builtin_cpu_supports("avx512dq")) features.emplace_back("avx512dq");
  if (__builtin_cpu_supports("avx512vl")) features.emplace_back("avx512vl");
#endif
  return features;
}

std::string names_up_to(Isa best, std::span<const Isa> built) {
  std::string names;
  for (const Isa isa : built) {
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

Isa best_isa(std::span<const std::string_view> features) {
  const auto has_all = [&](std::span<const std::string_view> wanted) {
    return std::ranges::all_of(wanted, [&](std::string_view name) { return std::ranges::count(features, name) > 0; });
  };
  if (!has_all(avx2_features)) return Isa::baseline;
  return has_all(avx512_features) ? Isa::avx512 : Isa::avx2;
}

Isa choose_isa(Isa best, std::span<const Isa> built, const char* forced) {
  const std::string available = names_up_to(best, built);
  if (available.empty()) {
    throw Error({.code = ErrorCode::not_available,
                 .message = "this build has no kernels that run on this processor",
                 .wanted = std::string(name_of(best)),
                 .had = names_up_to(Isa::avx512, built),
                 .hint = "configure it with -DTRIREME_KERNELS=all"});
  }
  for (auto isa = built.rbegin(); isa != built.rend(); ++isa) {
    if (*isa <= best && (forced == nullptr || name_of(*isa) == forced)) return *isa;
  }
  throw Error({.code = ErrorCode::not_available,
               .message = fmt::format("this processor, with this build, has no instruction set \"{}\"", forced),
               .name = "TRIREME_ISA",
               .wanted = available,
               .had = forced,
               .hint = "unset TRIREME_ISA or set it to one of those"});
}

Isa current_isa() {
  static const Isa isa = choose_isa(best_isa(features_of_this_processor()), built_isas(), std::getenv("TRIREME_ISA"));
  return isa;
}

}  // namespace trireme::device
