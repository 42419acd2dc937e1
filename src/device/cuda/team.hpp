#pragma once

#include <concepts>

// For functions of a team's threads: a .cu file compiles them for the GPU alone, whose teams the host does not have.
#ifdef __CUDACC__
#define TRIREME_TEAM __device__ __forceinline__
#else
#define TRIREME_TEAM inline
#endif

// Kernels that reduce are written once for a team: threads that share the work of a row or a block of rows. A GPU's teams are
// in device/cuda/teams.cuh; the tests run the same kernels by a team of the host's threads (tests/device/host_team.hpp).
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
  { team.sum(x) } -> std::same_as<float>;  // of all threads' x, the same bits for all of them; all must call
  { team.max(x) } -> std::same_as<float>;
  { team.sum(Two<float>{x, x}) } -> std::same_as<Two<float>>;  // two sums in the time of one
  team.wait();  // for all threads of the team; what they wrote before is seen afterwards
};

// A team of the one thread that calls, for kernels that the host runs too.
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
