#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::data {

// The names in a column of classes or categories. Where all names are numbers they are sorted by value, and "1" equals "1.0";
// otherwise they are sorted by their bytes. `decimal` is the decimal mark of numbers.
class CsvCategories {
 public:
  explicit CsvCategories(char decimal) : decimal_(decimal) {}

  std::int32_t add(std::string_view value, std::int64_t times = 1);     // its number: in order of appearance, from 0
  std::optional<std::int32_t> number_of(std::string_view value) const;  // nothing: it was not added
  std::int64_t size() const { return std::ssize(counts_); }             // different values
  bool holds_a_fraction() const;                                        // all names are numbers and some are not whole

  std::vector<std::string> names() const;                              // sorted
  std::vector<std::string_view> values() const;                        // by their numbers
  const std::vector<std::int64_t>& counts() const { return counts_; }  // how often each value was added, by its number
  // The index in `names` of each different value, by its number. Where `names`, possibly those of another table, lack a value:
  // returns std::nullopt and stores the value in `unknown`.
  std::optional<std::vector<std::int32_t>> places(const std::vector<std::string>& names, std::string& unknown) const;

 private:
  char decimal_;
  std::map<std::string, std::int32_t, std::less<>> different_;  // distinct values, numbered in order of appearance
  std::vector<std::int64_t> counts_;
};

}  // namespace trireme::data
