#include "data/csv_column.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

namespace trireme::data {

std::optional<double> number_in(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range)
    return text.find("e-") != text.npos || text.find("E-") != text.npos ? 0 : HUGE_VAL;
  return number;
}

void CsvCategories::add(std::string_view value) {
  auto found = different_.find(value);
  if (found == different_.end()) {
    found = different_.emplace(value, static_cast<std::int32_t>(different_.size())).first;
  }
  values_.push_back(found->second);
}

bool CsvCategories::all_are_numbers() const {
  return std::ranges::all_of(different_, [](const auto& one) {
    const auto number = number_in(one.first);
    return number && std::isfinite(*number);
  });
}

bool CsvCategories::holds_a_fraction() const {
  return all_are_numbers() && std::ranges::any_of(different_, [](const auto& one) {
           const double number = *number_in(one.first);
           return number != std::floor(number);
         });
}

std::vector<std::string> CsvCategories::names() const {
  std::vector<std::pair<double, std::string>> values;
  const bool by_number = all_are_numbers();
  for (const auto& [text, appeared] : different_) values.emplace_back(by_number ? *number_in(text) : 0, text);
  std::ranges::sort(values);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == 0 || !by_number || values[i].first != values[i - 1].first) names.push_back(values[i].second);
  }
  return names;
}

std::optional<std::vector<std::int32_t>> CsvCategories::places(const std::vector<std::string>& names,
                                                               std::string& unknown) const {
  std::map<std::string_view, std::int32_t> by_text;
  std::map<double, std::int32_t> by_number;
  for (std::size_t i = 0; i < names.size(); ++i) {
    by_text.emplace(names[i], static_cast<std::int32_t>(i));
    const auto number = number_in(names[i]);
    if (number && !std::isnan(*number)) by_number.emplace(*number, static_cast<std::int32_t>(i));
  }
  std::vector<std::int32_t> place_of_different(different_.size());
  for (const auto& [text, appeared] : different_) {
    const auto same = by_text.find(text);
    const auto number = number_in(text);
    const auto equal = number && !std::isnan(*number) ? by_number.find(*number) : by_number.end();
    if (same == by_text.end() && equal == by_number.end()) {
      unknown = text;
      return std::nullopt;
    }
    place_of_different[static_cast<std::size_t>(appeared)] = same != by_text.end() ? same->second : equal->second;
  }
  std::vector<std::int32_t> places;
  places.reserve(values_.size());
  for (const std::int32_t value : values_) places.push_back(place_of_different[static_cast<std::size_t>(value)]);
  return places;
}

}  // namespace trireme::data
