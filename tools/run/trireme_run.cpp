// Supervises a training job and restarts it from its last checkpoint when it fails. See docs/trireme_run.md.
//   trireme-run [options] -- mpirun -n 4 train_gpt --checkpoint-dir DIR ...

#include <signal.h>

#include <utility>
#include <vector>

#include "command_line.hpp"
#include "supervisor.hpp"

namespace {

// A signal that was ignored before stays ignored, as nohup needs it.
std::vector<int> stopping_signals(const InheritedSignals& inherited) {
  std::vector<int> signals{SIGTERM, SIGINT, SIGUSR1, SIGHUP};
  std::erase_if(signals, [&](int signal) { return inherited.ignores(signal); });
  return signals;
}

int supervise(int argc, char** argv, Descriptor signals, const InheritedSignals& inherited) {
  SupervisorOptions options;
  options.signals = inherited;
  std::string checkpoints;
  std::string report;
  int grace = static_cast<int>(options.grace.count());
  CLI::App app(
      "Runs a training job and restarts it from its last committed checkpoint when it fails. SIGTERM, SIGINT, SIGHUP\n"
      "and SIGUSR1 ask the job to save and stop. The exit code is that of the job's last start.\n"
      "usage: trireme-run [options] -- mpirun -n 4 PROGRAM --checkpoint-dir DIR ...",
      "trireme-run");
  trireme::add_number(app, "--restarts", options.restarts, "most restarts in a row without a new checkpoint")
      ->check(trireme::at_least(0));
  app.add_option("--checkpoint-dir", checkpoints,
                 "folder of the job's checkpoints; not given: the job's own option of this name");
  trireme::add_number(app, "--grace", grace, "seconds for the job to save when it is asked to stop")
      ->check(trireme::at_least(0));
  trireme::add_number(app, "--preempted-code", options.preempted_code,
                      "exit code if the job was asked to stop and has not finished")
      ->check(trireme::between(0, 255));
  app.add_option("--report", report, "write a report to this file, as JSON; earlier reports become FILE.1, FILE.2 and so on");
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
    const InheritedSignals inherited = inherited_signals();
    auto signals = watch(stopping_signals(inherited));  // first of all: from now on no signal is lost
    return supervise(argc, argv, std::move(signals), inherited);
  });
}
