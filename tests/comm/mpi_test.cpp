#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <fstream>
#include <span>
#include <string>

#include "comm/conformance.hpp"
#include "comm/expect.hpp"
#include "comm/mpi/mpi_transport.hpp"
#include "comm/transport_cases.hpp"

// Runs the whole suite in one job: this program owns MPI, so launch may be called again and again.
//   comm_mpi_test [PROGRESS ALGORITHM...]
// Failures are tried with the automatic choice and with the ring alone.
namespace {

using trireme::BackendKind;
using trireme::Group;

int failures = 0;
int probes = 0;
int result_of_looks = MPI_SUCCESS;  // of MPI_Testsome: another is what it says of all messages that it finds done
std::string algorithm;              // that is tried

void check(const char* name, int wanted, const trireme::LaunchOptions& options, const std::function<int(Group)>& main) {
  const int code = trireme::launch(BackendKind::mpi, options, main);
  const int failed_checks = trireme::test::failed_checks.exchange(0);
  if (code == wanted && failed_checks == 0) return;
  ++failures;
  std::fprintf(stderr, "FAILED: %s%s: %d checks, exit code %d instead of %d\n", algorithm.c_str(), name, failed_checks, code,
               wanted);
}

// An MPI error of a message is an error of its batch; where MPI_Testsome itself fails, test() throws.
void check_failed_messages(trireme::comm::MpiTransport& transport, int channel) {
  using namespace trireme;
  const comm::Route route{.channel = channel, .peer = 0, .tag = 9};
  const int out = 5;
  int in = 0;
  comm::Batch sends;
  comm::Batch receives;
  transport.post(route, std::as_bytes(std::span(&out, 1)), sends);
  transport.receive(route, std::as_writable_bytes(std::span(&in, 1)), receives);
  result_of_looks = MPI_ERR_REQUEST;
  test::expect_error(
      ErrorCode::internal, [&] { transport.test(); }, "MPI", "MPI_Testsome");
  result_of_looks = MPI_ERR_IN_STATUS;
  while (sends.outstanding + receives.outstanding > 0) transport.test();
  result_of_looks = MPI_SUCCESS;
  for (const comm::Batch& batch : {sends, receives}) {
    test::expect_error(
        ErrorCode::internal, [&] { done(batch); }, "MPI", "a message between nodes");
  }
}

void check_transport() {
  MPI_Comm itself = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_SELF, &itself);
  trireme::comm::MpiTransport transport;
  const int channel = transport.open(itself);
  try {
    trireme::test::check_transport(transport, channel);
    check_failed_messages(transport, channel);
  } catch (const std::exception& error) {
    ++failures;
    std::fprintf(stderr, "FAILED: MPI as transport: %s\n", error.what());
  }
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

// The memory that a trainer has allocated for its buckets is freed with it.
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

extern "C" int MPI_Testsome(int count, MPI_Request* requests, int* found, int* places, MPI_Status* statuses) {
  if (result_of_looks == MPI_ERR_REQUEST) return MPI_ERR_REQUEST;
  const int result = PMPI_Testsome(count, requests, found, places, statuses);
  if (result_of_looks == MPI_SUCCESS || result != MPI_SUCCESS || *found <= 0) return result;
  for (int place = 0; place < *found; ++place) statuses[place].MPI_ERROR = MPI_ERR_OTHER;
  return result_of_looks;
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
    // The algorithm with the longest chain of waiting ranks is tested for all.
    if (options.algorithm == trireme::Algorithm::ring) check_failures(options, ranks);
  }
  if (argc <= 2) {
    check_conformance(options);
    check_failures(options, ranks);
  }
  check_looks_in_passing(options);
  check_memory_is_unmapped(options);
  check_transport();
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
