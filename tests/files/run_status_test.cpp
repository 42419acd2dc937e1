#include "trireme/files/run_status.hpp"

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/exit_code.hpp"

using namespace trireme;

TEST_CASE("the status of a run is read back") {
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "status.json";
  CHECK_FALSE(read_run_status(path));
  for (const RunStatus& status : {RunStatus{.step = 1}, RunStatus{RunState::finished, 1ULL << 60, 0},
                                  RunStatus{RunState::stopped, 12, 12}, RunStatus{RunState::training, 5, 3}}) {
    write_run_status(path, status);
    CHECK(read_run_status(path) == status);
  }
  std::ifstream file(path);
  const auto object = nlohmann::json::parse(file);
  CHECK(object == nlohmann::json{{"state", "training"}, {"step", 5}, {"checkpoint", 3}});
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("what is no status of a run is refused") {
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "status.json";
  for (const char* text :
       {"", "{", "[]", "{\"state\": \"training\", \"step\": 1}", "{\"state\": 1, \"step\": 1, \"checkpoint\": 1}",
        "{\"state\": \"lost\", \"step\": 1, \"checkpoint\": null}"}) {
    std::ofstream(path) << text;
    try {
      read_run_status(path);
      FAIL(text << " is taken for a status");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::corrupt_file);
      CHECK_THAT(error.what(), ContainsSubstring(path.string()));
    }
  }
}

TEST_CASE("a run reports where TRIREME_RUN_STATUS says") {
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "status.json";
  report_run_status({.step = 1});
  setenv("TRIREME_RUN_STATUS", path.c_str(), 1);
  report_run_status({.step = 2});
  CHECK(read_run_status(path) == RunStatus{.step = 2});
  setenv("TRIREME_RUN_STATUS", (folder.path() / "gone" / "status.json").c_str(), 1);
  CHECK_NOTHROW(report_run_status({.step = 3}));
  unsetenv("TRIREME_RUN_STATUS");
}

TEST_CASE("errors have the exit codes that are documented") {
  const auto code = [](ErrorCode error) { return static_cast<int>(exit_code_of(error)); };
  CHECK(code(ErrorCode::internal) == 1);
  CHECK(code(ErrorCode::peer_failed) == 1);
  for (const ErrorCode error : {ErrorCode::invalid_argument, ErrorCode::io, ErrorCode::corrupt_file, ErrorCode::not_available,
                                ErrorCode::rank_mismatch})
    CHECK(code(error) == 2);
  CHECK(code(ErrorCode::timeout) == 3);
  CHECK(code(ErrorCode::out_of_memory) == 4);
  CHECK(code(ErrorCode::diverged) == 5);
}
