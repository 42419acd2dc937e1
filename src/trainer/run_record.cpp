#include "trainer/run_record.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <omp.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"
#include "trireme/core/version.hpp"
#include "trireme/device/isa.hpp"

namespace trireme::trainer {

namespace {

std::string processor() {
  std::ifstream lines("/proc/cpuinfo");
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

std::string content_of(const std::filesystem::path& path, const FileSystem& files) {
  if (!files.exists(path)) return {};
  const auto file = files.open(path);
  std::string text(file->size(), '\0');
  file->read_at(std::as_writable_bytes(std::span(text)), 0);
  return text;
}

// A file of this name has all of the text, or what it had before.
void replace(const std::filesystem::path& path, std::string_view text, FileSystem& files) {
  const std::filesystem::path written = path.string() + ".part";
  files.remove_all(written);
  const auto file = files.create(written);
  file->write(std::as_bytes(std::span(text)));
  file->sync();
  file->close();
  files.rename(written, path);
}

}  // namespace

void record_start(const RunStart& start, const std::filesystem::path& folder, FileSystem& files) {
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
  const std::filesystem::path all = folder / "runs.jsonl";
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
