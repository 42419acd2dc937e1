#include "comm/launch/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>
#include <utility>

#include "comm/flight/flight.hpp"
#include "comm/launch/cores.hpp"
#include "comm/shared/lone_backend.hpp"
#include "trireme/core/exit_code.hpp"
#include "trireme/core/log.hpp"

namespace trireme {
namespace comm {
namespace {

// How long a process waits for the first process to print the error: a launcher ends the whole job when one process fails, and
// the first process may have started last.
constexpr std::chrono::seconds time_to_print{2};

// Checks for errors that all processes of the job have.
void check(BackendKind backend, const LaunchOptions& options) {
  require(options.ranks >= 1 && options.ranks <= most_threads, "a launch has 1 to {} ranks that are threads, not {}",
          most_threads, options.ranks);
  require(options.threads_per_rank >= 0 && options.threads_per_rank <= most_threads,
          "threads_per_rank lies in [0, {}], and is {}; 0 means as many as there are cores", most_threads,
          options.threads_per_rank);
  require(options.deadline.count() > 0, "the deadline must be positive, got {} ms", options.deadline.count());
  if (backend == BackendKind::mpi && !started_by_mpi(std::getenv)) require_alone(std::getenv);
}

int dispatch(BackendKind backend, const LaunchOptions& options, const std::function<int(Group)>& main) {
  if (backend == BackendKind::thread) return launch_threads(options, main);
  if (backend == BackendKind::nccl) return launch_nccl(options, main);
  return started_by_mpi(std::getenv) ? launch_mpi(options, main) : launch_alone(options, main);
}

}  // namespace

int run_rank(RankContext& context, std::shared_ptr<Backend> world, const std::function<int(Group)>& main) {
  const CurrentRank current(context);
  int code = 0;
  try {
    code = main(Group(std::move(world)));
    if (FlightRecorder* flight = context.flight()) flight->end(code);
  } catch (...) {
    context.end(std::current_exception());
  }
  return context.conclude(code);
}

int launch_alone(const LaunchOptions& options, const std::function<int(Group)>& main) {
  const cpu_set_t cores = own_cores();
  set_threads(threads_of_rank(usable_cores(cores, 1, 1), 1, options.threads_per_rank));
  const auto context =
      std::make_shared<RankContext>(RankContext::Place{.shares_all = true, .deadline = options.deadline}, make_node_control(1));
  context->record_to(open_flights(options.flight_directory, 1).front());
  return run_rank(*context, std::make_shared<LoneBackend>(context, world_members(0, 1)), main);
}

}  // namespace comm

int launch(BackendKind backend, const LaunchOptions& options, const std::function<int(Group)>& main) {
  bool prints = comm::is_first_process(std::getenv);
  try {
    comm::check(backend, options);
    prints = true;  // other processes may not have this error
    return comm::dispatch(backend, options, main);
  } catch (const Error& error) {  // thrown before the ranks ran
    if (prints) {
      log(Severity::error, "{}", error.what());
    } else {
      std::this_thread::sleep_for(comm::time_to_print);
    }
    return static_cast<int>(exit_code_of(error.code()));
  } catch (const std::bad_alloc&) {
    if (prints) log(Severity::error, "there is not enough memory to start the ranks");
    return static_cast<int>(ExitCode::out_of_memory);
  }
}

namespace {

template <typename T>
using Choice = std::pair<std::string_view, T>;

template <typename T, std::size_t count>
T parse(std::string_view what, std::string_view name, const std::array<Choice<T>, count>& choices) {
  std::string names;
  for (const auto& [known, value] : choices) {
    if (name == known) return value;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known);
  }
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("there is no {} \"{}\"", what, name),
               .hint = fmt::format("use one of {}", names)});
}

}  // namespace

BackendKind parse_backend(std::string_view name) {
  return parse("backend", name,
               std::array{Choice<BackendKind>{"thread", BackendKind::thread}, Choice<BackendKind>{"mpi", BackendKind::mpi},
                          Choice<BackendKind>{"nccl", BackendKind::nccl}});
}

Algorithm parse_algorithm(std::string_view name) {
  using enum Algorithm;
  return parse("algorithm", name,
               std::array{Choice<Algorithm>{"automatic", automatic}, Choice<Algorithm>{"all_pairs", all_pairs},
                          Choice<Algorithm>{"direct", direct}, Choice<Algorithm>{"ring", ring},
                          Choice<Algorithm>{"halving_doubling", halving_doubling}});
}

ProgressMode parse_progress(std::string_view name) {
  return parse("progress mode", name,
               std::array{Choice<ProgressMode>{"thread", ProgressMode::thread},
                          Choice<ProgressMode>{"cooperative", ProgressMode::cooperative}});
}

StartUp parse_start_up(std::string_view name) {
  using enum StartUp;
  return parse(
      "start-up", name,
      std::array{Choice<StartUp>{"automatic", automatic}, Choice<StartUp>{"mpi", mpi}, Choice<StartUp>{"torchrun", torchrun},
                 Choice<StartUp>{"slurm", slurm}, Choice<StartUp>{"single", single}});
}

}  // namespace trireme
