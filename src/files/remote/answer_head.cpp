#include "files/remote/answer_head.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>

#include "trireme/core/parse_number.hpp"

namespace trireme::remote {
namespace {

std::string_view without_spaces(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// A number of digits alone: no sign.
std::optional<std::uint64_t> digits(std::string_view text) {
  const bool are_digits = std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
  return are_digits ? parse_number<std::uint64_t>(text) : std::nullopt;
}

std::optional<int> digits_at(std::string_view text, std::size_t begin, std::size_t count) {
  const auto number = digits(text.substr(begin, count));
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

std::optional<std::int64_t> seconds_of(std::optional<int> year, std::optional<int> month, std::optional<int> day,
                                       std::string_view time) {
  const auto hours = digits_at(time, 0, 2), minutes = digits_at(time, 3, 2), seconds = digits_at(time, 6, 2);
  if (!year || !month || !day || !hours || !minutes || !seconds || time[2] != ':' || time[5] != ':') return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok() || *hours > 23 || *minutes > 59 || *seconds > 60) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return ((days * 24 + *hours) * 60 + *minutes) * 60 + *seconds;
}

}  // namespace

void AnswerHead::add_line(std::string_view line) {
  line = without_spaces(line);
  if (line.empty()) is_whole = true;
  if (line.starts_with("HTTP/")) {
    const std::size_t space = line.find(' ');
    *this = {};
    if (space != line.npos) status = digits_at(line, space + 1, 3).value_or(0);
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == line.npos || colon == 0) return;
  std::string name(line.substr(0, colon));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  fields[name] = without_spaces(line.substr(colon + 1));
}

std::string_view AnswerHead::field(std::string_view name) const {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string_view() : std::string_view(found->second);
}

std::optional<std::uint64_t> AnswerHead::content_length() const { return digits(field("content-length")); }

std::optional<ContentRange> parse_content_range(std::string_view text) {
  if (!text.starts_with("bytes ")) return std::nullopt;
  text = without_spaces(text.substr(6));
  const std::size_t slash = text.find('/');
  if (slash == text.npos) return std::nullopt;
  ContentRange range;
  const std::string_view size = text.substr(slash + 1), bytes = text.substr(0, slash);
  if (size != "*") {
    range.size = digits(size);
    if (!range.size) return std::nullopt;
  }
  if (bytes == "*") return range;
  const std::size_t dash = bytes.find('-');
  if (dash == bytes.npos) return std::nullopt;
  const auto first = digits(bytes.substr(0, dash)), last = digits(bytes.substr(dash + 1));
  if (!first || !last || *last < *first || *last == UINT64_MAX || (range.size && *last >= *range.size)) return std::nullopt;
  range.begin = *first;
  range.end = *last + 1;
  return range;
}

std::optional<std::int64_t> parse_http_date(std::string_view text) {
  constexpr std::array<std::string_view, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  if (text.size() != 29 || text.substr(3, 2) != ", " || text.substr(25) != " GMT") return std::nullopt;
  const auto month = std::ranges::find(months, text.substr(8, 3));
  if (month == months.end()) return std::nullopt;
  return seconds_of(digits_at(text, 12, 4), static_cast<int>(month - months.begin()) + 1, digits_at(text, 5, 2),
                    text.substr(17, 8));
}

std::optional<std::int64_t> parse_iso_date(std::string_view text) {
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T') return std::nullopt;
  return seconds_of(digits_at(text, 0, 4), digits_at(text, 5, 2), digits_at(text, 8, 2), text.substr(11, 8));
}

}  // namespace trireme::remote
