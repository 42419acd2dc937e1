#pragma once

#include "device/host_team.hpp"
#include "ops/compare.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

// Helpers for the tests of bodies: a GPU's kernels, run by teams of the host's threads and compared with the CPU's operations.
namespace trireme::ops {

template <typename Body>
void run_rows(int team_size, std::int64_t rows, const Body& body) {
  device::run_host_team(team_size, [&](const device::HostTeam& team) {
    for (std::int64_t row = 0; row < rows; ++row) body(team, row);
  });
}

// For results that are rounded to T, which another order of additions may move to the next.
template <typename T>
double rounding(double float_tolerance) {
  return std::is_same_v<T, bfloat16> ? 0x1p-7 : std::is_same_v<T, float16> ? 0x1p-9 : tolerance<T>(float_tolerance);
}

}  // namespace trireme::ops
