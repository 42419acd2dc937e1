#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/files/location.hpp"

namespace trireme::data {

// Reads the records of a text of separated values (RFC 4180) one by one. Skips blanks around fields and empty lines.
class CsvRecords {
 public:
  // `path` is used in errors. Throws Error{corrupt_file} where the content is not text.
  CsvRecords(std::string_view content, char separator, Location path);

  void skip_line();
  bool next();                                                          // false at the end
  std::span<const std::string_view> fields() const { return fields_; }  // valid until the next call
  std::int64_t line() const { return line_; }                           // the first line of the record, from 1

 private:
  bool is_blank(char character) const { return (character == ' ' || character == '\t') && character != separator_; }
  void skip_blanks();
  bool skip_line_end();
  std::string_view read_field();
  std::string_view read_quoted();
  [[noreturn]] void refuse(std::int64_t line, std::string message, std::string hint) const;

  std::string_view content_;
  char separator_;
  Location path_;
  std::size_t at_ = 0;
  std::int64_t line_ = 0;
  std::int64_t next_line_ = 1;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unquoted_;  // the values of quoted fields, which fields_ views
};

}  // namespace trireme::data
