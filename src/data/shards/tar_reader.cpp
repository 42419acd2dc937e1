#include "data/shards/tar_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>

#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

constexpr std::uint64_t block = 512;
constexpr std::uint64_t most_extended_bytes = 1 << 20;  // of a name or of pax records
constexpr auto most_size = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

std::string_view text_in(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.substr(0, text.find('\0'));
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

// The formats that somebody may take for tar, by how they begin.
std::string_view compression_of(std::span<const std::byte> begin) {
  const std::string_view text(reinterpret_cast<const char*>(begin.data()), begin.size());
  if (text.starts_with("\x1f\x8b")) return "gzip";
  if (text.starts_with("\x28\xb5\x2f\xfd")) return "zstd";
  if (text.starts_with("BZh")) return "bzip2";
  if (text.starts_with("\xfd"
                       "7zXZ"))
    return "xz";
  return {};
}

// Octal digits between blanks and zeros; nothing where it is no number.
std::optional<std::uint64_t> octal_in(std::span<const std::byte> field) {
  const std::string_view text(reinterpret_cast<const char*>(field.data()), field.size());
  std::uint64_t number = 0;
  std::size_t at = std::min(text.find_first_not_of(' '), text.size());
  for (; at < text.size() && text[at] >= '0' && text[at] <= '7'; ++at) {
    number = number << 3 | static_cast<std::uint64_t>(text[at] - '0');  // at most 12 digits
  }
  return text.find_first_not_of(std::string_view(" \0", 2), at) == text.npos ? std::optional(number) : std::nullopt;
}

}  // namespace

// What headers say of the member after them.
struct TarReader::Extended {
  std::optional<std::string> name = {};
  std::optional<std::uint64_t> size = {};
  bool is_there = false;
};

void TarReader::refuse(std::uint64_t byte, std::string_view message, std::string_view hint) const {
  throw Error({.code = ErrorCode::corrupt_file,
               .message = fmt::format("byte {}: {}", byte, message),
               .operation = "reading a tar archive",
               .path = archive_.string(),
               .hint = std::string(hint.empty() ? "fetch or make the archive again" : hint)});
}

// Octal digits, or a number of base 256, whose first byte has its highest bit set.
std::uint64_t TarReader::number_in(std::span<const std::byte> field, std::uint64_t byte, std::string_view name) const {
  const auto first = std::to_integer<std::uint8_t>(field[0]);
  std::uint64_t number = 0;
  if ((first & 0x80) != 0) {
    if ((first & 0x40) != 0) refuse(byte, fmt::format("the {} is negative", name));
    number = first & 0x3f;
    for (const std::byte digit : field.subspan(1)) {
      if (number > most_size >> 8) refuse(byte, fmt::format("the {} is 2^63 or more", name));
      number = number << 8 | std::to_integer<std::uint64_t>(digit);
    }
    return number;
  }
  const std::optional<std::uint64_t> octal = octal_in(field);
  if (!octal) refuse(byte, fmt::format("the {} is no number", name));
  return *octal;
}

void TarReader::check_sum(std::span<const std::byte> header) const {
  constexpr std::size_t begin = 148, size = 8;
  std::uint32_t sum = 0;
  for (const std::byte byte : header) sum += std::to_integer<std::uint32_t>(byte);
  std::uint32_t blanks = 0;  // what counts in place of the sum itself
  for (const std::byte byte : header.subspan(begin, size)) blanks += ' ' - std::to_integer<std::uint32_t>(byte);
  const std::optional<std::uint64_t> said = octal_in(header.subspan(begin, size));
  if (said && *said == sum + blanks) return;
  std::int64_t signed_sum = 0;  // old programs took bytes for signed ones
  for (std::size_t at = 0; at < header.size(); ++at) {
    signed_sum += at >= begin && at < begin + size ? ' ' : static_cast<signed char>(header[at]);
  }
  if (said && std::cmp_equal(*said, signed_sum)) return;
  const std::string_view compression = at_ == 0 ? compression_of(header) : std::string_view();
  if (compression.empty()) refuse(at_, "there is no header of a tar archive: its checksum is wrong");
  refuse(at_, fmt::format("the archive is packed by {}: its members can't be read one by one", compression),
         "unpack it; images are packed already");
}

std::span<const std::byte> TarReader::content(std::uint64_t begin, std::uint64_t size, std::uint64_t header) const {
  if (size > most_extended_bytes) refuse(header, fmt::format("a name or its records have {} bytes", size));
  return size == 0 ? std::span<const std::byte>() : bytes_(begin, static_cast<std::size_t>(size));
}

// Lines "27 path=data/0001.jpg\n", which begin with their length.
void TarReader::read_records(std::string_view text, std::uint64_t byte, bool is_global, Extended& into) const {
  while (!text.empty()) {
    std::size_t length = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<std::size_t>(end - text.data());
    if (fault != std::errc() || length <= digits || length > text.size() || *end != ' ' || text[length - 1] != '\n') {
      refuse(byte, "a record of the extended header is damaged");
    }
    const std::string_view record = text.substr(digits + 1, length - digits - 2);
    text.remove_prefix(length);
    const std::size_t equals = record.find('=');
    if (equals == record.npos) refuse(byte, "a record of the extended header is damaged");
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key.starts_with("GNU.sparse.")) refuse(byte, "a member has holes", "make the archive without --sparse");
    if (is_global && (key == "path" || key == "size")) refuse(byte, fmt::format("all members have the {} {}", key, value));
    if (key == "path") into.name = value;
    if (key != "size") continue;
    std::uint64_t size = 0;
    const auto [rest, unread] = std::from_chars(value.data(), value.data() + value.size(), size);
    if (unread != std::errc() || rest != value.data() + value.size() || size > most_size) {
      refuse(byte, fmt::format("the size {} is no number below 2^63", value));
    }
    into.size = size;
  }
}

std::optional<TarMember> TarReader::next() {
  TarMember member{.name = {}, .begin = at_};
  for (Extended extended;;) {
    if (at_ > end_ || end_ - at_ < block) refuse(at_, "the archive ends without its mark: it is cut");
    const std::span<const std::byte> header = bytes_(at_, block);
    if (is_zero(header)) {
      if (extended.is_there) refuse(at_, "the archive ends behind an extended header");
      return std::nullopt;
    }
    check_sum(header);
    const auto type = static_cast<char>(header[156]);
    std::uint64_t size = number_in(header.subspan(124, 12), at_, "size");
    const bool is_extended = type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K';
    const std::string_view magic(reinterpret_cast<const char*>(header.data()) + 257, 6);
    if (!is_extended) {
      if (extended.name) {
        member.name = *std::move(extended.name);
      } else if (const auto prefix = text_in(header.subspan(345, 155));
                 magic == std::string_view("ustar\0", 6) && !prefix.empty()) {
        member.name = fmt::format("{}/{}", prefix, text_in(header.first(100)));
      } else {
        member.name = text_in(header.first(100));
      }
      if (type == 'S')
        refuse(at_, fmt::format("the member \"{}\" has holes", member.name), "make the archive without --sparse");
      if (type == 'M') refuse(at_, fmt::format("the member \"{}\" begins in another volume", member.name));
      const bool is_old_folder = type == '\0' && member.name.ends_with('/');
      member.kind = type == '1' || type == '2'                                       ? TarKind::link
                    : (type == '0' || type == '\0' || type == '7') && !is_old_folder ? TarKind::file
                                                                                     : TarKind::other;
      if (is_old_folder || (type >= '1' && type <= '6')) {
        size = 0;  // whatever is said: links, folders and devices have no content
      } else if (extended.size) {
        size = *extended.size;
      }
    }
    const std::uint64_t data = at_ + block;
    if (size > end_ - data) {
      refuse(at_, is_extended ? fmt::format("an extended header has {} bytes, and {} follow", size, end_ - data)
                              : fmt::format("the member \"{}\" has {} bytes, and {} follow", member.name, size, end_ - data));
    }
    const std::uint64_t after = data + (size + block - 1) / block * block;
    if (!is_extended) {
      member.data = data;
      member.size = size;
      at_ = after;
      return member;
    }
    const auto said = content(data, size, at_);
    if (type == 'L') {
      extended.name = text_in(said);
    } else if (type != 'K') {
      read_records({reinterpret_cast<const char*>(said.data()), said.size()}, at_, type == 'g', extended);
    }
    extended.is_there = extended.is_there || type != 'g';
    at_ = after;
  }
}

void TarReader::check_end() const {
  constexpr std::size_t piece = 1 << 16;
  for (std::uint64_t at = at_; at < end_; at += piece) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(piece, end_ - at));
    if (is_zero(bytes_(at, count))) continue;
    refuse(at, "more follows behind the mark that ends the archive", "join archives by tar --concatenate, not by cat");
  }
}

std::optional<TarFieldName> tar_field_name(std::string_view member) {
  const std::string_view first = member.substr(0, member.find('/'));
  if (first.size() >= 4 && first.starts_with("__") && first.ends_with("__")) return std::nullopt;
  const std::size_t slash = member.rfind('/');
  const std::size_t begin = slash == member.npos ? 0 : slash + 1;
  const std::size_t dot = member.find('.', begin);
  if (dot == member.npos || dot == begin) return std::nullopt;
  return TarFieldName{.key = member.substr(0, dot), .extension = member.substr(dot + 1)};
}

bool leads_outside(std::string_view member) {
  if (member.starts_with('/')) return true;
  while (!member.empty()) {
    const std::string_view part = member.substr(0, member.find('/'));
    if (part == "..") return true;
    member.remove_prefix(std::min(member.size(), part.size() + 1));
  }
  return false;
}

}  // namespace trireme::data
