#include "trainer/option_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "trainer/command_line_text.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/parse_number.hpp"

namespace trireme::trainer {

namespace {

constexpr std::string_view white_space = " \t\r";

// The characters after a '\' in double quotes, and their meanings.
constexpr auto escapes = std::to_array<std::pair<char, char>>(
    {{'\\', '\\'}, {'"', '"'}, {'n', '\n'}, {'t', '\t'}, {'r', '\r'}, {'b', '\b'}, {'f', '\f'}});

constexpr auto words_of_flags = std::to_array<std::string_view>({"true", "false", "on", "off", "yes", "no", "1", "0"});

std::string_view without_white_space(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(white_space), text.size());
  const std::size_t end = text.find_last_not_of(white_space) + 1;
  return text.substr(begin, std::max(begin, end) - begin);
}

bool is_end_of_line(std::string_view text) {
  text = without_white_space(text);
  return text.empty() || text.front() == '#';
}

std::string in_quotes(const std::string& value) {
  std::string text = "\"";
  for (const char letter : value) {
    const auto escape = std::ranges::find(escapes, letter, &std::pair<char, char>::second);
    text += escape == escapes.end() ? std::string(1, letter) : std::string{'\\', escape->first};
  }
  return text + "\"";
}

}  // namespace

std::string with_hyphens(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

std::vector<CLI::ConfigItem> OptionFile::from_config(std::istream& file) const {
  std::vector<CLI::ConfigItem> found;
  std::map<std::string, int> seen;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (is_end_of_line(line)) continue;
    const std::string_view text = without_white_space(line);
    if (text.front() == '[') refuse(number, fmt::format("{} begins a section, and options have none", text));
    const std::size_t sign = text.find('=');
    if (sign == text.npos) refuse(number, fmt::format("{} is no NAME = VALUE", text));
    const std::string name = with_hyphens(std::string(without_white_space(text.substr(0, sign))));
    const CLI::Option* option = app_.get_option_no_throw("--" + name);
    if (option == nullptr) refuse(number, text_of_unknown("--" + name, app_));
    if (!option->get_configurable()) refuse(number, fmt::format("--{} is for the command line alone", name));
    const auto [before, is_first] = seen.emplace(option->get_name(), number);
    if (!is_first) refuse(number, fmt::format("--{} was given in line {} already", name, before->second));
    const std::string value = value_of(number, without_white_space(text.substr(sign + 1)));
    if (option->get_expected_min() == 0) check_flag(number, name, value);
    if (is_passed_over_(name)) continue;
    lines_[name] = number;
    CLI::ConfigItem& item = found.emplace_back();
    item.name = name;
    item.inputs = {value};
  }
  return found;
}

std::string OptionFile::value_of(int line, std::string_view text) const {
  if (text.empty() || text.front() == '#') refuse(line, "there is no value behind the =; an empty text is \"\"");
  const char quote = text.front();
  if (quote == '[' || quote == '{') refuse(line, fmt::format("{} is a list, and an option takes one value", text));
  if (quote != '"' && quote != '\'') {
    text = without_white_space(text.substr(0, text.find('#')));
    if (text.find_first_of(white_space) != text.npos) refuse(line, fmt::format("write \"{}\" with its quotes", text));
    return std::string(text);
  }
  std::string value;
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (text[at] == quote) {
      if (!is_end_of_line(text.substr(at + 1))) refuse(line, fmt::format("{} stands behind a text", text.substr(at + 1)));
      return value;
    }
    if (quote == '"' && text[at] == '\\' && at + 1 < text.size()) {
      const auto escape = std::ranges::find(escapes, text[++at], &std::pair<char, char>::first);
      if (escape == escapes.end())
        refuse(line, fmt::format("\\{} means nothing; in single quotes a \\ is a letter as all others", text[at]));
      value += escape->second;
    } else {
      value += text[at];
    }
  }
  refuse(line, fmt::format("{} has no {} at its end", text, quote));
}

void OptionFile::check_flag(int line, const std::string& name, const std::string& value) const {
  if (std::ranges::find(words_of_flags, value) != words_of_flags.end()) return;
  refuse(line, fmt::format("--{} takes true or false, not \"{}\"", name, value));
}

std::string OptionFile::to_config(const CLI::App* app, bool, bool, std::string) const {
  std::string text;
  for (const CLI::Option* option : app->get_options()) {
    if (!option->get_configurable() || option->count() == 0) continue;
    const std::string value = option->reduced_results().back();
    const bool is_bare = parse_number<double>(value) || value == "true" || value == "false";
    text += fmt::format("{} = {}\n", option->get_single_name(), is_bare ? value : in_quotes(value));
  }
  return text;
}

std::string OptionFile::path() const { return app_.get_option_no_throw("--config")->results().back(); }

int OptionFile::line_of(const std::string& name) const {
  const auto found = lines_.find(name);
  return found == lines_.end() ? 0 : found->second;
}

void OptionFile::refuse(int line, const std::string& what) const {
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("line {} of the options: {}", line, what),
               .path = path(),
               .hint = "a line is NAME = VALUE, as batch-size = 64 or until = \"20 epochs\""});
}

}  // namespace trireme::trainer
