#include "measurement/fma_peak.hpp"

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "measurement/measurement.hpp"
#include "trireme/device/isa.hpp"

namespace {

constexpr int chains = 12;  // independent sums: at least latency times throughput on all known CPUs

template <typename Run>
double best_rate(double operations_per_run, Run run) {
  double best = 0;
  for (int round = 0; round < 20; ++round) {
    best = std::max(best, operations_per_run / seconds_of(run));
  }
  return best;
}

__attribute__((target("avx512f"), noinline)) float run_avx512(std::int64_t count) {
  __m512 sums[chains];
  for (auto& sum : sums) sum = _mm512_set1_ps(0.5F);
  const __m512 a = _mm512_set1_ps(0.999F);
  const __m512 b = _mm512_set1_ps(0.001F);
  for (std::int64_t step = 0; step < count; ++step) {
#pragma GCC unroll 12
    for (int chain = 0; chain < chains; ++chain) sums[chain] = _mm512_fmadd_ps(sums[chain], a, b);
  }
  __m512 total = sums[0];
  for (int chain = 1; chain < chains; ++chain) total = _mm512_add_ps(total, sums[chain]);
  return total[0];
}

__attribute__((target("avx2,fma"), noinline)) float run_avx2(std::int64_t count) {
  __m256 sums[chains];
  for (auto& sum : sums) sum = _mm256_set1_ps(0.5F);
  const __m256 a = _mm256_set1_ps(0.999F);
  const __m256 b = _mm256_set1_ps(0.001F);
  for (std::int64_t step = 0; step < count; ++step) {
#pragma GCC unroll 12
    for (int chain = 0; chain < chains; ++chain) sums[chain] = _mm256_fmadd_ps(sums[chain], a, b);
  }
  __m256 total = sums[0];
  for (int chain = 1; chain < chains; ++chain) total = _mm256_add_ps(total, sums[chain]);
  return total[0];
}

float run_scalar(std::int64_t count) {
  float sums[chains] = {};
  for (std::int64_t step = 0; step < count; ++step) {
    for (float& sum : sums) sum = sum * 0.999F + 0.001F;
  }
  return *std::max_element(sums, sums + chains);
}

}  // namespace

double measure_fma_peak() {
  constexpr std::int64_t count = 1 << 20;
  volatile float result = 0;
  const auto rate = [&](int lanes, auto run) {
    return best_rate(2.0 * lanes * chains * static_cast<double>(count), [&] { result = run(count); });
  };
  switch (trireme::device::current_isa()) {
    case trireme::device::Isa::avx512: return rate(16, run_avx512);
    case trireme::device::Isa::avx2: return rate(8, run_avx2);
    case trireme::device::Isa::baseline: break;
  }
  return rate(1, run_scalar);
}
