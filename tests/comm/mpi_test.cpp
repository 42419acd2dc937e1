#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "comm/conformance.hpp"
#include "comm/expect.hpp"
#include "comm/wire/wire.hpp"

// Runs the whole suite in one job: this program owns MPI, so launch may be called again and again.
//   comm_mpi_test [PROGRESS ALGORITHM...]
// Failures are tried with the automatic choice and with the ring alone.
namespace {

using trireme::BackendKind;
using trireme::Group;

int failures = 0;
int probes = 0;
std::string algorithm;  // that is tried

void check(const char* name, int wanted, const trireme::LaunchOptions& options, const std::function<int(Group)>& main) {
  const int code = trireme::launch(BackendKind::mpi, options, main);
  const int failed_checks = trireme::test::failed_checks.exchange(0);
  if (code == wanted && failed_checks == 0) return;
  ++failures;
  std::fprintf(stderr, "FAILED: %s%s: %d checks, exit code %d instead of %d\n", algorithm.c_str(), name, failed_checks, code,
               wanted);
}

// What MPI refuses while the thread that moves the data looks, ends the job that is under way and not the process.
void check_refused_request() {
  struct Endless final : trireme::comm::WireJob {
    bool advance() override { return false; }
    void stop() noexcept override {}
  };
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  const auto context =
      std::make_shared<trireme::comm::RankContext>(trireme::comm::RankContext::Place{}, trireme::comm::make_node_control(1));
  trireme::comm::Wire wire(context, trireme::ProgressMode::thread);
  trireme::comm::WireRequests::Batch batch;
  {
    const trireme::comm::Wire::Turn turn = wire.take_turn();
    wire.requests().add(batch) = MPI_Request{};
  }
  const trireme::comm::Wire::Ticket ticket(wire, std::make_unique<Endless>());
  try {
    while (!ticket.done()) std::this_thread::yield();
  } catch (const trireme::Error&) {
    return;
  }
  ++failures;
  std::fprintf(stderr, "FAILED: a request that MPI refuses is done\n");
}

// With more ranks than cores MPI gives the core away in each look that finds nothing.
void check_looks_in_passing(const trireme::LaunchOptions& options) {
  check("looks in passing", 0, options, [](const Group& world) {
    world.barrier();
    const int before = probes;
    constexpr int calls = 20'000;
    for (int call = 0; call < calls; ++call) trireme::comm::progress();
    trireme::test::expect(probes - before < calls / 2, "few of {} calls of progress() ask MPI, got {}", calls, probes - before);
    return 0;
  });
}

int num_mappings() {
  std::ifstream maps("/proc/self/maps");
  int lines = 0;
  for (std::string line; std::getline(maps, line);) ++lines;
  return lines;
}

// What a trainer has allocated for its buckets goes with it.
void check_memory_is_unmapped(const trireme::LaunchOptions& options) {
  check("memory is unmapped", 0, options, [](const Group& world) {
    const auto memory = world.memory();
    constexpr std::size_t bytes = std::size_t{1} << 20;
    const auto round = [&] {
      void* first = memory->allocate(bytes);
      void* second = memory->allocate(bytes);
      memory->deallocate(first, bytes);
      memory->deallocate(second, bytes);
    };
    round();
    const int before = num_mappings();
    for (int count = 0; count < 50; ++count) round();
    const int after = num_mappings();
    trireme::test::expect(after < before + 10, "50 trainers leave no mappings, but {} became {}", before, after);
    return 0;
  });
}

// All conformance cases are one job: where ranks outnumber the cores it takes longer to begin one than to run a case.
void check_conformance(const trireme::LaunchOptions& options) {
  const char* name = "conformance";
  check("conformance", 0, options, [&](const Group& world) {
    for (const auto& one : trireme::test::conformance_cases()) {
      name = one.name;
      one.check(world);
    }
    name = "";
    return 0;
  });
  if (*name != '\0') std::fprintf(stderr, "the case that failed: %s\n", name);
}

void check_failures(trireme::LaunchOptions options, int ranks) {
  for (const auto& one : trireme::test::failure_cases()) {
    options.deadline = one.deadline;
    if (ranks >= one.least_ranks) check(one.name, one.exit_code, options, one.run);
  }
}

}  // namespace

extern "C" int MPI_Iprobe(int source, int tag, MPI_Comm communicator, int* found, MPI_Status* status) {
  ++probes;
  return PMPI_Iprobe(source, tag, communicator, found, status);
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  trireme::LaunchOptions options;
  if (argc > 1) options.progress = trireme::parse_progress(argv[1]);
  for (int index = 2; index < argc; ++index) {
    algorithm = std::string(argv[index]) + ": ";
    options.algorithm = trireme::parse_algorithm(argv[index]);
    check_conformance(options);
    // The longest chain of ranks that wait for each other stands for all algorithms.
    if (options.algorithm == trireme::Algorithm::ring) check_failures(options, ranks);
  }
  if (argc <= 2) {
    check_conformance(options);
    check_failures(options, ranks);
  }
  check_looks_in_passing(options);
  check_memory_is_unmapped(options);
  check_refused_request();
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
