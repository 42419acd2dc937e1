#include "trireme/testing/ranks.hpp"

#include <exception>
#include <vector>

namespace trireme::testing {
namespace {

bool is_echo(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& failure) {
    return failure.code() == ErrorCode::peer_failed;
  } catch (...) {
    return false;
  }
}

}  // namespace

void run_ranks(int ranks, const std::function<void(Group)>& body, const LaunchOptions& options) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  LaunchOptions threads = options;
  threads.ranks = ranks;
  launch(BackendKind::thread, threads, [&](const Group& world) {
    try {
      body(world);
      return 0;
    } catch (...) {
      errors[static_cast<std::size_t>(world.rank())] = std::current_exception();
      throw;
    }
  });
  std::exception_ptr first;
  for (const std::exception_ptr& error : errors) {
    if (error && (!first || (is_echo(first) && !is_echo(error)))) first = error;
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace trireme::testing
