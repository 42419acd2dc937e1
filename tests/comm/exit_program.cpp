#include <chrono>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "trireme/comm/launch.hpp"

// A job that ends the way its argument says, for the tests of exit codes and messages.
int main(int argc, char** argv) {
  const std::string_view ending = argc > 1 ? argv[1] : "well";
  const trireme::LaunchOptions options{.deadline = std::chrono::milliseconds(ending == "late" ? 500 : 600'000)};
  return trireme::launch(trireme::BackendKind::mpi, options, [&](const trireme::Group& world) {
    const bool last = world.rank() == world.size() - 1;
    world.barrier("started");
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
}
