#include "recovery.hpp"

#include <stdlib.h>
#include <sys/wait.h>

#include <fstream>
#include <vector>

#include "catch.hpp"
#include "checkpoint_folder.hpp"
#include "command.hpp"
#include "guardian.hpp"
#include "job_environment.hpp"
#include "last_lines.hpp"
#include "temporary_folder.hpp"

using Steps = std::vector<std::uint64_t>;
using trireme::RunState;
using trireme::RunStatus;

TEST_CASE("a failure starts the job again, the same one goes back a checkpoint, then it stops") {
  for (const Cause cause : {Cause::crash, Cause::hang, Cause::out_of_memory}) {
    Recovery recovery(10, Steps{});
    CHECK(recovery.after(cause, Steps{10, 20, 30}).resume == "30");
    CHECK(recovery.after(cause, Steps{10, 20, 30}).resume == "20");
    CHECK_FALSE(recovery.after(cause, Steps{10, 20, 30}).restart);
  }
}

TEST_CASE("a checkpoint that is written once more after going back is no progress") {
  Recovery recovery(10, Steps{});
  CHECK(recovery.after(Cause::crash, Steps{10, 20}).resume == "20");
  CHECK(recovery.after(Cause::crash, Steps{10, 20}).resume == "10");
  CHECK(recovery.after(Cause::killed, Steps{10, 20}).resume == "10");
  CHECK(recovery.after(Cause::crash, Steps{10, 20, 30}).resume == "30");
  CHECK(recovery.after(Cause::crash, Steps{10, 20, 30}).resume == "20");
  CHECK_FALSE(recovery.after(Cause::crash, Steps{10, 20, 30}).restart);
}

TEST_CASE("what ends a start before its first step says nothing of a checkpoint") {
  Recovery recovery(10, Steps{});
  for (const Cause cause : {Cause::launch, Cause::crash, Cause::hang, Cause::out_of_memory, Cause::launch}) {
    const Decision decision = recovery.after(cause, Steps{200, 300}, false);
    CHECK((decision.restart && decision.resume == "300"));
  }
  CHECK(recovery.after(Cause::crash, Steps{200, 300}).resume == "300");
  CHECK(recovery.after(Cause::crash, Steps{200, 300}).resume == "200");
}

TEST_CASE("a run that diverged goes back at once") {
  Recovery recovery(10, Steps{5});
  CHECK(recovery.after(Cause::diverged, Steps{5, 10}).resume == "5");
  const Decision last = recovery.after(Cause::diverged, Steps{5, 10});
  CHECK_FALSE(last.restart);
  CHECK(last.reason == "2 failures without a new checkpoint between them");
}

TEST_CASE("a run that diverged without a checkpoint is not repeated") {
  const Decision decision = Recovery(10, Steps{}).after(Cause::diverged, Steps{});
  CHECK_FALSE(decision.restart);
  CHECK_THAT(decision.reason, ContainsSubstring("there is no checkpoint"));
}

TEST_CASE("without checkpoints a job starts anew") {
  Recovery recovery(10, Steps{});
  const Decision first = recovery.after(Cause::crash, Steps{});
  CHECK((first.restart && first.resume.empty()));
  CHECK(recovery.after(Cause::crash, Steps{7}).resume == "7");
  CHECK(recovery.after(Cause::crash, Steps{7}).resume == "none");
  CHECK_FALSE(recovery.after(Cause::crash, Steps{7}).restart);
}

TEST_CASE("the budget of restarts is whole again after a new checkpoint, and restarts come later and later") {
  Recovery recovery(3, Steps{});
  for (const std::uint64_t step : {1, 2, 3}) {
    for (const int pause : {0, 1, 2}) {
      const Decision decision = recovery.after(Cause::killed, Steps{step});
      CHECK((decision.restart && decision.resume == std::to_string(step) && decision.pause.count() == pause));
    }
  }
  CHECK_FALSE(recovery.after(Cause::killed, Steps{3}).restart);
  CHECK_FALSE(Recovery(0, Steps{}).after(Cause::crash, Steps{}).restart);
  Recovery patient(100, Steps{});
  std::chrono::seconds longest{0};
  for (int restart = 0; restart < 100; ++restart) longest = std::max(longest, patient.after(Cause::killed, Steps{}).pause);
  CHECK(longest.count() == 300);
}

TEST_CASE("a job that finished, was stopped or is configured wrongly does not start again") {
  for (const Cause cause : {Cause::finished, Cause::stopped, Cause::configuration}) {
    CHECK_FALSE(Recovery(10, Steps{}).after(cause, Steps{1}).restart);
  }
}

TEST_CASE("the cause of an end") {
  const auto exited = [](int code) { return Ending{.status = W_EXITCODE(code, 0)}; };
  const RunStatus training{.step = 3};
  const RunStatus finished{RunState::finished, 3, 3};
  const RunStatus stopped{RunState::stopped, 3, 3};
  const auto cause = [&](const Ending& ending) { return cause_of(ending, {.status = training, .begun = true}); };
  CHECK(cause_of(exited(0), {}) == Cause::finished);
  CHECK(cause_of(exited(0), {.status = finished}) == Cause::finished);
  CHECK(cause(exited(1)) == Cause::crash);
  CHECK(cause(exited(2)) == Cause::crash);  // a disk that is full now was not at the start
  CHECK(cause_of(exited(2), {}) == Cause::configuration);
  CHECK(cause(exited(3)) == Cause::hang);
  CHECK(cause(exited(4)) == Cause::out_of_memory);
  CHECK(cause(exited(5)) == Cause::diverged);
  CHECK(cause(exited(134)) == Cause::crash);
  CHECK(cause(exited(137)) == Cause::killed);
  CHECK(cause(exited(143)) == Cause::killed);
  CHECK(cause(exited(205)) == Cause::killed);  // mpirun has lost a machine
  CHECK(text_of(exited(205)) == "exit code 205 (mpirun has lost a machine)");
  CHECK(cause(Ending{.status = W_EXITCODE(0, SIGKILL)}) == Cause::killed);
  CHECK(cause(Ending{.status = W_EXITCODE(0, SIGSEGV)}) == Cause::crash);
  CHECK(cause(Ending{}) == Cause::killed);
  CHECK(cause(Ending{.status = W_EXITCODE(0, SIGKILL), .stuck = true}) == Cause::hang);
  CHECK(cause(Ending{.start_error = ENOENT}) == Cause::configuration);
  CHECK(cause_of(exited(137), {.status = training, .kills = 1}) == Cause::out_of_memory);
  CHECK(cause_of(exited(1), {.status = stopped}) == Cause::stopped);
  CHECK(cause_of(exited(138), {.asked = true}) == Cause::stopped);  // before its first step
  CHECK(cause_of(exited(138), {.status = training, .begun = true, .asked = true}) == Cause::crash);
  CHECK(cause_of(exited(138), {.begun = true, .asked = true}) == Cause::crash);  // its status can't be read
  CHECK(cause_of(exited(138), {.status = finished, .asked = true}) == Cause::finished);
  CHECK(cause_of(exited(138), {.status = finished}) == Cause::crash);
  CHECK(cause_of(exited(1), {.status = finished, .asked = true}) == Cause::crash);
  CHECK(exit_code_of(Ending{.status = W_EXITCODE(0, SIGSEGV)}) == 139);
  CHECK(text_of(exited(139)) == "exit code 139 (SIGSEGV)");
}

TEST_CASE("a launcher that fails before there are ranks is no crash of the job") {
  const Ending failed{.status = W_EXITCODE(1, 0)};
  CHECK(cause_of(failed, {.has_launcher = true}) == Cause::launch);
  CHECK(reported_code(Cause::launch, 1) == launch_failure);
  CHECK(cause_of(failed, {}) == Cause::crash);  // a program alone
  CHECK(cause_of(failed, {.begun = true, .has_launcher = true}) == Cause::crash);
  CHECK(cause_of(failed, {.has_launcher = true, .had_ranks = true}) == Cause::crash);
  CHECK(cause_of({.status = W_EXITCODE(1, 0), .had_ranks = true}, {.has_launcher = true}) == Cause::crash);
  CHECK(cause_of({.status = W_EXITCODE(2, 0)}, {.has_launcher = true}) == Cause::configuration);
  CHECK(cause_of({.status = W_EXITCODE(7, 0)}, {.has_launcher = true}) == Cause::crash);  // no launcher's code
  CHECK(cause_of({.status = W_EXITCODE(139, 0)}, {.has_launcher = true}) == Cause::crash);
  CHECK(tells_of_rank({"mpirun detected that one or more processes exited with non-zero status, thus causing"}));
  CHECK_FALSE(tells_of_rank({"There are not enough slots available in the system"}));
}

TEST_CASE("the exit code of a job that was asked to stop is its own, unless its launcher took it away") {
  const auto code = [](int number, const Witness& witness) {
    return reported_code(cause_of({.status = W_EXITCODE(number, 0)}, witness), number);
  };
  const Witness saved{.status = RunStatus{RunState::stopped, 3, 3}, .begun = true, .asked = true};
  for (const int of_launcher : {0, 1, 137, 138, 143}) CHECK(code(of_launcher, saved) == 0);
  CHECK(code(7, saved) == 7);
  CHECK(code(139, saved) == 139);
  CHECK(code(7, {.asked = true}) == 7);
  CHECK(code(1, {.asked = true}) == 1);
  CHECK(code(0, {.asked = true}) == 0);
  CHECK(code(138, {.asked = true}) == 0);
  CHECK(code(143, {.asked = true, .forced = true}) == 143);
  CHECK(code(137, {.asked = true, .forced = true}) == 137);
}

TEST_CASE("a launcher is stuck when what started the ranks goes on without them, not when a script does other things") {
  const auto ending = [](const char* script) {
    return Guardian({.command = {"bash", "-c", script},
                     .environment = {},
                     .scratch = {},
                     .patience = std::chrono::milliseconds(300)})
        .wait();
  };
  const Ending stuck = ending("OMPI_COMM_WORLD_RANK=0 sleep 0.3; sleep 100; true");
  CHECK((stuck.stuck && stuck.had_ranks));
  const Ending script = ending("bash -c 'OMPI_COMM_WORLD_RANK=0 sleep 0.3; true'; sleep 2.5; exit 7");
  CHECK((!script.stuck && script.had_ranks && exit_code_of(script) == 7));
}

TEST_CASE("a launcher that says all is well while the job has not finished has lost a machine") {
  const Ending well{.status = 0};
  for (const Witness& witness : {Witness{.status = RunStatus{.step = 3}}, Witness{.all_returned = false},
                                 Witness{.status = RunStatus{RunState::finished, 3, 3}, .all_returned = false}}) {
    CHECK(ended_early(well, witness));
    CHECK(cause_of(well, witness) == Cause::killed);
  }
  const Witness stopped{.status = RunStatus{RunState::stopped, 3, 3}, .all_returned = false};
  CHECK_FALSE(ended_early(well, stopped));
  CHECK(cause_of(well, stopped) == Cause::stopped);
  CHECK_FALSE(ended_early(Ending{.status = W_EXITCODE(1, 0)}, {.status = RunStatus{.step = 3}}));
}

TEST_CASE("committed checkpoints are those with a manifest") {
  const trireme::tests::TemporaryFolder folder;
  const auto make = [&](const char* name, bool committed) {
    std::filesystem::create_directory(folder.path() / name);
    if (committed) std::ofstream(folder.path() / name / "manifest.json") << "{}";
  };
  make("step-000000020", true);
  make("step-000000003", true);
  make("step-000000030", false);
  make(".tmp-40", true);
  make("step-00000004x", true);
  CHECK(CheckpointFolder(folder.path(), "auto").steps() == Steps{3, 20});
  CHECK(CheckpointFolder(folder.path(), "3").steps() == Steps{3});
  CHECK(CheckpointFolder(folder.path() / "gone", "auto").steps().empty());
  CHECK(CheckpointFolder("", "auto").steps().empty());
  const CheckpointFolder anew(folder.path(), "none");
  CHECK(anew.steps().empty());
  make("step-000000010", true);
  CHECK(anew.steps() == Steps{10});
  std::filesystem::last_write_time(folder.path() / "step-000000020" / "manifest.json",
                                   std::filesystem::file_time_type::clock::now() + std::chrono::seconds(1));
  CHECK(anew.steps() == Steps{10, 20});
}

TEST_CASE("options of the job are read from its command") {
  CHECK(option_of({"a", "--checkpoint-dir", "b"}, "--checkpoint-dir") == "b");
  CHECK(option_of({"a", "--checkpoint-dir=c"}, "--checkpoint-dir") == "c");
  CHECK_FALSE(option_of({"a", "--checkpoint-dir-of", "c", "--checkpoint-dir"}, "--checkpoint-dir"));
  CHECK(option_of({"a", "--checkpoint_dir", "b"}, "--checkpoint-dir") == "b");
  CHECK(option_of({"a", "--checkpoint_dir=b_c"}, "--checkpoint-dir") == "b_c");
  CHECK(option_of({"a", "--checkpoint-dir", "b", "--checkpoint_dir", "c"}, "--checkpoint-dir") == "c");
  CHECK(option_of({"a", "--checkpoint-dir="}, "--checkpoint-dir") == "");
  const trireme::tests::TemporaryFolder folder;
  const std::string config = folder.path() / "options.toml";
  std::ofstream(config) << "batch-size = 4\ncheckpoint_dir = \"from file\"\n";
  CHECK(option_of({"a", "--config", config}, "--checkpoint-dir") == "from file");
  CHECK(option_of({"a", "--checkpoint-dir", "b", "--config", config}, "--checkpoint-dir") == "b");
  CHECK_FALSE(option_of({"a", "--config", "/no/such/file"}, "--checkpoint-dir"));
  CHECK(names_launcher({"env", "/opt/bin/mpirun", "a"}));
  CHECK(names_launcher({"mpiexec.hydra", "a"}));
  CHECK_FALSE(names_launcher({"./mpirunner", "srunning"}));
  CHECK(resume_of({"a"}) == "auto");
  CHECK(resume_of({"a", "--resume", "12"}) == "12");
  setenv("TRIREME_RESUME", "none", 1);
  CHECK(resume_of({"a", "--resume", "12"}) == "none");
  unsetenv("TRIREME_RESUME");
}

TEST_CASE("a job of one host is one whose command names no other") {
  CHECK(is_on_this_host_alone({"/usr/bin/mpirun", "-n", "4", "train_gpt"}));
  for (const char* word : {"--hostfile", "-H", "-machinefile", "--host", "orte_default_hostfile", "plm_rsh_agent", "-rf"})
    CHECK_FALSE(is_on_this_host_alone({"mpirun", word, "x", "train_gpt"}));
  CHECK_FALSE(is_on_this_host_alone({"srun", "train_gpt"}));
  CHECK_FALSE(is_on_this_host_alone({"sh", "-c", "mpirun"}));
  setenv("SLURM_JOB_NODELIST", "node[1-2]", 1);
  CHECK_FALSE(is_on_this_host_alone({"mpirun", "train_gpt"}));
  unsetenv("SLURM_JOB_NODELIST");
}

TEST_CASE("the last lines of a text") {
  LastLines lines;
  for (int line = 0; line < 30; ++line) lines.add("li" + std::to_string(line) + "\n");
  lines.add("half");
  REQUIRE(lines.lines().size() == 21);
  CHECK(lines.lines().front() == "li10");
  CHECK(lines.lines().back() == "half");
}
