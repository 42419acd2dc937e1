#include "flight_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "trireme/core/error.hpp"
#include "trireme/files/file_system.hpp"

using namespace trireme::comm;

namespace {

constexpr std::uint64_t most_entries = std::uint64_t{1} << 24;
constexpr std::uint32_t most_groups = 4096;

template <typename... Args>
void expect(bool ok, const std::filesystem::path& path, fmt::format_string<Args...> format, Args&&... args) {
  if (ok) return;
  throw trireme::Error({.code = trireme::ErrorCode::corrupt_file,
                        .message = fmt::format(format, std::forward<Args>(args)...),
                        .path = path.string()});
}

template <typename T>
T read_as(const std::vector<std::byte>& bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

std::vector<std::byte> content_of(const std::filesystem::path& path) {
  const auto file = trireme::open_file(path);
  constexpr std::uint64_t most = trireme::comm::flight_bytes(most_groups, most_entries);
  const std::uint64_t size = file->size();
  expect(size <= most, path, "not a file of a flight recorder: {} bytes", size);
  std::vector<std::byte> bytes(size);
  file->read_at(bytes, 0);
  return bytes;
}

FlightHeader read_header(const std::vector<std::byte>& bytes, const std::filesystem::path& path) {
  expect(bytes.size() >= sizeof(flight_magic) && read_as<std::array<char, 8>>(bytes, 0) == flight_magic, path,
         "not a file of a flight recorder");
  expect(bytes.size() >= flight_groups_offset, path, "the file is cut: {} bytes", bytes.size());
  const auto header = read_as<FlightHeader>(bytes, 0);
  expect(header.version == flight_version, path, "version {} of the format; this program reads version {}", header.version,
         flight_version);
  expect(header.check == check_of(header), path, "the header is damaged");
  expect(header.entry_bytes == sizeof(FlightEntry) && header.capacity >= 1 && header.capacity <= most_entries &&
             header.num_groups >= 1 && header.num_groups <= most_groups && header.size >= 1 && header.rank >= 0 &&
             header.rank < header.size,
         path, "the header makes no sense");
  const std::size_t wanted = flight_bytes(header.num_groups, header.capacity);
  expect(bytes.size() >= wanted, path, "the file is cut: {} bytes of {}", bytes.size(), wanted);
  expect(bytes.size() == wanted, path, "{} bytes follow the end", bytes.size() - wanted);
  expect(header.state <= FlightState::failed && header.error_bytes <= header.error.size(), path, "the header is damaged");
  return header;
}

FlightFile parse(const std::vector<std::byte>& bytes, const std::filesystem::path& path) {
  FlightFile file{.path = path, .header = read_header(bytes, path), .groups = {}, .entries = {}};
  for (std::uint32_t place = 0; place < file.header.num_groups; ++place) {
    file.groups.push_back(read_as<FlightGroup>(bytes, flight_groups_offset + place * sizeof(FlightGroup)));
  }
  for (std::uint64_t slot = 0; slot < file.header.capacity; ++slot) {
    const auto entry = read_as<FlightEntry>(bytes, flight_entries_offset(file.header.num_groups) + slot * sizeof(FlightEntry));
    if (entry.number == 0) continue;  // not written yet, or being written now
    const bool good = entry.check == check_of(entry) && entry.number % file.header.capacity == slot &&
                      static_cast<std::uint8_t>(entry.kind) < num_flight_kinds && entry.group < file.header.num_groups &&
                      entry.fate <= FlightFate::failed;
    if (good) {
      file.entries.push_back(entry);
    } else {
      ++file.num_damaged;
    }
  }
  std::ranges::sort(file.entries, {}, &FlightEntry::number);
  return file;
}

}  // namespace

const FlightEntry* FlightFile::find(std::uint64_t number) const {
  const auto found = std::ranges::lower_bound(entries, number, {}, &FlightEntry::number);
  return number != 0 && found != entries.end() && found->number == number ? &*found : nullptr;
}

FlightFile read_flight_file(const std::filesystem::path& path) {
  // If the rank writes while we read, entries look damaged: read again.
  FlightFile file;
  for (int attempt = 0; attempt < 3; ++attempt) {
    file = parse(content_of(path), path);
    if (file.num_damaged == 0) break;
  }
  return file;
}
