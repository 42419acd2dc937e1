#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tables/categories.hpp"
#include "data/tables/records.hpp"
#include "trireme/data/tables/read_csv.hpp"

namespace trireme::data {

enum class ColumnRole : std::uint8_t { number, category, label, target, ignored };

// The sums of a column's numbers.
struct CsvNumbers {
  std::int64_t count = 0;
  double first = 0;
  double sum = 0;      // of differences from the first, which keeps precision for large numbers
  double squares = 0;  // of differences from the mean

  void add(double number);
  void add(const CsvNumbers& later);
  double mean() const { return first + sum / static_cast<double>(count); }
  bool operator==(const CsvNumbers&) const = default;
};

struct CsvColumn {
  std::string name;
  ColumnRole role = ColumnRole::number;
  CsvNumbers numbers = {};   // of a column of numbers or targets
  CsvCategories categories;  // of a column of categories or labels

  bool is_feature() const { return role == ColumnRole::number || role == ColumnRole::category; }
  bool has_categories() const { return role == ColumnRole::category || role == ColumnRole::label; }
};

// A value of a row: a number, NaN where it misses; or a text and its number in CsvColumn::categories.
struct CsvValue {
  double number = 0;
  std::string_view text = {};
  std::int32_t category = 0;
};

// The columns of a file, the rules for their values, and what all rows say of them.
class CsvColumns {
 public:
  CsvColumns(const std::vector<std::string>& names, const CsvOptions& options, std::string path);

  const std::vector<CsvColumn>& all() const { return columns_; }
  std::vector<CsvColumn>& all() { return columns_; }
  const CsvOptions& options() const { return options_; }

  // False: the row misses a value and is dropped.
  bool is_row(const CsvRecords& record) const;
  // The values of a row, one for each column, without their categories.
  void parse(const CsvRecords& record, std::vector<CsvValue>& values) const;

  // Counts a row in, and finds its categories. A column may have up to `most_categories` different ones.
  void learn(std::vector<CsvValue>& values, std::int64_t most_categories);
  void learn(const CsvColumns& later);             // all rows of another file, which has to have the same columns
  bool find(std::vector<CsvValue>& values) const;  // the categories, of a row that was learnt; false: they are unknown

  void require_rows() const;
  [[noreturn]] void refuse(std::string message, std::string hint) const;

  [[noreturn]] void refuse_many_categories(const CsvColumn& column, std::int64_t most) const;

  std::string path;  // in errors
  std::int64_t rows = 0;
  std::int64_t rows_dropped = 0;

 private:
  CsvColumn& column_of(const std::string& name, const char* option);
  void choose(const std::string& name, ColumnRole role, const char* option);
  void choose_roles();
  bool is_missing(std::string_view text) const;
  double checked_number(const CsvColumn& column, std::string_view text, std::int64_t line) const;
  std::string no_header_hint() const;
  [[noreturn]] void refuse_value(std::int64_t line, const CsvColumn& column, std::string_view what, std::string hint) const;

  CsvOptions options_;
  std::vector<CsvColumn> columns_;
};

void check_csv_options(const CsvOptions& options);

inline constexpr std::int64_t any_number_of_categories = std::numeric_limits<std::int32_t>::max();

// Called for each row with the columns so far, its values and the byte where it begins.
using OnCsvRow = std::function<void(const CsvColumns&, std::span<const CsvValue>, std::uint64_t)>;

// Reads a file once.
CsvColumns learn_csv(const RangedFile& file, const CsvOptions& options, std::int64_t most_categories, const OnCsvRow& on_row);

}  // namespace trireme::data
