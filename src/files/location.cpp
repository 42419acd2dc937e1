#include "trireme/files/location.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <ostream>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme {
namespace {

constexpr std::string_view file_scheme = "file";

// The size of the scheme that a text begins with; 0 for a path. A scheme has at least two characters.
std::size_t size_of_scheme(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == text.npos || colon < 2 || std::isalpha(static_cast<unsigned char>(text[0])) == 0) return 0;
  const auto belongs = [](unsigned char c) { return std::isalnum(c) != 0 || c == '+' || c == '-' || c == '.'; };
  return std::ranges::all_of(text.substr(0, colon), belongs) ? colon : 0;
}

// The path of a location that begins with "file:".
std::string path_of_file_location(const std::string& text) {
  std::string_view path = std::string_view(text).substr(file_scheme.size() + 1);
  if (path.starts_with("//")) {
    const std::string_view machine = path.substr(2, std::min(path.find('/', 2), path.size()) - 2);
    if (!machine.empty() && machine != "localhost") {
      throw Error({.code = ErrorCode::invalid_argument,
                   .message = fmt::format("a file: location names another machine, {}", machine),
                   .path = text,
                   .hint = "write a file of this machine as file:/folder/name, or as a path"});
    }
    path.remove_prefix(2 + machine.size());
  }
  if (path.empty()) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "a file: location has no path",
                 .path = text,
                 .hint = "name a file: file:/folder/name"});
  }
  return std::string(path);
}

}  // namespace

Location::Location(Given, std::string text) {
  const std::size_t size = size_of_scheme(text);
  if (size == 0) {
    text_ = std::move(text);
    return;
  }
  std::ranges::transform(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size), text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (std::string_view(text).substr(0, size) == file_scheme) {
    *this = of_path(path_of_file_location(text));
  } else {
    text_ = std::move(text);
    scheme_size_ = size;
  }
}

Location Location::of_path(std::string path) {
  if (size_of_scheme(path) > 0) path.insert(0, "./");
  return {Checked{}, 0, std::move(path)};
}

std::string_view Location::scheme() const noexcept {
  return is_file_path() ? file_scheme : std::string_view(text_).substr(0, scheme_size_);
}

std::string_view Location::after_scheme() const noexcept {
  return is_file_path() ? std::string_view(text_) : std::string_view(text_).substr(scheme_size_ + 1);
}

Location::operator std::filesystem::path() const {
  if (is_file_path()) return text_;
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("this needs a file of this machine, but the location has the scheme {}:", scheme()),
               .path = text_,
               .hint = "copy it, and name the copy by its path"});
}

std::size_t Location::root_size() const {
  const std::size_t begin = scheme_size_ + 1;
  const std::string_view path = after_scheme();
  if (path.starts_with("//")) return std::min(text_.find('/', begin + 2), text_.size() - 1) + 1;
  return path.starts_with('/') ? begin + 1 : begin;
}

Location Location::parent() const {
  if (is_file_path()) return of_path(std::filesystem::path(text_).parent_path().native());
  const std::size_t slash = text_.rfind('/');
  return {Checked{}, scheme_size_, text_.substr(0, std::max(slash == text_.npos ? 0 : slash, root_size()))};
}

std::string Location::name() const {
  if (is_file_path()) return std::filesystem::path(text_).filename().native();
  const std::size_t slash = text_.rfind('/');
  return text_.substr(std::max(slash == text_.npos ? 0 : slash + 1, root_size()));
}

std::string Location::extension() const { return std::filesystem::path(name()).extension().native(); }

Location Location::beside(std::string_view ending) const {
  std::string text = text_ + std::string(ending);
  return is_file_path() ? of_path(std::move(text)) : Location(Checked{}, scheme_size_, std::move(text));
}

Location Location::joined(const std::string& name) const {
  if (name.starts_with('/')) return of_path(name);
  if (is_file_path()) return of_path((std::filesystem::path(text_) / name).native());
  const bool has_end = text_.ends_with('/') || text_.ends_with(':');
  return {Checked{}, scheme_size_, text_ + (has_end ? "" : "/") + name};
}

std::ostream& operator<<(std::ostream& stream, const Location& location) { return stream << location.string(); }

}  // namespace trireme

fmt::format_context::iterator fmt::formatter<trireme::Location>::format(const trireme::Location& location,
                                                                        fmt::format_context& context) const {
  return fmt::formatter<fmt::string_view>::format(location.string(), context);
}
