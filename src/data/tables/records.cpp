#include "data/tables/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "data/sources/lines.hpp"
#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

struct Foreign {
  std::string_view begin;
  std::string_view what;
  std::string_view hint;
  std::string_view at_four = {};  // what must follow the fourth byte, where a text may also begin with `begin`
  std::string_view end = {};      // what the file must end with

  bool is_format_of(std::string_view first, std::string_view last) const {
    return first.starts_with(begin) && first.substr(std::min<std::size_t>(4, first.size())).starts_with(at_four) &&
           last.ends_with(end);
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
constexpr std::size_t first_piece = std::size_t{1} << 24;
constexpr std::size_t most_of_record = std::size_t{1} << 30;

[[noreturn]] void refuse_file(const Location& path, std::string message, std::string_view hint) {
  throw Error(
      {.code = ErrorCode::corrupt_file, .message = std::move(message), .path = path.string(), .hint = std::string(hint)});
}

void refuse_foreign(const RangedFile& file, std::string_view begin) {
  std::string end(static_cast<std::size_t>(std::min<std::uint64_t>(4, file.size())), '\0');
  file.read_at(std::as_writable_bytes(std::span(end)), file.size() - end.size());
  for (const Foreign& format : foreign_formats) {
    if (!format.is_format_of(begin, end)) continue;
    refuse_file(file.location(), fmt::format("the file {}, not comma-separated text", format.what), format.hint);
  }
}

}  // namespace

CsvRecords::CsvRecords(std::string_view text, char separator, Location path, CsvPosition begin, bool goes_on)
    : text_(text), separator_(separator), path_(std::move(path)), begin_(begin), goes_on_(goes_on), next_line_(begin.line) {
  if (begin.byte == 0 && text.starts_with(utf8_mark)) at_ = utf8_mark.size();
}

bool CsvRecords::back_to(const Mark& mark) {
  at_ = mark.at;
  next_line_ = mark.line;
  fields_.clear();
  return false;
}

bool CsvRecords::skip_line() {
  const Mark before{.at = at_, .line = next_line_};
  at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
  return skip_line_end() || !goes_on_ || back_to(before);
}

bool CsvRecords::next() {
  fields_.clear();
  unquoted_.clear();
  Mark before{};
  do {
    before = {.at = at_, .line = next_line_};
    skip_blanks();
  } while (skip_line_end());
  line_ = before.line;
  record_ = at_;
  if (at_ == text_.size()) return goes_on_ && back_to(before);
  for (;;) {
    fields_.push_back(read_field());
    if (skip_line_end()) return true;
    if (at_ == text_.size() || at_line_end()) return !goes_on_ || back_to(before);
    ++at_;  // a separator
  }
}

void CsvRecords::skip_blanks() {
  while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
}

bool CsvRecords::skip_line_end() {
  if (!at_line_end()) return false;
  if (goes_on_ && text_[at_] == '\r' && at_ + 1 == text_.size()) return false;  // a line feed may follow
  at_ += text_.substr(at_, 2) == "\r\n" ? 2 : 1;
  ++next_line_;
  return true;
}

// Reads up to a separator, a line end or the end of the text.
std::string_view CsvRecords::read_field() {
  skip_blanks();
  if (at_ < text_.size() && text_[at_] == '"') return read_quoted();
  const std::size_t begin = at_;
  while (at_ < text_.size() && text_[at_] != separator_ && !at_line_end()) ++at_;
  std::size_t end = at_;
  while (end > begin && is_blank(text_[end - 1])) --end;
  return text_.substr(begin, end - begin);
}

std::string_view CsvRecords::read_quoted() {
  const std::int64_t first_line = next_line_;
  std::string& value = unquoted_.emplace_back();
  for (std::size_t begin = at_ + 1;; begin = at_ + 1) {
    at_ = std::min(text_.find('"', begin), text_.size());
    const std::string_view part = text_.substr(begin, at_ - begin);
    value += part;
    next_line_ += std::ranges::count(part, '\n');
    if (at_ == text_.size()) {
      if (goes_on_) return value;
      refuse(first_line, "a quoted value does not end", "close it by a quote; a quote inside of a value is doubled");
    }
    ++at_;
    if (at_ == text_.size() || text_[at_] != '"') break;
    value += '"';
  }
  skip_blanks();
  if (at_ < text_.size() && text_[at_] != separator_ && !at_line_end()) {
    refuse(next_line_, fmt::format("there is text behind the quoted value \"{}\"", value.substr(0, 40)),
           "a quote inside of a quoted value is doubled");
  }
  return value;
}

void CsvRecords::refuse(std::int64_t line, std::string message, std::string hint) const {
  refuse_file(path_, fmt::format("line {}: {}", line, message), hint);
}

CsvFile::CsvFile(const RangedFile& file, char separator) : file_(file), separator_(separator), piece_(first_piece) {
  require(separator != '"' && separator != '\n' && separator != '\r' && separator != '\0',
          "a quote, a line end or a zero can't separate values");
  read_on({});
}

void CsvFile::read_on(CsvPosition from) {
  if (records_ && from.byte == begin_.byte) {  // a record is longer
    piece_ *= 2;
    if (piece_ / 2 > most_of_record) {
      refuse_file(file_.location(), fmt::format("line {}: the row has more than {} bytes", from.line, most_of_record),
                  "a quote before a value that is not closed behind it takes all rows that follow");
    }
  }
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(piece_, file_.size() - from.byte));
  begin_ = from;
  memory_ = file_.range(from.byte, count);
  const std::string_view text(reinterpret_cast<const char*>(memory_.get()), count);
  if (from.byte == 0) refuse_foreign(file_, text);
  if (const std::size_t zero = text.find('\0'); zero != text.npos) {
    refuse_file(file_.location(), fmt::format("the file is no text: byte {} is zero", from.byte + zero),
                "export it as CSV in UTF-8");
  }
  records_.emplace(text, separator_, file_.location(), from, from.byte + count < file_.size());
}

void CsvFile::skip_line() {
  while (!records_->skip_line()) read_on(records_->position());
}

bool CsvFile::next() {
  while (!records_->next()) {
    if (!records_->goes_on()) return false;
    read_on(records_->position());
  }
  return true;
}

}  // namespace trireme::data
