#include <pthread.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <span>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/base/backend.hpp"
#include "comm/launch/job_place.hpp"
#include "trireme/comm/launch/launch.hpp"

namespace {

constexpr std::size_t large = std::size_t{8} << 20;  // elements of a message that MPI moves in many parts, as it is called

// Rank 1 sends, and makes no call of MPI until rank 0 has got its error and left.
void begin_a_message(const trireme::Group& world) {
  std::vector<float> data(large);
  if (world.rank() == 0) world.receive(std::span(data), 1, 5).wait_on_host();
  if (world.rank() != 1) return;
  world.send(std::span<const float>(data), 0, 5, "activation");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!trireme::comm::backend_of(world)->context().node().left(0)) {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("rank 0 is still there");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// Rank 1 has returned from main long before rank 0 wants what it sent.
void send_last(const trireme::Group& world) {
  std::vector<float> data(large, 3.0f);
  if (world.rank() == 1) world.send(std::span<const float>(data), 0, 5, "activation");
  if (world.rank() != 0) return;
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  std::vector<float> received(large);
  world.receive(std::span(received), 1, 5).wait_on_host();
  if (received != data) throw std::runtime_error("another message");
}

// Both ranks send what nobody receives.
void send_in_vain(const trireme::Group& world) {
  const std::vector<float> data(large);
  world.send(std::span(data), 1 - world.rank(), 5, "activation");
}

int launch_again(const trireme::LaunchOptions& options) {
  return trireme::launch(trireme::BackendKind::mpi, options, [](const trireme::Group& world) {
    std::vector<float> ones(1000, 1.0f);
    world.all_reduce(std::span(ones)).wait_on_host();
    return ones[999] == static_cast<float>(world.size()) ? 0 : 9;
  });
}

// The stacks of some threads fill the address space.
int launch_without_threads() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, std::size_t{1} << 30);
  pthread_setattr_default_np(&attributes);
  const rlimit memory{.rlim_cur = std::size_t{8} << 30, .rlim_max = std::size_t{8} << 30};
  setrlimit(RLIMIT_AS, &memory);
  std::atomic<int> ran{0};
  const int code = trireme::launch(trireme::BackendKind::thread, {.ranks = 32}, [&ran](const trireme::Group& world) {
    ++ran;
    world.barrier("all");
    return 0;
  });
  return ran == 0 ? code : 9;
}

}  // namespace

// A job that ends the way its argument says, for the tests of exit codes and messages.
int main(int argc, char** argv) {
  const std::string_view ending = argc > 1 ? argv[1] : "well";
  if (ending == "wrong-options" && trireme::comm::is_first_process(std::getenv)) {  // the one that prints starts last
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  if (ending == "no-threads") return launch_without_threads();
  const bool is_short = ending == "late" || ending == "begun" || ending == "apart";
  const int deadline = is_short ? 500 : ending == "wrong-options" ? -1 : 600'000;
  const trireme::LaunchOptions options{.deadline = std::chrono::milliseconds(deadline)};
  bool first_rank = false;
  const int code = trireme::launch(trireme::BackendKind::mpi, options, [&](const trireme::Group& world) {
    first_rank = world.rank() == 0;
    const bool last = world.rank() == world.size() - 1;
    world.barrier("started");
    if (ending == "begun") begin_a_message(world);
    if (ending == "sent-last") return send_last(world), 0;
    if (ending == "sent-in-vain") return send_in_vain(world), 0;
    if (ending == "agreed") {
      world.agree([] {
        throw trireme::Error({.code = trireme::ErrorCode::io, .message = "cannot open the data", .path = "/no/such/file"});
      });
    }
    if (ending == "one-rank" && last)
      throw trireme::Error({.code = trireme::ErrorCode::invalid_argument, .message = "no such option"});
    if (ending == "throws" && last) throw std::runtime_error("boom");
    if (ending == "bad-alloc" && last) throw std::bad_alloc();
    if (ending == "no-memory" && last)
      throw trireme::Error({.code = trireme::ErrorCode::out_of_memory, .message = "no room for the batch"});
    if (ending == "diverged")
      world.agree([] { throw trireme::Error({.code = trireme::ErrorCode::diverged, .message = "the loss is nan"}); });
    if (ending == "late" && last) std::this_thread::sleep_for(std::chrono::seconds(2));
    if (ending == "code") return last ? 7 : 0;
    if (ending == "stuck") {  // the last rank fails, rank 0 never notices
      if (last) throw std::runtime_error("boom");
      if (world.rank() == 0) std::this_thread::sleep_for(std::chrono::minutes(10));
    }
    if (ending == "killed" && last) std::abort();
    world.barrier("end");
    return 0;
  });
  if (code == 0 && (ending == "twice" || (ending == "apart" && first_rank))) return launch_again(options);
  return code;
}
