#include "comm/mpi/mpi_link.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace trireme::comm {
namespace {

constexpr int small_rounds = 16;
constexpr int large_rounds = 3;
constexpr int large_message = 128 << 10;

// The seconds to send a message to the next node and receive one from the previous node: the best of some rounds.
double best_shift(MPI_Comm communicator, int next, int previous, int bytes, int rounds) {
  std::vector<char> out(static_cast<std::size_t>(bytes));
  std::vector<char> in(static_cast<std::size_t>(bytes));
  double best = std::numeric_limits<double>::max();
  for (int round = 0; round < rounds; ++round) {
    const double start = MPI_Wtime();
    check_mpi(MPI_Sendrecv(out.data(), bytes, MPI_CHAR, next, 0, in.data(), bytes, MPI_CHAR, previous, 0, communicator,
                           MPI_STATUS_IGNORE),
              "MPI_Sendrecv");
    best = std::min(best, MPI_Wtime() - start);
  }
  return best;
}

}  // namespace

LinkModel measure_link(MPI_Comm communicator, const Nodes& nodes) {
  std::array<double, 2> seconds{};
  if (nodes.index == 0) {
    const auto first_of = [&nodes](int node) { return nodes.members[static_cast<std::size_t>(node % nodes.size())].front(); };
    const int next = first_of(nodes.node + 1);
    const int previous = first_of(nodes.node + nodes.size() - 1);
    seconds[0] = best_shift(communicator, next, previous, 1, small_rounds);
    seconds[1] = best_shift(communicator, next, previous, large_message, large_rounds);
  }
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, seconds.data(), static_cast<int>(seconds.size()), MPI_DOUBLE, MPI_MAX, communicator),
            "MPI_Allreduce");
  return {.latency_seconds = seconds[0], .seconds_per_byte = std::max(0.0, seconds[1] - seconds[0]) / large_message};
}

}  // namespace trireme::comm
