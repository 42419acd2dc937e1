#include <fmt/format.h>

#include <cstring>

#include "measurement/fma_peak.hpp"
#include "ops/measure.hpp"
#include "trireme/tensor/tensor.hpp"

namespace {

double measure_copy() {
  constexpr std::int64_t count = 16 << 20;
  const auto from = trireme::Tensor<float>::full({count}, 1);
  const auto to = trireme::Tensor<float>::full({count}, 2);
  double best = 0;
  for (int round = 0; round < 10; ++round) {
    const double seconds = seconds_of([&] { std::memcpy(to.data(), from.data(), count * sizeof(float)); });
    best = std::max(best, 2.0 * count * sizeof(float) / seconds);
  }
  return best;
}

}  // namespace

Ceilings measure_ceilings() { return {.copy = measure_copy(), .fma = measure_fma_peak()}; }

Report::Report(Ceilings ceilings, ReportOptions options) : ceilings_(ceilings), options_(std::move(options)) {
  fmt::print("copy {:.1f} GB/s, fused multiply-add {:.1f} GFLOP/s, one thread\n", ceilings.copy * 1e-9, ceilings.fma * 1e-9);
}

void Report::print(const std::string& name, double seconds, double amount, double ceiling, const char* unit) {
  const double rate = amount / seconds;
  fmt::print("{:<44} {:9.3f} ms {:8.1f} {:<7} {:5.0f} %\n", name, seconds * 1e3, rate * 1e-9, unit, 100 * rate / ceiling);
  figures_.push_back({.name = name, .seconds = seconds, .share = rate / ceiling, .copies = std::string_view(unit) == "GB/s"});
}

void Report::print(const std::string& name, double times) {
  fmt::print("{:<44} {:9.3f} times as long\n", name, times);
  ratios_.push_back({.name = name, .times = times});
}
