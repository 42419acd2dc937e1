#include "data/tables/npz.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "data/tables/npy_header.hpp"

namespace trireme::data {
namespace {

using namespace std::string_view_literals;

constexpr std::uint32_t unknown = 0xffffffff;  // the number is in the record of 64 bits
constexpr std::uint64_t most_directory_bytes = 1 << 26;

[[noreturn]] void refuse_zip(const Location& path) {
  refuse_npy(path, "the archive of arrays (npz) is damaged", "save it again by numpy.savez");
}

// A record of a zip file: numbers lie at fixed places, the lowest byte first.
class ZipRecord {
 public:
  ZipRecord(std::string_view bytes, const Location& path) : bytes_(bytes), path_(path) {}

  std::uint64_t number(std::size_t at, std::size_t bytes) const {
    const std::string_view digits = text(at, bytes);
    std::uint64_t number = 0;
    for (std::size_t digit = bytes; digit-- > 0;) number = number << 8 | static_cast<unsigned char>(digits[digit]);
    return number;
  }
  std::string_view text(std::size_t at, std::size_t bytes) const {
    if (at > bytes_.size() || bytes > bytes_.size() - at) refuse_zip(path_);
    return bytes_.substr(at, bytes);
  }

 private:
  std::string_view bytes_;
  const Location& path_;
};

struct Directory {
  std::uint64_t begin;
  std::uint64_t bytes;
};

class ZipReader {
 public:
  ZipReader(const RangedFile& file, const Location& path) : file_(file), path_(path) {}

  std::string text(std::uint64_t begin, std::uint64_t bytes) const {
    if (begin > file_.size() || bytes > file_.size() - begin) refuse_zip(path_);
    std::string text(static_cast<std::size_t>(bytes), '\0');
    file_.read_at(std::as_writable_bytes(std::span(text)), begin);
    return text;
  }

  // From the record at the file's end, behind which a comment may follow.
  Directory directory() const {
    constexpr std::uint64_t record_bytes = 22, most_comment = 0xffff, locator_bytes = 20;
    const std::uint64_t bytes = std::min(file_.size(), record_bytes + most_comment);
    const std::string tail = text(file_.size() - bytes, bytes);
    std::size_t at = tail.rfind("PK\5\6"sv);
    const auto ends_file = [&] {  // with its comment, which may hold the same letters
      return tail.size() - at >= record_bytes && ZipRecord(tail, path_).number(at + 20, 2) == tail.size() - at - record_bytes;
    };
    while (at != tail.npos && !ends_file()) at = at == 0 ? tail.npos : tail.rfind("PK\5\6"sv, at - 1);
    if (at == tail.npos) refuse_zip(path_);
    const ZipRecord record(std::string_view(tail).substr(at), path_);
    const Directory directory{.begin = record.number(16, 4), .bytes = record.number(12, 4)};
    if (directory.begin != unknown && directory.bytes != unknown) return directory;
    const std::uint64_t end = file_.size() - bytes + at;
    if (end < locator_bytes) refuse_zip(path_);
    const std::string locator = text(end - locator_bytes, locator_bytes);
    if (!locator.starts_with("PK\6\7"sv)) refuse_zip(path_);
    const std::string wide = text(ZipRecord(locator, path_).number(8, 8), 56);
    if (!wide.starts_with("PK\6\6"sv)) refuse_zip(path_);
    return {.begin = ZipRecord(wide, path_).number(48, 8), .bytes = ZipRecord(wide, path_).number(40, 8)};
  }

 private:
  const RangedFile& file_;
  const Location& path_;
};

struct ZipEntry {
  std::string_view name;
  std::uint64_t flags;
  std::uint64_t method;  // 0: as it is
  std::uint64_t packed_bytes;
  std::uint64_t bytes;
  std::uint64_t header;  // where its local header begins
};

// Numbers that do not fit into 32 bits follow in a field of 64, those that are needed, in this order.
void read_wide_numbers(ZipEntry& entry, std::string_view extra, const Location& path) {
  while (!extra.empty()) {
    const ZipRecord field(extra, path);
    const auto bytes = static_cast<std::size_t>(field.number(2, 2));
    if (field.number(0, 2) == 1) {
      const ZipRecord numbers(field.text(4, bytes), path);
      std::size_t at = 0;
      for (std::uint64_t* number : {&entry.bytes, &entry.packed_bytes, &entry.header}) {
        if (*number != unknown) continue;
        *number = numbers.number(at, 8);
        at += 8;
      }
      return;
    }
    extra.remove_prefix(4 + field.text(4, bytes).size());
  }
}

std::vector<ZipEntry> entries_in(std::string_view directory, const Location& path) {
  std::vector<ZipEntry> entries;
  while (!directory.empty()) {
    const ZipRecord record(directory, path);
    if (record.text(0, 4) != "PK\1\2"sv) refuse_zip(path);
    const auto size_at = [&](std::size_t at) { return static_cast<std::size_t>(record.number(at, 2)); };
    const std::size_t name = size_at(28), extra = size_at(30), comment = size_at(32);
    ZipEntry entry{.name = record.text(46, name),
                   .flags = record.number(8, 2),
                   .method = record.number(10, 2),
                   .packed_bytes = record.number(20, 4),
                   .bytes = record.number(24, 4),
                   .header = record.number(42, 4)};
    read_wide_numbers(entry, record.text(46 + name, extra), path);
    record.text(46 + name + extra, comment);
    entries.push_back(entry);
    directory.remove_prefix(46 + name + extra + comment);
  }
  return entries;
}

}  // namespace

NpzMember npz_member(const RangedFile& file, const Location& path, const std::string& array) {
  const ZipReader reader(file, path);
  const auto [begin, bytes] = reader.directory();
  if (bytes > most_directory_bytes) refuse_zip(path);
  const std::string directory = reader.text(begin, bytes);
  const std::vector<ZipEntry> entries = entries_in(directory, path);
  const auto found = std::ranges::find(entries, array + ".npy", &ZipEntry::name);
  if (found == entries.end()) {
    std::vector<std::string_view> names;
    for (const ZipEntry& entry : entries) names.push_back(entry.name.substr(0, entry.name.rfind(".npy")));
    const std::string there = fmt::format(
        "its arrays are {}", fmt::join(names.begin(), names.begin() + std::min<std::ptrdiff_t>(30, std::ssize(names)), ", "));
    refuse_npy(path,
               array.empty() ? "the file is an archive of several arrays (npz): which?"
                             : fmt::format("the archive has no array \"{}\"", array),
               "name one: " + there);
  }
  if (found->method != 0 || found->packed_bytes != found->bytes || (found->flags & 1) != 0) {
    refuse_npy(path, fmt::format("the array \"{}\" is packed", array), "save it by numpy.savez, not savez_compressed");
  }
  const std::string header = reader.text(found->header, 30);
  const ZipRecord local(header, path);
  if (local.text(0, 4) != "PK\3\4"sv) refuse_zip(path);
  const NpzMember member{.begin = found->header + 30 + local.number(26, 2) + local.number(28, 2), .bytes = found->bytes};
  if (member.begin > file.size() || member.bytes > file.size() - member.begin) refuse_zip(path);
  return member;
}

}  // namespace trireme::data
