// Supervises a training job: starts it again from its last checkpoint when it fails. See docs/trireme_run.md.
//   trireme-run [options] -- mpirun -n 4 train_gpt --checkpoint-dir DIR ...

#include <signal.h>

#include <utility>

#include "command_line.hpp"
#include "supervisor.hpp"

namespace {

int supervise(int argc, char** argv, Descriptor signals) {
  SupervisorOptions options;
  std::string checkpoints;
  std::string report;
  int grace = static_cast<int>(options.grace.count());
  CLI::App app(
      "Runs a training job and starts it again from its last committed checkpoint when it fails. SIGTERM, SIGINT and SIGUSR1\n"
      "ask the job to save and stop. The exit code is that of the job's last start.\n"
      "usage: trireme-run [options] -- mpirun -n 4 PROGRAM --checkpoint-dir DIR ...",
      "trireme-run");
  trireme::add_number(app, "--restarts", options.restarts, "restarts in a row without a new checkpoint")
      ->check(trireme::at_least(0));
  app.add_option("--checkpoint-dir", checkpoints, "the job's checkpoints; unless given, that of the job's own option");
  trireme::add_number(app, "--grace", grace, "seconds for the job to save when it is asked to stop")
      ->check(trireme::at_least(0));
  trireme::add_number(app, "--preempted-code", options.preempted_code,
                      "exit code when the job was asked to stop and has not finished")
      ->check(trireme::between(0, 255));
  app.add_option("--report", report, "write what happened to this file, as JSON");
  app.add_option("COMMAND", options.command, "the job")->required();
  app.positionals_at_end();
  if (const auto code = trireme::parse_command_line(app, argc, argv)) return *code;
  options.checkpoints = checkpoints;
  options.report = report;
  options.grace = std::chrono::seconds(grace);
  return Supervisor(std::move(options), std::move(signals)).run();
}

}  // namespace

int main(int argc, char** argv) {
  return trireme::run_tool("trireme-run", [&] {
    auto signals = watch({SIGTERM, SIGINT, SIGUSR1, SIGHUP});  // first of all: from now on none is lost
    return supervise(argc, argv, std::move(signals));
  });
}
