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

// The location of a file or folder: a path of this machine, or a scheme and a path, such as "s3://bucket/data.csv". Paths,
// "file:/data/x.csv" and "file:///data/x.csv" have the scheme "file". Names are not decoded: %20 is three characters. A scheme
// has at least two characters; for a path that looks as if it had a scheme, write "./set:a". Constructing a Location accesses
// no file; opening looks up the scheme (files/file_system.hpp).
class Location {
 public:
  Location() = default;  // empty

  // Throws Error{invalid_argument} for a `file:` location that names another machine or has no path.
  template <typename Text>
  requires(!std::same_as<Text, Location> && std::convertible_to<const Text&, std::filesystem::path>) Location(const Text& text)
      : Location(Given{}, std::filesystem::path(text).native()) {}

  bool empty() const noexcept { return text_.empty(); }
  bool is_file_path() const noexcept { return scheme_size_ == 0; }
  std::string_view scheme() const noexcept;                     // "file", "s3"
  std::string_view after_scheme() const noexcept;               // the path, or "//bucket/data.csv"
  const std::string& string() const noexcept { return text_; }  // constructs this location again; for a path, the path

  // The path. Throws Error{invalid_argument} if the scheme is not "file".
  operator std::filesystem::path() const;

  Location parent() const;        // without the last name; empty for a single name
  std::string name() const;       // the last name
  std::string extension() const;  // extension of the last name, with its dot: ".csv"

  Location beside(std::string_view ending) const;  // the same location with `ending` appended to the name

  // A location below a folder. An absolute path as `name` replaces the folder, as in std::filesystem.
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
  std::size_t root_size() const;  // size of the prefix that parent() keeps

  std::string text_;
  std::size_t scheme_size_ = 0;  // 0: a path
};

std::ostream& operator<<(std::ostream& stream, const Location& location);

}  // namespace trireme

template <>
struct TRIREME_EXPORT fmt::formatter<trireme::Location> : fmt::formatter<fmt::string_view> {
  fmt::format_context::iterator format(const trireme::Location& location, fmt::format_context& context) const;
};
