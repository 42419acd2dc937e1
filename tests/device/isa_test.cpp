#include "trireme/device/isa.hpp"

#include <string_view>
#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"

using trireme::Error;
using namespace trireme::device;

TEST_CASE("without TRIREME_ISA the processor's best instruction set is taken") {
  CHECK(choose_isa(Isa::avx512, nullptr) == Isa::avx512);
  CHECK(choose_isa(Isa::baseline, nullptr) == Isa::baseline);
}

TEST_CASE("an instruction set needs every feature that its kernels are compiled with") {
  const std::vector<std::string_view> all{"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl"};
  CHECK(best_isa(all) == Isa::avx512);
  for (const std::string_view lacking : all) {
    CAPTURE(lacking);
    auto others = all;
    std::erase(others, lacking);
    CHECK(best_isa(others) == (lacking.starts_with("avx512") ? Isa::avx2 : Isa::baseline));
  }
  CHECK(best_isa({}) == Isa::baseline);
}

TEST_CASE("TRIREME_ISA forces an instruction set that the processor has") {
  CHECK(choose_isa(Isa::avx512, "baseline") == Isa::baseline);
  CHECK(choose_isa(Isa::avx512, "avx2") == Isa::avx2);
  CHECK(choose_isa(Isa::avx2, "avx2") == Isa::avx2);
}

TEST_CASE("TRIREME_ISA with a word that does not work is an error that lists what would") {
  CHECK_THROWS_WITH(choose_isa(Isa::avx2, "avx512"),
                    ContainsSubstring("TRIREME_ISA") && ContainsSubstring("wanted baseline, avx2;"));
  CHECK_THROWS_WITH(choose_isa(Isa::avx512, "AVX2"),
                    ContainsSubstring("\"AVX2\"") && ContainsSubstring("baseline, avx2, avx512"));
  CHECK_THROWS_AS(choose_isa(Isa::baseline, ""), Error);
}
