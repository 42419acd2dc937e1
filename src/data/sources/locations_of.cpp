#include "trireme/data/sources/locations_of.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "data/sources/files_below.hpp"
#include "data/sources/lines.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::data {
namespace {

constexpr std::uint64_t most_names = 10'000'000;
constexpr int most_nested_lists = 8;

// The place of the brace that closes the one at `open`.
std::size_t closing_brace(std::string_view pattern, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < pattern.size(); ++at) {
    if (pattern[at] == '{') ++depth;
    if (pattern[at] == '}' && --depth == 0) return at;
  }
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("the pattern '{}' has a '{{' without its '}}'", pattern),
               .hint = "write it as train-{000..099}.tar or as {a,b}.tar"});
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// What stands between two braces is one of several.
std::vector<std::string> choices_of(std::string_view inside, std::string_view pattern) {
  if (const std::size_t dots = inside.find(".."); dots != std::string_view::npos && inside.find_first_of("{,") == inside.npos) {
    const std::string_view first_text = inside.substr(0, dots);
    const auto first = number_in(first_text), last = number_in(inside.substr(dots + 2));
    require(first && last, "the pattern '{}': '{}' is no range of numbers, as 000..099 is", pattern, inside);
    require(*first <= *last, "the pattern '{}': the range {} runs backwards", pattern, inside);
    require(*last - *first < most_names, "the pattern '{}' has more than {} names", pattern, most_names);
    std::vector<std::string> numbers;
    for (std::uint64_t number = *first; number - *first <= *last - *first; ++number) {
      numbers.push_back(fmt::format("{:0{}}", number, first_text.size()));
      if (number == *last) break;
    }
    return numbers;
  }
  std::vector<std::string> choices;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= inside.size(); ++at) {
    if (at == inside.size() || (inside[at] == ',' && depth == 0)) {
      choices.emplace_back(inside.substr(begin, at - begin));
      begin = at + 1;
    } else if (inside[at] == '{') {
      ++depth;
    } else if (inside[at] == '}') {
      --depth;
    }
  }
  return choices;
}

// The first braces vary slowest.
std::vector<std::string> expanded(std::string_view pattern) {
  const std::size_t open = pattern.find('{');
  if (open == std::string_view::npos) {
    require(pattern.find('}') == std::string_view::npos, "the pattern '{}' has a '}}' without its '{{'", pattern);
    return {std::string(pattern)};
  }
  require(pattern.find('}') > open, "the pattern '{}' has a '}}' without its '{{'", pattern);
  const std::size_t close = closing_brace(pattern, open);
  const std::vector<std::string> rest = expanded(pattern.substr(close + 1));
  std::vector<std::string> names;
  for (const std::string& choice : choices_of(pattern.substr(open + 1, close - open - 1), pattern)) {
    for (const std::string& middle : expanded(choice)) {
      require(names.size() + rest.size() <= most_names, "the pattern '{}' has more than {} names", pattern, most_names);
      for (const std::string& end : rest) names.push_back(fmt::format("{}{}{}", pattern.substr(0, open), middle, end));
    }
  }
  return names;
}

void add_locations(std::string_view pattern, std::span<const std::string_view> endings, int depth,
                   std::vector<Location>& found);

void add_list(const Location& list, std::span<const std::string_view> endings, int depth, std::vector<Location>& found) {
  require(depth < most_nested_lists, "the list {} names itself, or lists name lists more than {} deep", list,
          most_nested_lists);
  const std::size_t before = found.size();
  const std::string text = open_file(list)->content();
  LineScanner lines(text, 0);
  while (const auto found_line = lines.next()) {
    std::string_view line = found_line->text.substr(0, found_line->text.find('#'));
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) continue;
    line = line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
    const bool is_list = line.starts_with('@');
    const Location named(std::string(line.substr(is_list ? 1 : 0)));
    const Location below = named.is_file_path() ? list.parent() / named.string() : named;
    add_locations((is_list ? "@" : "") + below.string(), endings, depth + 1, found);
  }
  if (found.size() == before) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "the list names no file",
                 .path = list.string(),
                 .hint = "write one location or pattern on each line"});
  }
}

void add_locations(std::string_view pattern, std::span<const std::string_view> endings, int depth,
                   std::vector<Location>& found) {
  if (pattern.starts_with('@')) return add_list(Location(std::string(pattern.substr(1))), endings, depth, found);
  const Location whole{std::string(pattern)};
  // To ask a server for each name would take long: there only "s3://bucket/folder/" is a folder.
  if (whole.is_file_path() ? !is_there(whole) : !pattern.ends_with('/')) {
    for (const std::string& name : expanded(pattern)) found.emplace_back(name);
    return;
  }
  if (whole.is_file_path() && !is_folder(whole)) return found.push_back(whole);
  const std::size_t before = found.size();
  for (Location& file : files_below(whole)) {
    const std::string name = file.name();
    const auto has = [&](std::string_view ending) { return name.ends_with(ending); };
    if (endings.empty() || std::ranges::any_of(endings, has)) found.push_back(std::move(file));
  }
  if (found.size() == before) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "the folder holds no file of this kind",
                 .path = whole.string(),
                 .wanted = fmt::format("files that end in {}", fmt::join(endings, ", "))});
  }
}

}  // namespace

std::vector<Location> locations_of(std::string_view pattern, std::span<const std::string_view> endings) {
  require(!pattern.empty(), "a pattern of files is empty");
  std::vector<Location> found;
  add_locations(pattern, endings, 0, found);
  return found;
}

}  // namespace trireme::data
