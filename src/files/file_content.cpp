#include "trireme/files/file_content.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <vector>

#include "files/system_error.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/files/digest.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using Record = nlohmann::json;

constexpr std::uint64_t least_kept = std::uint64_t{64} << 20;
constexpr std::int64_t second = 1'000'000'000;  // in nanoseconds

std::int64_t nanoseconds(const timespec& time) { return time.tv_sec * second + time.tv_nsec; }

// A digest of 64 evenly spaced samples, including the first and the last bytes.
std::uint64_t digest_of_samples(std::span<const std::byte> bytes) {
  constexpr std::size_t samples = 64;
  constexpr std::size_t sample = 4096;
  std::uint64_t sum = 0;
  for (std::size_t index = 0; index < samples; ++index) {
    const std::size_t begin = (bytes.size() - sample) / (samples - 1) * index;
    sum = 31 * sum + digest_of_bytes(bytes.subspan(index + 1 == samples ? bytes.size() - sample : begin, sample));
  }
  return sum;
}

// Identifies a file without reading all of it.
Record identity_of(const fs::path& path, std::span<const std::byte> bytes) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) throw_system_error("the file's status cannot be read", path, errno);
  std::error_code unknown;
  return {{"file", fs::absolute(path, unknown).string()},
          {"size", static_cast<std::uint64_t>(status.st_size)},
          {"modified", nanoseconds(status.st_mtim)},
          {"changed", nanoseconds(status.st_ctim)},
          {"samples", digest_of_samples(bytes)}};
}

// Whether the last change is so old that another change would give the file another time.
bool is_settled(const Record& identity) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return nanoseconds(now) - identity.at("changed").get<std::int64_t>() > second;
}

// The files in which the numbers of a file may be cached.
std::vector<fs::path> places_of(const fs::path& path) {
  std::vector<fs::path> places{path.parent_path() / fmt::format(".{}.trireme.json", path.filename().string())};
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::error_code unknown;
  const std::string name = fmt::format("{:016x}.json", hash_name(fs::absolute(path, unknown).string()));
  if (cache != nullptr && *cache != '\0') {
    places.push_back(fs::path(cache) / "trireme" / name);
  } else if (home != nullptr && *home != '\0') {
    places.push_back(fs::path(home) / ".cache" / "trireme" / name);
  }
  return places;
}

// The cached numbers of exactly this file; null if there are none.
Record numbers_in(const fs::path& place, const Record& identity) {
  std::error_code unknown;
  if (!fs::is_regular_file(place, unknown)) return nullptr;
  try {
    const Record record = Record::parse(open_file(place)->content());
    return record.at("identity") == identity && record.at("numbers").is_object() ? record.at("numbers") : Record();
  } catch (const std::exception&) {  // not readable, or damaged
    return nullptr;
  }
}

bool keep(const fs::path& place, const Record& identity, const Record& numbers) {
  std::error_code unknown;
  if (place.has_parent_path()) fs::create_directories(place.parent_path(), unknown);
  const std::string text =
      Record{{"identity", identity}, {"numbers", numbers}}.dump(-1, ' ', false, Record::error_handler_t::replace) + "\n";
  try {
    FileReplacement file(place);
    file.write(std::as_bytes(std::span(text)));
    file.commit();
    return true;
  } catch (const Error&) {  // a folder of another user, a full disk
    return false;
  }
}

// Finds the files below a folder, by their names from there. Follows links.
void list_files(const FileSystem& files, const Location& folder, const std::string& prefix, std::vector<Location>& above,
                std::map<std::string, Location>& found) {
  above.push_back(files.real(folder));
  for (const FolderEntry& entry : files.entries_of(folder)) {
    if (entry.name.starts_with('.')) continue;
    const Location location = folder / entry.name;
    if (entry.kind == FileKind::file) found.emplace(prefix + entry.name, location);
    if (entry.kind == FileKind::folder && std::ranges::find(above, files.real(location)) == above.end()) {
      list_files(files, location, prefix + entry.name + "/", above, found);
    }
  }
  above.pop_back();
}

// Above 16 GiB, digests only 16,384 evenly spaced pieces of 1 MiB, because reading all bytes would let other ranks wait too
// long.
std::uint64_t digest_of_many(std::span<const std::byte> bytes) {
  constexpr std::size_t pieces = 16'384;
  constexpr std::size_t piece = std::size_t{1} << 20;
  if (bytes.size() <= pieces * piece) return digest_of_bytes(bytes);
  std::uint64_t sum = 0;
  for (std::size_t index = 0; index < pieces; ++index) {
    const std::size_t begin = (bytes.size() - piece) / (pieces - 1) * index;
    sum = 31 * sum + digest_of_bytes(bytes.subspan(index + 1 == pieces ? bytes.size() - piece : begin, piece));
  }
  return sum;
}

std::uint64_t digest_of_file(const Location& location) { return number_of_file(location, "digest", digest_of_many); }

}  // namespace

std::uint64_t digest_of_bytes(std::span<const std::byte> bytes) {
  const auto words = static_cast<std::int64_t>(bytes.size() / 8);
  const auto rest = bytes.subspan(static_cast<std::size_t>(words) * 8);
  return digest("data", DType::uint64, bytes.data(), words) +
         digest("data", DType::uint8, rest.data(), static_cast<std::int64_t>(rest.size()), words);
}

std::uint64_t number_of_file(const Location& location, const std::string& name,
                             const std::function<std::uint64_t(std::span<const std::byte>)>& compute) {
  const auto file = open_file(location);
  const std::uint64_t size = file->size();
  const std::shared_ptr<const std::byte> memory = file->map();
  const std::span bytes(memory.get(), size);
  if (size < least_kept || !location.is_file_path()) return compute(bytes);
  const fs::path path = location;
  const Record identity = identity_of(path, bytes);
  const std::vector<fs::path> places = places_of(path);
  Record numbers = Record::object();
  for (const fs::path& place : places) {
    const Record found = numbers_in(place, identity);
    if (found.is_object()) numbers.update(found);
  }
  const auto kept = numbers.find(name);
  if (kept != numbers.end() && kept->is_number_unsigned()) return kept->get<std::uint64_t>();
  const std::uint64_t number = compute(bytes);
  numbers[name] = number;
  if (is_settled(identity) && identity_of(path, bytes) == identity) {
    static_cast<void>(std::ranges::any_of(places, [&](const fs::path& place) { return keep(place, identity, numbers); }));
  }
  return number;
}

std::string content_at(const Location& location) {
  if (!is_folder(location)) {
    return fmt::format("{} bytes, digest {:016x}", open_file(location)->size(), digest_of_file(location));
  }
  std::map<std::string, Location> files;
  std::vector<Location> above;
  list_files(*file_system_of(location), location, {}, above, files);
  std::uint64_t bytes = 0;
  std::uint64_t sum = 0;
  for (const auto& [name, file] : files) {
    bytes += open_file(file)->size();
    sum = 31 * (31 * sum + hash_name(name)) + digest_of_file(file);
  }
  return fmt::format("{} files of {} bytes, digest {:016x}", files.size(), bytes, sum);
}

std::string content_or_version_at(const Location& file) {
  if (file.is_file_path()) return content_at(file);
  const auto remote = open_file(file);
  const std::string version = remote->version();
  if (!version.empty()) return fmt::format("{} bytes, version {}", remote->size(), version);
  log(Severity::warning, "{} is read as a whole to know its content: its server states neither ETag nor date", file);
  return content_at(file);
}

}  // namespace trireme
