#pragma once

#include <concepts>

// For functions that a team's threads call: a .cu file compiles them only for the GPU, since the host lacks a GPU's teams.
#ifdef __CUDACC__
#define TRIREME_TEAM __device__ __forceinline__
#else
#define TRIREME_TEAM inline
#endif

// Kernels with reductions are written once, for a team: threads that share the work of a row or a block of rows. A GPU's teams
// are in device/cuda/teams.cuh. Tests run the same kernels with a team of host threads (tests/device/host_team.hpp).
namespace trireme::device {

template <typename T>
struct Two {
  T first;
  T second;
};

template <typename Team>
concept IsTeam = requires(const Team& team, float x) {
  { team.rank() } -> std::convertible_to<int>;  // of the calling thread, in [0, size())
  { team.size() } -> std::convertible_to<int>;
  { team.sum(x) } -> std::same_as<float>;  // sum of x over all threads, which must all call it; the same bits on all
  { team.max(x) } -> std::same_as<float>;
  { team.sum(Two<float>{x, x}) } -> std::same_as<Two<float>>;  // two sums in one reduction
  team.wait();                                                 // a barrier of all threads, with a memory fence
};

// A team of only the calling thread, for kernels that also run on the host.
struct LoneThread {
  TRIREME_TEAM int rank() const { return 0; }
  TRIREME_TEAM int size() const { return 1; }
  template <typename T>
  TRIREME_TEAM T sum(T x) const {
    return x;
  }
  template <typename T>
  TRIREME_TEAM T max(T x) const {
    return x;
  }
  TRIREME_TEAM void wait() const {}
};

}  // namespace trireme::device
