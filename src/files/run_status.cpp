#include "trireme/files/run_status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme {
namespace {

constexpr std::array<std::string_view, 3> state_names = {"training", "finished", "stopped"};  // by RunState
constexpr std::uint64_t most_bytes = 4096;

RunStatus parse(std::string_view text) {
  const auto object = nlohmann::json::parse(text);
  const auto state = std::ranges::find(state_names, object.at("state").get<std::string>());
  require(state != state_names.end(), "the state {} does not exist", object.at("state").dump());
  RunStatus status{.state = static_cast<RunState>(state - state_names.begin()), .step = object.at("step").get<std::uint64_t>()};
  const auto& checkpoint = object.at("checkpoint");
  if (!checkpoint.is_null()) status.checkpoint = checkpoint.get<std::uint64_t>();
  return status;
}

}  // namespace

void write_run_status(const Location& location, const RunStatus& status) {
  nlohmann::json object = {
      {"state", state_names[static_cast<std::size_t>(status.state)]}, {"step", status.step}, {"checkpoint", nullptr}};
  if (status.checkpoint) object["checkpoint"] = *status.checkpoint;
  const std::string text = object.dump() + "\n";
  FileReplacement file(location);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

std::optional<RunStatus> read_run_status(const Location& location) {
  if (!is_there(location)) return std::nullopt;
  const auto file = open_file(location);
  std::string text(static_cast<std::size_t>(std::min(file->size(), most_bytes)), '\0');
  file->read_at(std::as_writable_bytes(std::span(text)), 0);
  try {
    return parse(text);
  } catch (const std::exception& error) {
    throw Error({.code = ErrorCode::corrupt_file,
                 .message = fmt::format("this is not the status of a run: {}", error.what()),
                 .path = location.string()});
  }
}

void report_run_status(const RunStatus& status) {
  const char* path = std::getenv("TRIREME_RUN_STATUS");
  if (path == nullptr || *path == '\0') return;
  try {
    write_run_status(path, status);
  } catch (const Error& error) {
    log(Severity::warning, "the status of the run is not written (TRIREME_RUN_STATUS): {}", error.what());
  }
}

}  // namespace trireme
