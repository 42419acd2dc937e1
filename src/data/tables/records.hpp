#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/sources/ranged_file.hpp"
#include "trireme/files/location.hpp"

namespace trireme::data {

struct CsvPosition {
  std::uint64_t byte = 0;  // of the file
  std::int64_t line = 1;   // at this byte
};

// Reads the records of a text of separated values (RFC 4180) one by one. Skips blanks around fields and empty lines.
class CsvRecords {
 public:
  // `text` begins at `begin` of the file `path`, which is used in errors. Where the file goes on behind the text, a last record
  // is not looked at unless its end is seen.
  CsvRecords(std::string_view text, char separator, Location path, CsvPosition begin = {}, bool goes_on = false);

  bool skip_line();                                                     // false: its end is not in the text
  bool next();                                                          // false at the end of the text
  std::span<const std::string_view> fields() const { return fields_; }  // valid until the next call
  std::int64_t line() const { return line_; }                           // the first line of the record, from 1
  std::uint64_t byte() const { return begin_.byte + record_; }          // of the file, where the record begins

  CsvPosition position() const { return {.byte = begin_.byte + at_, .line = next_line_}; }  // behind what was read
  bool goes_on() const { return goes_on_; }

 private:
  struct Mark {
    std::size_t at;
    std::int64_t line;
  };
  bool is_blank(char character) const { return (character == ' ' || character == '\t') && character != separator_; }
  bool at_line_end() const { return at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r'); }
  void skip_blanks();
  bool skip_line_end();
  std::string_view read_field();
  std::string_view read_quoted();
  bool back_to(const Mark& mark);
  [[noreturn]] void refuse(std::int64_t line, std::string message, std::string hint) const;

  std::string_view text_;
  char separator_;
  Location path_;
  CsvPosition begin_;
  bool goes_on_;
  std::size_t at_ = 0;
  std::size_t record_ = 0;  // where it begins
  std::int64_t line_ = 0;
  std::int64_t next_line_;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unquoted_;  // the values of quoted fields, which fields_ views
};

// The records of a whole file, which is read in pieces.
class CsvFile {
 public:
  // Throws Error{corrupt_file} where the file, or a piece of it as soon as it is read, is no text.
  CsvFile(const RangedFile& file, char separator);

  void skip_line();
  bool next();                                            // false at the end
  const CsvRecords& record() const { return *records_; }  // the last one that next() found

 private:
  void read_on(CsvPosition from);

  const RangedFile& file_;
  char separator_;
  std::size_t piece_;
  CsvPosition begin_;  // of the piece
  std::shared_ptr<const std::byte> memory_;
  std::optional<CsvRecords> records_;
};

}  // namespace trireme::data
