#include "checkpoint/writer_sign.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <span>
#include <thread>

#include "checkpoint/directory.hpp"
#include "core/process.hpp"
#include "trireme/core/error.hpp"

namespace trireme::checkpoint {
namespace {

std::string now_in_utc() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string id_of_job() {
  static const std::string of_process = random_job();
  const char* given = std::getenv("TRIREME_JOB_ID");
  return given == nullptr || *given == '\0' ? of_process : own_job();
}

std::string to_text(const WriterSign& sign) {
  const nlohmann::ordered_json object{{"job", sign.job},         {"host", sign.host},       {"machine", sign.machine},
                                      {"process", sign.process}, {"started", sign.started}, {"time", sign.time},
                                      {"number", sign.number}};
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::optional<WriterSign> parse_sign(const std::string& text) {
  const auto object = nlohmann::json::parse(text, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  try {
    return WriterSign{.job = object.at("job"),
                      .host = object.at("host"),
                      .machine = object.at("machine"),
                      .process = object.at("process"),
                      .started = object.at("started"),
                      .time = object.at("time"),
                      .number = object.at("number")};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

void write_sign(FileSystem& files, const Location& path, const WriterSign& sign) {
  const std::string text = to_text(sign);
  const auto file = files.create(path);
  file->write(std::as_bytes(std::span(text)));
  file->close();
}

std::optional<WriterSign> try_to_read(const FileSystem& files, const Location& path) {
  try {
    return parse_sign(files.open(path)->content());
  } catch (const Error&) {  // the file was just replaced or removed
    return std::nullopt;
  }
}

}  // namespace

WriterSign own_sign() {
  const auto status = status_of(getpid());
  return {.job = id_of_job(),
          .host = host_name(),
          .machine = status ? space_of_processes() : "",
          .process = getpid(),
          .started = status ? fmt::format("{}", status->start) : "",
          .time = now_in_utc()};
}

WriterSign next_sign(WriterSign sign) {
  sign.time = now_in_utc();
  ++sign.number;
  return sign;
}

bool has_sign(const FileSystem& files, const Location& directory) { return files.exists(directory / writer_sign_name); }

std::optional<WriterSign> read_sign(const FileSystem& files, const Location& directory) {
  const Location path = directory / writer_sign_name;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (!files.exists(path)) return std::nullopt;
    if (auto sign = try_to_read(files, path)) return sign;
    if (attempt == 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the file may be half written
  }
  return std::nullopt;
}

void create_sign(FileSystem& files, const Location& directory, const WriterSign& sign) {
  write_sign(files, directory / writer_sign_name, sign);
}

void replace_sign(FileSystem& files, const Location& directory, const WriterSign& sign) {
  const Location written = temporary_path(directory, sign.job, writer_sign_name);
  files.remove_all(written);
  write_sign(files, written, sign);
  files.rename(written, directory / writer_sign_name);
}

void remove_sign(FileSystem& files, const Location& directory) { files.remove_all(directory / writer_sign_name); }

Life life_of(const WriterSign& sign) {
  if (sign.machine.empty() || sign.machine != space_of_processes() || sign.process <= 0) return Life::unknown;
  const auto status = status_of(sign.process);
  if (!status) {
    const bool is_gone = kill(static_cast<pid_t>(sign.process), 0) != 0 && errno == ESRCH;
    return is_gone ? Life::ended : Life::unknown;
  }
  const bool is_dead = status->state == 'Z' || status->state == 'X';
  return is_dead || fmt::format("{}", status->start) != sign.started ? Life::ended : Life::goes_on;
}

}  // namespace trireme::checkpoint
