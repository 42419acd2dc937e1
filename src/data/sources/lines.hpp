#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "trireme/files/location.hpp"

namespace trireme::data {

inline constexpr std::string_view utf8_mark = "\xef\xbb\xbf";

// The lines of a text that begins at byte `begin` of a file. Those of blanks alone are passed over; a carriage return at the
// end of a line, and a mark of UTF-8 at the beginning of the file, do not belong to it.
class LineScanner {
 public:
  struct Line {
    std::string_view text;
    std::uint64_t byte;   // of the file, where the line begins
    std::int64_t number;  // in the text, from 1
  };

  // Where the file goes on behind the text, a last line without an end is not looked at.
  LineScanner(std::string_view text, std::uint64_t begin, bool goes_on = false) : rest_(text), at_(begin), goes_on_(goes_on) {}

  std::optional<Line> next() {
    while (!rest_.empty()) {
      const void* const end = std::memchr(rest_.data(), '\n', rest_.size());
      if (end == nullptr && goes_on_) return std::nullopt;
      const std::size_t length =
          end != nullptr ? static_cast<std::size_t>(static_cast<const char*>(end) - rest_.data()) : rest_.size();
      Line line{.text = rest_.substr(0, length), .byte = at_, .number = ++number_};
      const std::size_t passed = std::min(length + 1, rest_.size());
      rest_.remove_prefix(passed);
      at_ += passed;
      if (line.text.ends_with('\r')) line.text.remove_suffix(1);
      if (line.byte == 0 && line.text.starts_with(utf8_mark)) line.text.remove_prefix(utf8_mark.size());
      if (line.text.find_first_not_of(" \t\r") != line.text.npos) return line;
    }
    return std::nullopt;
  }

  std::uint64_t position() const { return at_; }  // of the file, behind the lines so far

 private:
  std::string_view rest_;
  std::uint64_t at_;
  bool goes_on_;
  std::int64_t number_ = 0;
};

// The number of the line at this byte, from 1. Reads the file up to there; of a name that ends in .gz what it unpacks to.
std::int64_t line_number_at(const Location& file, std::uint64_t byte);

// The text under this key of a line's JSON object. Throws Error{invalid_argument} that says why there is none.
std::string text_in_line(std::string_view line, std::string_view key);

}  // namespace trireme::data
