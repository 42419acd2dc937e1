#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <cstdio>

#include "comm/conformance.hpp"
#include "comm/expect.hpp"

// Runs the whole suite in one job: this program owns MPI, so launch may be called again and again.
//   comm_mpi_test [ALGORITHM [PROGRESS]]
namespace {

using trireme::BackendKind;
using trireme::Group;

int failures = 0;

void check(const char* name, int wanted, const trireme::LaunchOptions& options, const std::function<int(Group)>& main) {
  const int code = trireme::launch(BackendKind::mpi, options, main);
  const int failed_checks = trireme::test::failed_checks.exchange(0);
  if (code == wanted && failed_checks == 0) return;
  ++failures;
  std::fprintf(stderr, "FAILED: %s: %d checks, exit code %d instead of %d\n", name, failed_checks, code, wanted);
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  trireme::LaunchOptions options;
  if (argc > 1) options.algorithm = trireme::parse_algorithm(argv[1]);
  if (argc > 2) options.progress = trireme::parse_progress(argv[2]);
  for (const auto& one : trireme::test::conformance_cases()) {
    check(one.name, 0, options, [&](const Group& world) {
      one.check(world);
      return 0;
    });
  }
  for (const auto& one : trireme::test::failure_cases()) {
    options.deadline = one.deadline;
    if (ranks >= one.least_ranks) check(one.name, one.exit_code, options, one.run);
  }
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
