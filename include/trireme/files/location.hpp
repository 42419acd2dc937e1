#pragma once

#include <fmt/core.h>

#include <compare>
#include <concepts>
#include <cstddef>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// Where a file or a folder lies: a path of this machine, or what follows the name of a scheme, as in "s3://bucket/data.csv". A
// path, "file:/data/x.csv" and "file:///data/x.csv" are of the scheme "file". Names are taken as they stand: %20 is three
// letters. A scheme has two letters or more; a path that begins like one is written "./set:a". A value: making one looks at no
// file, and the scheme is looked up when something is opened (files/file_system.hpp).
class Location {
 public:
  Location() = default;  // empty: of nothing

  // Of a text or a path. Error{invalid_argument} where a file: location names another machine, or no file.
  template <typename Text>
  requires(!std::same_as<Text, Location> && std::convertible_to<const Text&, std::filesystem::path>) Location(const Text& text)
      : Location(Given{}, std::filesystem::path(text).native()) {}

  bool empty() const noexcept { return text_.empty(); }
  bool is_file_path() const noexcept { return scheme_size_ == 0; }
  std::string_view scheme() const noexcept;                     // "file", "s3"
  std::string_view after_scheme() const noexcept;               // the path, or "//bucket/data.csv"
  const std::string& string() const noexcept { return text_; }  // which makes the same location again; of a path itself

  // The path. Error{invalid_argument} where the scheme is another one than "file".
  operator std::filesystem::path() const;

  Location parent() const;        // without the last name; empty of a single name
  std::string name() const;       // the last name
  std::string extension() const;  // of the last name, with its dot: ".csv"

  Location beside(std::string_view ending) const;  // of the same name with this behind it

  // Below a folder. An absolute path in place of a name is that path, as in std::filesystem.
  friend Location operator/(const Location& folder, const std::filesystem::path& name) { return folder.joined(name.native()); }

  friend bool operator==(const Location& left, const Location& right) { return left.text_ == right.text_; }
  friend std::strong_ordering operator<=>(const Location& left, const Location& right) { return left.text_ <=> right.text_; }
  template <typename Text>
  requires(!std::same_as<Text, Location> && std::convertible_to<const Text&, std::filesystem::path>) friend bool operator==(
      const Location& left, const Text& right) {
    return left == Location(right);
  }

 private:
  struct Given {};
  struct Checked {};

  Location(Given, std::string text);
  Location(Checked, std::size_t scheme_size, std::string text) : text_(std::move(text)), scheme_size_(scheme_size) {}

  static Location of_path(std::string path);
  Location joined(const std::string& name) const;
  std::size_t root_size() const;  // of what no parent() takes away

  std::string text_;
  std::size_t scheme_size_ = 0;  // 0: a path
};

std::ostream& operator<<(std::ostream& stream, const Location& location);

}  // namespace trireme

template <>
struct TRIREME_EXPORT fmt::formatter<trireme::Location> : fmt::formatter<fmt::string_view> {
  fmt::format_context::iterator format(const trireme::Location& location, fmt::format_context& context) const;
};
