#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace trireme::remote {

// What a server says ahead of a body.
struct AnswerHead {
  int status = 0;
  std::map<std::string, std::string, std::less<>> fields = {};  // by names in small letters
  bool is_whole = false;                                        // the empty line that ends it has come

  void add_line(std::string_view line);                 // "HTTP/1.1 206 Partial Content" begins a head
  std::string_view field(std::string_view name) const;  // empty: there is none
  std::optional<std::uint64_t> content_length() const;

  bool operator==(const AnswerHead&) const = default;
};

// Bytes [begin, end) of a file of this size. "bytes */10", what a range outside gets, has no bytes.
struct ContentRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::optional<std::uint64_t> size = std::nullopt;
};

std::optional<ContentRange> parse_content_range(std::string_view text);

// Seconds since 1970 of "Sun, 06 Nov 1994 08:49:37 GMT" or "1994-11-06T08:49:37Z"; no other form.
std::optional<std::int64_t> parse_http_date(std::string_view text);
std::optional<std::int64_t> parse_iso_date(std::string_view text);

}  // namespace trireme::remote
