#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "trireme/files/location.hpp"

namespace trireme::data {

enum class TarKind : std::uint8_t {
  file,
  link,   // to another member or to a path
  other,  // a folder, a device, a label
};

// What an archive says of one of its members, and where it lies.
struct TarMember {
  std::string name;
  TarKind kind = TarKind::file;
  std::uint64_t begin = 0;  // of its first header
  std::uint64_t data = 0;   // of its content
  std::uint64_t size = 0;   // of its content
};

// Reads the headers of an archive one after the other: of tar in the formats v7, ustar, pax and GNU. What breaks the format,
// and what can't be read as ranges of bytes, is an Error{corrupt_file} with the archive and the byte.
class TarReader {
 public:
  using Bytes = std::function<std::span<const std::byte>(std::uint64_t begin, std::size_t count)>;

  // `bytes` gives what lies in [begin, end).
  TarReader(Bytes bytes, const Location& archive, std::uint64_t begin, std::uint64_t end)
      : bytes_(std::move(bytes)), archive_(archive), at_(begin), end_(end) {}

  // Nothing at the mark that ends the archive.
  std::optional<TarMember> next();

  std::uint64_t position() const { return at_; }  // of the next header, or of the mark

  // Behind the mark there are zeros alone.
  void check_end() const;

  [[noreturn]] void refuse(std::uint64_t byte, std::string_view message, std::string_view hint = {}) const;

 private:
  struct Extended;

  void read_records(std::string_view text, std::uint64_t byte, bool is_global, Extended& into) const;
  std::uint64_t number_in(std::span<const std::byte> field, std::uint64_t byte, std::string_view name) const;
  void check_sum(std::span<const std::byte> header) const;
  std::span<const std::byte> content(std::uint64_t begin, std::uint64_t size, std::uint64_t header) const;

  Bytes bytes_;
  const Location& archive_;
  std::uint64_t at_;
  std::uint64_t end_;
};

// What WebDataset makes of a member's name: the key, up to the first dot after the last slash, and the extension behind that.
// Nothing of names without a dot, of hidden ones, and below a folder, or of a file, such as __meta__.
struct TarFieldName {
  std::string_view key;
  std::string_view extension;  // as it stands
};
std::optional<TarFieldName> tar_field_name(std::string_view member);

// Whether a program that unpacks it would write outside of its folder.
bool leads_outside(std::string_view member);

}  // namespace trireme::data
