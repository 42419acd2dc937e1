#include "data/tables/categories.hpp"

#include <algorithm>
#include <utility>

#include "data/tables/number.hpp"

namespace trireme::data {
namespace {

// All names as numbers; empty where a name is not a number.
std::vector<DecimalNumber> all_as_numbers(const std::vector<std::string>& names, char decimal) {
  std::vector<DecimalNumber> numbers;
  for (const std::string& name : names) {
    auto number = decimal_in(name, decimal);
    if (!number) return {};
    numbers.push_back(*std::move(number));
  }
  return numbers;
}

std::vector<std::string> keys_of(const auto& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  return keys;
}

}  // namespace

std::int32_t CsvCategories::add(std::string_view value, std::int64_t times) {
  auto found = different_.find(value);
  if (found == different_.end()) {
    found = different_.emplace(value, static_cast<std::int32_t>(counts_.size())).first;
    counts_.push_back(0);
  }
  counts_[static_cast<std::size_t>(found->second)] += times;
  return found->second;
}

std::optional<std::int32_t> CsvCategories::number_of(std::string_view value) const {
  const auto found = different_.find(value);
  return found == different_.end() ? std::nullopt : std::optional(found->second);
}

bool CsvCategories::holds_a_fraction() const {
  const auto numbers = all_as_numbers(keys_of(different_), decimal_);
  return std::ranges::any_of(numbers, [](const DecimalNumber& number) { return !number.is_whole(); });
}

std::vector<std::string> CsvCategories::names() const {
  std::vector<std::string> texts = keys_of(different_);
  const auto numbers = all_as_numbers(texts, decimal_);
  if (numbers.empty()) return texts;
  std::map<DecimalNumber, std::string> by_number;  // keeps the first text of equal numbers
  for (std::size_t i = 0; i < texts.size(); ++i) by_number.emplace(numbers[i], std::move(texts[i]));
  std::vector<std::string> names;
  for (auto& [number, name] : by_number) names.push_back(std::move(name));
  return names;
}

std::vector<std::string_view> CsvCategories::values() const {
  std::vector<std::string_view> values(counts_.size());
  for (const auto& [text, number] : different_) values[static_cast<std::size_t>(number)] = text;
  return values;
}

std::optional<std::vector<std::int32_t>> CsvCategories::places(const std::vector<std::string>& names,
                                                               std::string& unknown) const {
  std::map<std::string_view, std::int32_t> by_text;
  std::map<DecimalNumber, std::int32_t> by_number;
  const auto numbers = all_as_numbers(names, decimal_);
  for (std::size_t i = 0; i < names.size(); ++i) {
    by_text.emplace(names[i], static_cast<std::int32_t>(i));
    if (!numbers.empty()) by_number.emplace(numbers[i], static_cast<std::int32_t>(i));
  }
  std::vector<std::int32_t> places(different_.size());
  for (const auto& [text, appeared] : different_) {
    const auto same = by_text.find(text);
    const auto number = decimal_in(text, decimal_);
    const auto equal = number ? by_number.find(*number) : by_number.end();
    if (same == by_text.end() && equal == by_number.end()) {
      unknown = text;
      return std::nullopt;
    }
    places[static_cast<std::size_t>(appeared)] = same != by_text.end() ? same->second : equal->second;
  }
  return places;
}

}  // namespace trireme::data
