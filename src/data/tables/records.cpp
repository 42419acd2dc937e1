#include "data/tables/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

struct Foreign {
  std::string_view begin;
  std::string_view what;
  std::string_view hint;
  std::string_view at_four = {};  // what must follow the fourth byte, where a text may also begin with `begin`
  std::string_view end = {};      // what the file must end with

  bool is_format_of(std::string_view content) const {
    return content.starts_with(begin) && content.substr(std::min<std::size_t>(4, content.size())).starts_with(at_four) &&
           content.ends_with(end);
  }
};

constexpr std::array foreign_formats = {
    Foreign{"\x1f\x8b", "is packed by gzip", "unpack it: gunzip FILE"},
    Foreign{"PK\x03\x04", "is a zip archive or a spreadsheet", "unpack it, or export the sheet as CSV"},
    Foreign{"BZh", "is packed by bzip2", "unpack it: bunzip2 FILE", "1AY&SY"},
    Foreign{"\xfd\x37zXZ", "is packed by xz", "unpack it: unxz FILE"},
    Foreign{"\x28\xb5\x2f\xfd", "is packed by zstd", "unpack it: unzstd FILE"},
    Foreign{"PAR1", "is a Parquet file", "export it as CSV", "", "PAR1"},
    Foreign{"\xff\xfe", "is a text in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8"},
    Foreign{"\xfe\xff", "is a text in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8"},
};
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

}  // namespace

CsvRecords::CsvRecords(std::string_view content, char separator, Location path)
    : content_(content), separator_(separator), path_(std::move(path)) {
  require(separator != '"' && separator != '\n' && separator != '\r' && separator != '\0',
          "a quote, a line end or a zero can't separate values");
  const auto fail = [&](std::string message, std::string_view hint) {
    throw Error(
        {.code = ErrorCode::corrupt_file, .message = std::move(message), .path = path_.string(), .hint = std::string(hint)});
  };
  for (const Foreign& format : foreign_formats) {
    if (format.is_format_of(content)) fail(fmt::format("the file {}, not comma-separated text", format.what), format.hint);
  }
  const std::size_t zero = content.find('\0');
  if (zero != std::string_view::npos) {
    fail(fmt::format("the file is no text: byte {} is zero", zero), "export it as CSV in UTF-8");
  }
  if (content.starts_with(byte_order_mark)) at_ = byte_order_mark.size();
}

void CsvRecords::skip_line() {
  at_ = std::min(content_.find_first_of("\r\n", at_), content_.size());
  skip_line_end();
}

bool CsvRecords::next() {
  fields_.clear();
  unquoted_.clear();
  do {
    line_ = next_line_;
    skip_blanks();
  } while (skip_line_end());
  if (at_ == content_.size()) return false;
  for (;;) {
    fields_.push_back(read_field());
    if (at_ == content_.size() || skip_line_end()) return true;
    ++at_;  // a separator
  }
}

void CsvRecords::skip_blanks() {
  while (at_ < content_.size() && is_blank(content_[at_])) ++at_;
}

bool CsvRecords::skip_line_end() {
  if (at_ == content_.size() || (content_[at_] != '\n' && content_[at_] != '\r')) return false;
  at_ += content_.substr(at_, 2) == "\r\n" ? 2 : 1;
  ++next_line_;
  return true;
}

// Reads up to a separator, a line end or the end of the text.
std::string_view CsvRecords::read_field() {
  skip_blanks();
  if (at_ < content_.size() && content_[at_] == '"') return read_quoted();
  const std::size_t begin = at_;
  while (at_ < content_.size() && content_[at_] != separator_ && content_[at_] != '\n' && content_[at_] != '\r') ++at_;
  std::size_t end = at_;
  while (end > begin && is_blank(content_[end - 1])) --end;
  return content_.substr(begin, end - begin);
}

std::string_view CsvRecords::read_quoted() {
  const std::int64_t first_line = next_line_;
  std::string& value = unquoted_.emplace_back();
  for (std::size_t begin = at_ + 1;; begin = at_ + 1) {
    at_ = std::min(content_.find('"', begin), content_.size());
    const std::string_view part = content_.substr(begin, at_ - begin);
    value += part;
    next_line_ += std::ranges::count(part, '\n');
    if (at_ == content_.size()) {
      refuse(first_line, "a quoted value does not end", "close it by a quote; a quote inside of a value is doubled");
    }
    ++at_;
    if (at_ == content_.size() || content_[at_] != '"') break;
    value += '"';
  }
  skip_blanks();
  if (at_ < content_.size() && content_[at_] != separator_ && content_[at_] != '\n' && content_[at_] != '\r') {
    refuse(next_line_, fmt::format("there is text behind the quoted value \"{}\"", value.substr(0, 40)),
           "a quote inside of a quoted value is doubled");
  }
  return value;
}

void CsvRecords::refuse(std::int64_t line, std::string message, std::string hint) const {
  throw Error({.code = ErrorCode::corrupt_file,
               .message = fmt::format("line {}: {}", line, message),
               .path = path_.string(),
               .hint = std::move(hint)});
}

}  // namespace trireme::data
