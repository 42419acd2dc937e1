#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "comm/calls/call.hpp"
#include "comm/flight/flight_recorder.hpp"
#include "comm/flight/flight_signals.hpp"
#include "job.hpp"
#include "temporary_folder.hpp"
#include "trireme/comm/launch/launch.hpp"
#include "verdict.hpp"

using namespace trireme;
using namespace trireme::comm;
using trireme::tests::TemporaryFolder;

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

struct Outcome {
  int code = 0;
  std::string text;
};

Outcome run_tool(const std::string& arguments, bool with_messages = true) {
  const TemporaryFolder folder;
  const auto output = folder.path() / "output";
  const int status = std::system(
      (std::string(TRIREME_FLIGHT) + " " + arguments + " > " + output.string() + (with_messages ? " 2>&1" : " 2>/dev/null"))
          .c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(output)};
}

int run_job(const std::filesystem::path& folder, int ranks, const std::function<int(Group)>& main) {
  return launch(BackendKind::thread, {.ranks = ranks, .flight_directory = folder.string()}, main);
}

int well(const Group& world) {
  std::vector<float> data(1024);
  world.all_reduce(std::span(data), ReduceOp::sum, "layer.0.weight").wait_on_host();
  const Group pair = world.split(world.rank() % 2, 0, "pair");
  pair.barrier("with my neighbour");
  if (world.rank() == 0) world.send(std::span<const float>(data).first(7), 1, 5, "activation");
  if (world.rank() == 1) world.receive(std::span(data).first(7), 0, 5, "activation").wait_on_host();
  return 0;
}

void let_others_wait() { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::vector<Finding> findings(const std::filesystem::path& folder) {
  std::vector<std::string> notes;
  const auto job = read_job(folder, notes);
  REQUIRE(job);
  return find_causes(*job);
}

}  // namespace

TEST_CASE("a recorder writes to no file that was there before") {
  const TemporaryFolder folder;
  const auto victim = folder.path() / "victim";
  write(victim, "somebody's");
  const auto temporary = folder.path() / fmt::format("rank-0.flight.{}.tmp", getpid());
  std::filesystem::create_symlink(victim, temporary);
  CHECK(run_job(folder.path(), 2, well) == 0);
  CHECK(read(victim) == "somebody's");
  CHECK(std::filesystem::file_size(folder.path() / "rank-0.flight") > 0);
}

TEST_CASE("a recording tells what every rank called, when, and how it ended") {
  const TemporaryFolder folder;
  REQUIRE(run_job(folder.path(), 4, well) == 0);
  std::vector<std::string> notes;
  const auto job = read_job(folder.path(), notes);
  REQUIRE(job);
  CHECK(notes.empty());
  REQUIRE(job->ranks.size() == 4);
  for (const RankView& view : job->ranks) {
    CHECK(view.state == RankState::finished);
    CHECK(view.header().process == getpid());
    CHECK(view.stuck_in() == nullptr);
    const FlightEntry* first = view.file->find(1);
    REQUIRE(first != nullptr);
    CHECK(describe(view, *first) == "#1 all_reduce(sum, 1024 x float32) \"layer.0.weight\" of group \"world\"");
    for (const FlightEntry& entry : view.file->entries) {
      CHECK(entry.fate == FlightFate::done);
      CHECK(entry.issued >= view.header().start_steady);
      CHECK(entry.ended >= entry.issued);
      if (entry.started != 0) CHECK((entry.started >= entry.issued && entry.ended >= entry.started));
    }
  }
  const RankView& receiver = job->ranks[1];
  CHECK(describe(receiver, receiver.file->entries.back()) ==
        "receive(7 x float32 from rank 0, tag 5) \"activation\" of group \"world\"");
  CHECK(describe(job->ranks[3], *job->ranks[3].last()) == "#1 barrier \"with my neighbour\" of group \"pair\"");
  CHECK(find_causes(*job).empty());
  const Outcome outcome = run_tool(folder.path().string());
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.text, "all ranks finished"));
}

TEST_CASE("a ring keeps the last calls") {
  const TemporaryFolder folder;
  constexpr std::uint64_t num_calls = 3 * flight_capacity + 17;
  REQUIRE(run_job(folder.path(), 2, [](const Group& world) {
            for (std::uint64_t call = 0; call < num_calls; ++call) world.barrier(call % 2 == 0 ? "even" : "odd");
            return 0;
          }) == 0);
  const FlightFile file = read_flight_file(folder.path() / "rank-1.flight");
  REQUIRE(file.entries.size() == flight_capacity);
  CHECK(file.entries.back().number == num_calls);
  CHECK(file.entries.front().number == num_calls - flight_capacity + 1);
  CHECK(file.num_damaged == 0);
  CHECK(file.find(1) == nullptr);
}

TEST_CASE("more groups than the table holds do no harm") {
  const TemporaryFolder folder;
  REQUIRE(run_job(folder.path(), 2, [](const Group& world) {
            for (int index = 0; index < 2 * static_cast<int>(flight_num_groups); ++index) {
              world.split(0, world.rank(), "one of many").barrier();
            }
            return 0;
          }) == 0);
  CHECK(run_tool(folder.path().string()).code == 0);
}

TEST_CASE("a mismatch names both calls") {
  const TemporaryFolder folder;
  CHECK(run_job(folder.path(), 3, [](const Group& world) {
          std::vector<float> data(8);
          world.barrier("together");
          if (world.rank() == 2) world.all_gather(std::span(data), "gradient").wait_on_host();
          world.all_reduce(std::span(data), ReduceOp::sum, "gradient").wait_on_host();
          return 0;
        }) == 2);
  const auto found = findings(folder.path());
  REQUIRE(found.size() == 1);
  CHECK(found[0].kind == "mismatch");
  CHECK(found[0].ranks == std::vector<int>{2});
  CHECK(contains(found[0].text, "the ranks of group \"world\" disagree"));
  CHECK(contains(found[0].text, "rank 2 called #2 all_gather(8 x float32) \"gradient\""));
  CHECK(contains(found[0].text, "ranks 0, 1 called #2 all_reduce(sum, 8 x float32) \"gradient\""));
}

TEST_CASE("a rank that leaves early is named") {
  const TemporaryFolder folder;
  CHECK(run_job(folder.path(), 3, [](const Group& world) {
          world.barrier("together");
          if (world.rank() != 1) world.barrier("without rank 1");
          let_others_wait();
          return 0;
        }) == 1);
  const auto found = findings(folder.path());
  REQUIRE(found.size() == 1);
  CHECK(found[0].kind == "left early");
  CHECK(found[0].ranks == std::vector<int>{1});
  CHECK(contains(found[0].text, "returned from main after #1 barrier \"together\" of group \"world\""));
  CHECK(contains(found[0].text, "ranks 0, 2 waited for it in #2 barrier \"without rank 1\" of group \"world\""));
}

TEST_CASE("a rank that throws is named with its message") {
  const TemporaryFolder folder;
  CHECK(run_job(folder.path(), 3, [](const Group& world) {
          world.barrier("together");
          if (world.rank() == 0) {
            let_others_wait();
            throw std::runtime_error("boom\x1b[31m");
          }
          world.barrier("end");
          return 0;
        }) == 1);
  const auto found = findings(folder.path());
  REQUIRE(found.size() == 1);
  CHECK(found[0].ranks == std::vector<int>{0});
  CHECK(contains(found[0].text, "failed after #1 barrier \"together\" of group \"world\": boom?[31m; ranks 1, 2 waited"));
}

TEST_CASE("ranks that wait for each other in two groups are named") {
  const TemporaryFolder folder;
  CHECK(run_job(folder.path(), 2, [](const Group& world) {
          const Group twin = world.split(0, world.rank(), "twin");
          (world.rank() == 0 ? world : twin).barrier("a");
          (world.rank() == 0 ? twin : world).barrier("a");
          return 0;
        }) == 2);
  const auto found = findings(folder.path());
  REQUIRE(found.size() == 1);
  CHECK(found[0].kind == "circle");
  CHECK(contains(found[0].text, "ranks 0, 1 wait for each other: rank 0 in #"));
  CHECK(contains(found[0].text, "rank 1 in #1 barrier \"a\" of group \"twin\""));
}

TEST_CASE("a missing file is named") {
  const TemporaryFolder folder;
  REQUIRE(run_job(folder.path(), 3, well) == 0);
  std::filesystem::remove(folder.path() / "rank-1.flight");
  const Outcome outcome = run_tool(folder.path().string());
  CHECK(outcome.code == 1);
  CHECK(contains(outcome.text, "rank 1 left no readable file here, of 3 ranks"));
}

TEST_CASE("files of an earlier job are left out") {
  const TemporaryFolder folder;
  REQUIRE(run_job(folder.path(), 4, well) == 0);
  REQUIRE(run_job(folder.path(), 2, well) == 0);
  const Outcome outcome = run_tool(folder.path().string());
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.text, "rank-3.flight: of an earlier job, left out"));
}

TEST_CASE("what is not there or cannot be read has its own exit code") {
  const TemporaryFolder folder;
  CHECK(run_tool(folder.path().string()).code == 2);
  CHECK(run_tool((folder.path() / "nowhere").string()).code == 2);
  CHECK(run_tool("").code == 2);
  CHECK(run_tool("--help").code == 0);
  write(folder.path() / "rank-0.flight", "what is this?");
  const Outcome outcome = run_tool(folder.path().string());
  CHECK(outcome.code == 2);
  CHECK(contains(outcome.text, "rank-0.flight: not a file of a flight recorder"));
}

TEST_CASE("cut files are named") {
  const TemporaryFolder folder;
  REQUIRE(run_job(folder.path(), 2, well) == 0);
  const auto path = folder.path() / "rank-1.flight";
  const std::string whole = read(path);
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{100}, sizeof(FlightHeader),
        std::size_t{4096}, std::size_t{8192}, whole.size() / 2, whole.size() - 1}) {
    write(path, whole.substr(0, bytes));
    const Outcome outcome = run_tool(folder.path().string());
    INFO(bytes << " bytes: " << outcome.text);
    CHECK(outcome.code == 1);
    CHECK(contains(outcome.text, path.string() + ": "));
    CHECK(contains(outcome.text, "rank 1 left no readable file here"));
  }
  write(path, whole + "x");
  CHECK(contains(run_tool(folder.path().string()).text, path.string() + ": 1 bytes follow the end"));
}

TEST_CASE("a flipped bit where nothing may change is found") {
  const TemporaryFolder folder;
  REQUIRE(run_job(folder.path(), 2, well) == 0);
  const auto path = folder.path() / "rank-0.flight";
  const std::string whole = read(path);
  const std::size_t entry = flight_entries_offset(flight_num_groups) + sizeof(FlightEntry);  // the first one
  const auto flipped = [&](std::size_t byte, int bit) {
    std::string damaged = whole;
    damaged[byte] = static_cast<char>(damaged[byte] ^ 1 << bit);
    write(path, damaged);
    std::vector<std::string> notes;
    const auto job = read_job(folder.path(), notes);
    REQUIRE(job);
    INFO("byte " << byte << " bit " << bit);
    CHECK(notes.size() == 1);
    if (notes.size() == 1) CHECK(contains(notes[0], path.string() + ": "));
  };
  for (std::size_t byte = 0; byte < offsetof(FlightHeader, check) + sizeof(FlightHeader::check); ++byte) flipped(byte, 3);
  for (int bit = 0; bit < 8; ++bit) flipped(8, bit);
  for (std::size_t byte = 0; byte < offsetof(FlightEntry, fate); ++byte) {
    if (byte != offsetof(FlightEntry, reserved)) flipped(entry + byte, 5);
  }
  for (std::size_t byte = offsetof(FlightEntry, name); byte < sizeof(FlightEntry); ++byte) flipped(entry + byte, 0);
}

TEST_CASE("no damage makes the tool crash") {
  const TemporaryFolder folder;
  CHECK(run_job(folder.path(), 3, [](const Group& world) {
          well(world);
          world.barrier(world.rank() == 2 ? "there" : "here");
          return 0;
        }) == 2);
  std::mt19937 random(7);
  std::vector<std::string> whole;
  for (int rank = 0; rank < 3; ++rank) whole.push_back(read(folder.path() / ("rank-" + std::to_string(rank) + ".flight")));
  const std::size_t interesting = flight_entries_offset(flight_num_groups) + 20 * sizeof(FlightEntry);
  for (int round = 0; round < 600; ++round) {
    const std::size_t rank = random() % 3;
    std::string damaged = whole[rank];
    const bool repaired = round % 3 == 0;  // a header of nonsense that checks
    for (int flips = 1 + static_cast<int>(random() % 8); flips > 0; --flips) {
      const std::size_t range = round % 2 == 0 ? sizeof(FlightHeader) : interesting;
      damaged[random() % range] ^= static_cast<char>(1 << random() % 8);
    }
    if (repaired) {
      auto* header = reinterpret_cast<FlightHeader*>(damaged.data());
      header->magic = flight_magic;
      header->version = flight_version;
      header->check = check_of(*header);
    }
    const auto path = folder.path() / ("rank-" + std::to_string(rank) + ".flight");
    write(path, damaged);
    std::vector<std::string> notes;
    if (const auto job = read_job(folder.path(), notes)) {
      for (const Finding& finding : find_causes(*job)) CHECK(!finding.text.empty());
    }
    if (round % 20 == 0) {
      const Outcome table = run_tool(folder.path().string());
      CHECK((table.code >= 0 && table.code <= 3));
      const Outcome json = run_tool("--json " + folder.path().string(), false);
      CHECK((json.code >= 0 && json.code <= 3));
      CHECK(nlohmann::json::accept(json.text));
    }
    write(path, whole[rank]);
  }
}

TEST_CASE("a folder that cannot be written to is one error") {
  const TemporaryFolder folder;
  write(folder.path() / "file", "in the way");
  bool ran = false;
  CHECK(run_job(folder.path() / "file", 3, [&](const Group&) {
          ran = true;
          return 0;
        }) == 2);
  CHECK(!ran);
}

TEST_CASE("the environment can name the folder") {
  const TemporaryFolder folder;
  REQUIRE(setenv("TRIREME_FLIGHT_DIR", (folder.path() / "made" / "here").c_str(), 1) == 0);
  const int code = launch(BackendKind::thread, {.ranks = 2}, well);
  unsetenv("TRIREME_FLIGHT_DIR");
  CHECK(code == 0);
  CHECK(std::filesystem::exists(folder.path() / "made" / "here" / "rank-1.flight"));
}
