#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::data {

// The values of a column that are names. Names that are all numbers are ordered by these, and "1" is "1.0"; others by their
// bytes. `decimal` stands before the fraction of a number.
class CsvCategories {
 public:
  explicit CsvCategories(char decimal) : decimal_(decimal) {}

  void add(std::string_view value);
  bool holds_a_fraction() const;  // all are numbers, some not whole

  std::vector<std::string> names() const;  // in their order
  // Of each value that was added its place among names, which may be another column's; std::nullopt where one is not there, and
  // then it is in `unknown`.
  std::optional<std::vector<std::int32_t>> places(const std::vector<std::string>& names, std::string& unknown) const;

 private:
  char decimal_;
  std::map<std::string, std::int32_t, std::less<>> different_;  // numbered as they appear
  std::vector<std::int32_t> values_;
};

}  // namespace trireme::data
