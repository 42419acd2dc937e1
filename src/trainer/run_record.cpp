#include "trainer/run_record.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <omp.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string_view>

#include "core/process.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"
#include "trireme/core/version.hpp"
#include "trireme/device/isa.hpp"

namespace trireme::trainer {

namespace {

std::string processor() {
  std::istringstream lines(read_system_text("/proc/cpuinfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string host() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string content_of(const Location& path, const FileSystem& files) {
  return files.exists(path) ? files.open(path)->content() : std::string();
}

// Replaces the file: after a failure it has its old content.
void replace(const Location& path, std::string_view text, FileSystem& files) {
  const Location written = path.beside(".part");
  files.remove_all(written);
  const auto file = files.create(written);
  file->write(std::as_bytes(std::span(text)));
  file->sync();
  file->close();
  files.rename(written, path);
}

}  // namespace

void record_start(const RunStart& start, const Location& folder, FileSystem& files) {
  const nlohmann::ordered_json line{{"started", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
                                    {"command", start.command},
                                    {"trireme", version()},
                                    {"host", host()},
                                    {"processor", processor()},
                                    {"instruction_set", device::name_of(device::current_isa())},
                                    {"cores", sysconf(_SC_NPROCESSORS_ONLN)},
                                    {"ranks", start.ranks},
                                    {"threads_per_rank", omp_get_max_threads()},
                                    {"first_step", start.first_step},
                                    {"settings", start.settings}};
  const Location all = folder / "runs.jsonl";
  try {
    replace(all, content_of(all, files) + line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n", files);
    if (!start.configuration.empty()) replace(folder / "options.toml", start.configuration, files);
    files.sync_folder(folder);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::io) throw;
    log(Severity::warning, "this start is not recorded beside its checkpoints, and training goes on: {}", error.what());
  }
}

}  // namespace trireme::trainer
