#include "trireme/data/text/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "data/sources/files_below.hpp"
#include "data/text/require_text.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/file_content.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::data {
namespace {

using namespace std::string_view_literals;

// How files begin that are often named by mistake. Other binary files are recognized by a zero byte, which text does not have.
constexpr auto beginnings = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"\x1f\x8b"sv, "packed by gzip"},
    {"BZh"sv, "packed by bzip2"},
    {"\xfd"
     "7zXZ"sv,
     "packed by xz"},
    {"\x28\xb5\x2f\xfd"sv, "packed by zstd"},
    {"PK\x03\x04"sv, "a zip archive"},
    {"\x89PNG"sv, "a PNG picture"},
    {"\xff\xd8\xff"sv, "a JPEG picture"},
    {"%PDF-"sv, "a PDF document"},
    {"\0\0\x08\x01"sv, "MNIST's labels (idx)"},
    {"\0\0\x08\x03"sv, "MNIST's images (idx)"},
    {"\xff\xfe"sv, "text of UTF-16"},
    {"\xfe\xff"sv, "text of UTF-16"},
});

// A text may begin with "BZh" as bzip2 does, so this also compares the bytes that follow in bzip2.
bool begins_like(std::string_view content, std::string_view beginning) {
  return content.starts_with(beginning) && (beginning != "BZh"sv || content.substr(0, 10).ends_with("1AY&SY"sv));
}

void append(std::string& text, const Location& path) {
  const auto file = open_file(path);
  const std::size_t before = text.size();
  text.resize(before + file->size());
  file->read_at(std::as_writable_bytes(std::span(text).subspan(before)), 0);
  require_text(std::string_view(text).substr(before), path);
}

}  // namespace

void require_text(std::string_view content, const Location& path) {
  const auto known = std::ranges::find_if(beginnings, [&](const auto& each) { return begins_like(content, each.first); });
  const std::size_t zero = content.find('\0');
  if (known == beginnings.end() && zero == std::string_view::npos) return;
  throw Error({.code = ErrorCode::invalid_argument,
               .message = known == beginnings.end()
                              ? fmt::format("the file is no text: byte {} of it is zero", zero)
                              : fmt::format("the file is no text that can be read: it is {}", known->second),
               .path = path.string(),
               .hint = "name a file of plain text, or a folder that holds nothing else"});
}

std::string read_text(const Location& path) {
  const std::vector<Location> files = is_folder(path) ? files_below(path) : std::vector{path};
  std::string text;
  for (const Location& file : files) {
    if (&file != &files.front()) text += '\n';
    append(text, file);
  }
  if (text.empty()) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "there is no text",
                 .path = path.string(),
                 .hint = "name a file that is not empty, or a folder of such files; hidden ones are passed over"});
  }
  return text;
}

std::string content_of(std::string_view text) {
  return fmt::format("{} bytes, digest {:016x}", text.size(), digest_of_bytes(std::as_bytes(std::span(text))));
}

}  // namespace trireme::data
