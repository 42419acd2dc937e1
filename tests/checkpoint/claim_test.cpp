#include "trireme/checkpoint/claim.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "catch.hpp"
#include "checkpoint/directory.hpp"
#include "checkpoint/layouts.hpp"
#include "checkpoint/sample_runs.hpp"
#include "checkpoint/writer_sign.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using namespace std::chrono_literals;
using checkpoint::Checkpoints;
using checkpoint::Claim;
using checkpoint::ClaimTimes;
using checkpoint::WriterSign;
using test::options_on;
using test::SampleState;
using test::SimulatedFileSystem;
using testing::run_ranks;
using tests::TemporaryFolder;

namespace {

constexpr ClaimTimes brief{.renewal = 20ms, .silence = 300ms, .patience = 30ms};

void write_sign(const std::filesystem::path& folder, const WriterSign& sign) {
  checkpoint::replace_sign(*posix_file_system(), folder, sign);
}

// A process that has ended.
std::int64_t ended_process() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return child;
}

void claim(const std::filesystem::path& folder) {
  run_ranks(2, [&](const Group& world) { Claim(world, folder, posix_file_system(), brief).require_held(); });
}

}  // namespace

TEST_CASE("of two jobs one saves into a directory, and the other is told who does") {
  const TemporaryFolder folder;
  setenv("TRIREME_JOB_ID", "first", 1);
  run_ranks(2, [&](const Group& world) {
    const Claim claim(world, folder.path() / "run", posix_file_system(), brief);
    const Claim same_job(world, folder.path() / "run", posix_file_system(), brief);
    world.barrier();
    if (world.rank() == 0) setenv("TRIREME_JOB_ID", "second", 1);
    world.barrier();
    std::string refusal;
    try {
      const Claim second(world, folder.path() / "run", posix_file_system(), brief);
    } catch (const Error& error) {
      refusal = error.what();
    }
    require(refusal.find("another job saves its checkpoints there: job first, process ") != refusal.npos, "\"{}\"", refusal);
    claim.require_held();
  });
  unsetenv("TRIREME_JOB_ID");
  claim(folder.path() / "run");  // the first has ended
  CHECK_FALSE(std::filesystem::exists(folder.path() / "run" / checkpoint::writer_sign_name));
}

TEST_CASE("what a killed job left is taken over, and what one of another machine left when it is silent") {
  set_log_sink([](Severity, std::string_view) {});
  const TemporaryFolder folder;
  WriterSign sign = checkpoint::own_sign();
  sign.job = "other";
  sign.process = ended_process();
  write_sign(folder.path(), sign);
  claim(folder.path());
  sign.process = getpid();
  sign.started = "1";  // of a process that had this number before
  write_sign(folder.path(), sign);
  claim(folder.path());
  std::ofstream(folder.path() / checkpoint::writer_sign_name) << "{\"job\":";  // of a machine that lost its power
  claim(folder.path());
  sign.machine = "elsewhere";
  write_sign(folder.path(), sign);
  claim(folder.path());
  std::atomic<bool> ended = false;
  write_sign(folder.path(), sign);
  std::jthread alive([&] {
    for (; !ended; std::this_thread::sleep_for(20ms)) write_sign(folder.path(), sign = checkpoint::next_sign(sign));
  });
  CHECK_THROWS_WITH(claim(folder.path()), ContainsSubstring("job other") && ContainsSubstring("end it"));
  CHECK_THROWS_WITH(checkpoint::require_unclaimed(folder.path(), *posix_file_system(), brief), ContainsSubstring("job other"));
  ended = true;
  set_log_sink({});
}

TEST_CASE("a job that was taken for ended saves no more") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(run_ranks(2,
                              [&](const Group& world) {
                                const Claim claim(world, folder.path());
                                claim.require_held();
                                WriterSign sign = checkpoint::own_sign();
                                sign.job = "other";
                                if (world.rank() == 0) write_sign(folder.path(), sign);
                                claim.require_held();
                              }),
                    ContainsSubstring("job other"));
  CHECK(checkpoint::read_sign(*posix_file_system(), folder.path())->job == "other");  // whose it stays
}

TEST_CASE("prune and clean take what has the exact form of what is written here") {
  const auto system = std::make_shared<SimulatedFileSystem>();
  run_ranks(1, [&](const Group& world) {
    for (const std::int64_t step : {1, 2}) test::save_sample(world, system, 0, step);
  });
  const std::vector<std::string> own_aside{"left-step-000000008", "left-step-000000008-1", "left-step-000000008-2-1"};
  const std::vector<std::string> own_unfinished{".tmp-0123abc-step-000000009", ".tmp-job7-step-000000009-2",
                                                ".tmp-job7-writer.json", "writer.json"};
  const std::vector<std::string> of_others{
      ".tmp-notes",     ".tmp-job7-",  ".tmp-job7-step-9",        ".tmp-job_7-step-000000009", ".tmp-job7-step-000000009-x",
      "left-over",      "left-step-8", "left-step-000000008.tar", "left-step-00000000x",       "step-7",
      "step-0000000003"};
  WriterSign sign = checkpoint::own_sign();
  sign.process = ended_process();
  checkpoint::create_sign(*system, "/run", sign);
  for (const auto* names : {&own_aside, &own_unfinished, &of_others}) {
    for (const std::string& name : *names) system->create_folder("/run/" + name);  // leaves what is there
  }
  for (const char* name : {"/run/step-7", "/run/step-0000000003"})
    system->create(std::filesystem::path(name) / "manifest.json");
  std::vector<std::string> pruned{"step-000000001"};
  pruned.insert(pruned.end(), own_aside.begin(), own_aside.end());
  CHECK(checkpoint::prune("/run", 1, *system) == pruned);
  CHECK(checkpoint::remove_unfinished("/run", *system) == own_unfinished);
  for (const std::string& name : of_others) CHECK(system->exists("/run/" + name));
  checkpoint::remove_leftovers(*system, "/run", "notes");
  CHECK(system->exists("/run/.tmp-notes"));
}

TEST_CASE("a job that ends by an exception while it saves leaves nothing half done") {
  for (const int ranks : {1, 3}) {
    const auto system = std::make_shared<SimulatedFileSystem>();
    CHECK_THROWS_WITH(run_ranks(ranks,
                                [&](const Group& world) {
                                  SampleState sample(world.rank(), world.size(), 0);
                                  Checkpoints checkpoints(world, options_on(system, true));
                                  checkpoints.save(5, sample.state());
                                  if (world.rank() == world.size() - 1) throw std::runtime_error("the end");
                                  world.barrier();
                                }),
                      ContainsSubstring("the end"));
    CHECK(system->names_in("/run").empty());
  }
}
