#include "trireme/device/isa.hpp"

#include <array>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"

using trireme::Error;
using namespace trireme::device;

namespace {

constexpr std::array all{Isa::baseline, Isa::avx2, Isa::avx512};
constexpr std::array avx2_alone{Isa::avx2};

}  // namespace

TEST_CASE("without TRIREME_ISA the processor's best instruction set is taken") {
  CHECK(choose_isa(Isa::avx512, all, nullptr) == Isa::avx512);
  CHECK(choose_isa(Isa::baseline, all, nullptr) == Isa::baseline);
}

TEST_CASE("an instruction set needs every feature that its kernels are compiled with") {
  const std::vector<std::string_view> features{"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl"};
  CHECK(best_isa(features) == Isa::avx512);
  for (const std::string_view lacking : features) {
    CAPTURE(lacking);
    auto others = features;
    std::erase(others, lacking);
    CHECK(best_isa(others) == (lacking.starts_with("avx512") ? Isa::avx2 : Isa::baseline));
  }
  CHECK(best_isa({}) == Isa::baseline);
}

TEST_CASE("TRIREME_ISA forces an instruction set that the processor has") {
  CHECK(choose_isa(Isa::avx512, all, "baseline") == Isa::baseline);
  CHECK(choose_isa(Isa::avx512, all, "avx2") == Isa::avx2);
  CHECK(choose_isa(Isa::avx2, all, "avx2") == Isa::avx2);
}

TEST_CASE("TRIREME_ISA with a word that does not work is an error that lists what would") {
  CHECK_THROWS_WITH(choose_isa(Isa::avx2, all, "avx512"),
                    ContainsSubstring("TRIREME_ISA") && ContainsSubstring("wanted baseline, avx2;"));
  CHECK_THROWS_WITH(choose_isa(Isa::avx512, all, "AVX2"),
                    ContainsSubstring("\"AVX2\"") && ContainsSubstring("baseline, avx2, avx512"));
  CHECK_THROWS_AS(choose_isa(Isa::baseline, all, ""), Error);
}

TEST_CASE("a build with kernels for some instruction sets takes the best of those that the processor has") {
  CHECK(choose_isa(Isa::avx512, avx2_alone, nullptr) == Isa::avx2);
  CHECK(choose_isa(Isa::avx2, avx2_alone, "avx2") == Isa::avx2);
  CHECK_THROWS_WITH(choose_isa(Isa::avx512, avx2_alone, "baseline"), ContainsSubstring("wanted avx2;"));
  CHECK_THROWS_WITH(choose_isa(Isa::baseline, avx2_alone, nullptr), ContainsSubstring("TRIREME_KERNELS=all"));
}
