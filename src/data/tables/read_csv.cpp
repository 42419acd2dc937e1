#include "trireme/data/tables/read_csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "data/tables/categories.hpp"
#include "data/tables/number.hpp"
#include "data/tables/records.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::data {
namespace {

constexpr std::size_t most_categories = 1000;  // in a column; a column with more has names of rows, not categories
constexpr std::size_t most_listed = 30;        // columns listed in a message
constexpr double no_number = std::numeric_limits<double>::quiet_NaN();  // a missing value, until its column's mean is known

enum class ColumnRole : std::uint8_t { number, category, label, target, ignored };

struct CsvColumn {
  std::string name;
  ColumnRole role = ColumnRole::number;
  std::vector<double> numbers = {};  // of a column of numbers or targets
  CsvCategories categories;          // of a column of categories or labels
};

std::vector<float> floats_of(const std::vector<double>& numbers) {
  std::vector<float> floats;
  floats.reserve(numbers.size());
  for (const double number : numbers) floats.push_back(static_cast<float>(number));
  return floats;
}

bool is_float(double number) { return static_cast<double>(static_cast<float>(number)) == number; }

// A column of numbers gives its name to its feature. The name of a category's feature gets a number where it is taken.
std::vector<std::string> names_of_features(const std::vector<TableColumn>& columns) {
  std::set<std::string> taken;
  for (const TableColumn& column : columns) {
    if (column.categories.empty()) taken.insert(column.name);
  }
  std::vector<std::string> names;
  for (const TableColumn& column : columns) {
    if (column.categories.empty()) names.push_back(column.name);
    for (const std::string& category : column.categories) {
      const std::string wanted = column.name + "_" + category;
      std::string name = wanted;
      for (int number = 2; !taken.insert(name).second; ++number) name = fmt::format("{}_{}", wanted, number);
      names.push_back(std::move(name));
    }
  }
  return names;
}

class CsvReading {
 public:
  CsvReading(std::string_view content, const Location& path, const CsvOptions& options, const Table* like)
      : path_(path), options_(options), like_(like), records_(content, options.separator, path) {}

  Table read() {
    for (std::int64_t line = 0; line < options_.skipped_lines; ++line) records_.skip_line();
    if (!records_.next()) refuse("the file holds no lines", "a table is a line for each row");
    name_columns();
    choose_roles();
    if (!options_.header) add_row();
    while (records_.next()) add_row();
    require_rows();
    for (CsvColumn& column : columns_) finish(column);
    return Table(content());
  }

 private:
  [[noreturn]] void refuse(std::string message, std::string hint) const {
    throw Error(
        {.code = ErrorCode::corrupt_file, .message = std::move(message), .path = path_.string(), .hint = std::move(hint)});
  }
  [[noreturn]] void refuse_value(const CsvColumn& column, std::string_view what, std::string hint) const {
    refuse(fmt::format("line {}, column \"{}\": {}", records_.line(), column.name, what), std::move(hint));
  }

  std::string no_header_hint() const {
    const bool numbers =
        std::ranges::all_of(columns_, [](const CsvColumn& column) { return number_in(column.name).has_value(); });
    return numbers && options_.header ? "; where the first line is a row and no header, set .header = false" : "";
  }

  void name_columns() {
    std::set<std::string_view> names;
    for (std::size_t i = 0; i < records_.fields().size(); ++i) {
      std::string name = options_.header ? std::string(records_.fields()[i]) : fmt::format("{}", i);
      columns_.push_back({.name = name.empty() ? fmt::format("Unnamed: {}", i) : std::move(name),
                          .categories = CsvCategories(options_.decimal)});
    }
    for (const CsvColumn& column : columns_) {
      if (names.insert(column.name).second) continue;
      refuse(fmt::format("two columns have the name \"{}\"", column.name), "rename one of them" + no_header_hint());
    }
  }

  CsvColumn& find(const std::string& name, const char* option) {
    const auto found = std::ranges::find(columns_, name, &CsvColumn::name);
    if (found != columns_.end()) return *found;
    std::vector<std::string> names;
    for (const CsvColumn& column : columns_) names.push_back(column.name);
    if (names.size() > most_listed) {
      names.resize(most_listed);
      names.emplace_back("...");
    }
    const bool one = columns_.size() == 1 && columns_[0].name.find_first_of(";\t|") != std::string::npos;
    throw Error(
        {.code = ErrorCode::invalid_argument,
         .message = fmt::format("{} names the column \"{}\", which does not exist", option, name),
         .path = path_.string(),
         .had = fmt::format("the columns {}", fmt::join(names, ", ")),
         .hint = one ? "is the separator another one? Set .separator = ';'" : "name one of the columns" + no_header_hint()});
  }

  void choose(const std::string& name, ColumnRole role, const char* option) {
    CsvColumn& column = find(name, option);
    require(column.role == ColumnRole::number, "the column \"{}\" of {} has two roles; {} names it too", name, path_.string(),
            option);
    column.role = role;
  }

  void choose_roles() {
    if (!options_.label.empty()) choose(options_.label, ColumnRole::label, ".label");
    if (!options_.target.empty()) choose(options_.target, ColumnRole::target, ".target");
    for (const std::string& name : options_.categories) choose(name, ColumnRole::category, ".categories");
    for (const std::string& name : options_.ignored) choose(name, ColumnRole::ignored, ".ignored");
    for (const CsvColumn& column : columns_) {
      if (column.role != ColumnRole::number || !column.name.starts_with("Unnamed: ")) continue;
      refuse("a column has no name; pandas writes row numbers like this",
             fmt::format("leave it out: .ignored = {{\"{}\"}}, or name it in the file", column.name));
    }
    if (std::ranges::none_of(columns_, [](const CsvColumn& column) { return is_feature(column); })) {
      refuse("no column is left as a feature", "a table needs one beside its label, its target and ignored columns");
    }
  }

  static bool is_feature(const CsvColumn& column) {
    return column.role == ColumnRole::number || column.role == ColumnRole::category;
  }

  bool is_missing(std::string_view text) const {
    return std::ranges::find(options_.missing_values, text) != options_.missing_values.end();
  }

  void add_row() {
    const auto fields = records_.fields();
    if (fields.size() != columns_.size()) {
      refuse(fmt::format("line {} has {} values, the first line {}", records_.line(), fields.size(), columns_.size()),
             fmt::format("put a value that holds '{}' into quotes", options_.separator));
    }
    if (options_.missing == MissingValues::rows_dropped) {
      for (std::size_t i = 0; i < fields.size(); ++i) {
        if (columns_[i].role == ColumnRole::ignored || !is_missing(fields[i])) continue;
        ++rows_dropped_;
        return;
      }
    }
    for (std::size_t i = 0; i < fields.size(); ++i) add(columns_[i], fields[i]);
    ++rows_;
  }

  void add(CsvColumn& column, std::string_view text) {
    if (column.role == ColumnRole::ignored) return;
    const bool missing = is_missing(text);
    if (missing && options_.missing == MissingValues::refused) {
      refuse_value(column, fmt::format("a missing value, \"{}\"", text),
                   ".missing = MissingValues::rows_dropped leaves such rows out, filled_by_mean fills numbers; where it is no "
                   "missing value, set .missing_values");
    }
    if (missing && column.role != ColumnRole::number) {
      refuse_value(column, fmt::format("a missing value, \"{}\", in a column that has no mean", text),
                   "leave such rows out by .missing = MissingValues::rows_dropped");
    }
    if (column.role == ColumnRole::category || column.role == ColumnRole::label) {
      column.categories.add(text);
    } else {
      column.numbers.push_back(missing ? no_number : checked_number(column, text));
    }
  }

  double checked_number(const CsvColumn& column, std::string_view text) const {
    const auto number = number_in(text, options_.decimal);
    if (!number) {
      const char other = options_.decimal == '.' ? ',' : '.';
      const std::string decimal =
          number_in(text, other) ? fmt::format("where {} stands before a fraction, set .decimal = '{}'; ", other, other) : "";
      refuse_value(
          column, fmt::format("\"{}\" is no number", text.substr(0, 60)),
          fmt::format("{0}if its values are names, set .categories = {{\"{1}\"}}; leave it out by .ignored = {{\"{1}\"}}",
                      decimal, column.name));
    }
    if (!(std::abs(*number) <= std::numeric_limits<float>::max())) {
      refuse_value(column, fmt::format("\"{}\" is not finite as a float", text.substr(0, 60)),
                   "if it marks a missing value, add it to .missing_values");
    }
    return *number;
  }

  void require_rows() const {
    if (rows_ > 0) return;
    refuse(rows_dropped_ > 0 ? fmt::format("each of the {} rows has a missing value: none is left", rows_dropped_)
                             : "the file holds no row but the first line",
           rows_dropped_ > 0 ? "leave the columns that miss values out by .ignored"
                             : "where that is a row and no header, set .header = false");
  }

  void finish(CsvColumn& column) const {
    if (column.role == ColumnRole::label && column.categories.holds_a_fraction()) {
      refuse(fmt::format("the column \"{}\" holds fractions, which are no classes", column.name),
             fmt::format("for numbers to predict set .target = \"{}\"", column.name));
    }
    if (column.role != ColumnRole::number) return;
    const auto misses = [](double number) { return std::isnan(number); };
    const std::int64_t count = rows_ - std::ranges::count_if(column.numbers, misses);
    if (count == rows_) return;
    if (count == 0) {
      refuse(fmt::format("the column \"{}\" has no values to take the mean of", column.name), "leave it out by .ignored");
    }
    const double first = *std::ranges::find_if_not(column.numbers, misses);
    double sum = 0;  // of differences from the first value, which keeps precision for large numbers
    for (const double number : column.numbers) sum += misses(number) ? 0 : number - first;
    std::ranges::replace_if(column.numbers, misses, first + sum / static_cast<double>(count));
  }

  // The names of a column's values: from the column itself, or from `like`.
  std::vector<std::string> names_of(const CsvColumn& column) const {
    if (like_ == nullptr) return column.categories.names();
    if (column.role == ColumnRole::label) return like_->class_names();
    const auto first = std::ranges::find(like_->columns(), column.name, &TableColumn::name);
    if (first == like_->columns().end() || first->categories.empty()) {
      refuse(fmt::format("the first table has no categories of a column \"{}\"", column.name),
             "give both files the same .categories");
    }
    return first->categories;
  }

  std::vector<std::int32_t> places_of(const CsvColumn& column, const std::vector<std::string>& names) const {
    std::string unknown;
    auto places = column.categories.places(names, unknown);
    if (!places) {
      refuse(fmt::format("the column \"{}\" holds \"{}\", which this column of the first table does not have", column.name,
                         unknown),
             "read both tables from one file, or leave such rows out");
    }
    return *std::move(places);
  }

  // Everything but the features: labels, targets, columns and names.
  TableContent described() {
    TableContent content;
    for (CsvColumn& column : columns_) {
      if (column.role == ColumnRole::target) content.targets = floats_of(column.numbers);
      if (column.role == ColumnRole::number) content.columns.push_back({.name = column.name});
      if (column.role == ColumnRole::label) {
        content.class_names = names_of(column);
        content.labels = places_of(column, content.class_names);
      }
      if (column.role == ColumnRole::category) {
        content.columns.push_back({.name = column.name, .categories = names_of(column)});
        const std::size_t count = content.columns.back().categories.size();
        if (count > most_categories) {
          refuse(fmt::format("the column \"{}\" has {} different values, more than {} categories", column.name, count,
                             most_categories),
                 "leave it out by .ignored");
        }
      }
    }
    if (like_ != nullptr && content.columns != like_->columns()) {
      refuse("the features are not those of the first table", "name the same columns, in the same order");
    }
    content.feature_names = names_of_features(content.columns);
    return content;
  }

  TableContent content() {
    TableContent content = described();
    const std::size_t width = content.feature_names.size();
    content.features.resize(static_cast<std::size_t>(rows_) * width);
    const bool is_rounded = std::ranges::any_of(columns_, [](const CsvColumn& column) {
      return column.role == ColumnRole::number && !std::ranges::all_of(column.numbers, is_float);
    });
    if (is_rounded) content.unrounded.resize(content.features.size());
    const auto set = [&](std::size_t at, double number) {
      content.features[at] = static_cast<float>(number);
      if (is_rounded) content.unrounded[at] = number;
    };
    std::size_t first = 0;  // index of the column's first feature
    auto of_feature = content.columns.begin();
    for (CsvColumn& column : columns_) {
      if (!is_feature(column)) continue;
      const std::vector<std::string>& categories = (of_feature++)->categories;
      const auto places = column.role == ColumnRole::category ? places_of(column, categories) : std::vector<std::int32_t>();
      for (std::size_t row = 0; row < static_cast<std::size_t>(rows_); ++row) {
        const std::size_t place = first + row * width;
        if (places.empty()) {
          set(place, column.numbers[row]);
        } else {
          set(place + static_cast<std::size_t>(places[row]), 1);
        }
      }
      first += std::max<std::size_t>(1, categories.size());
      column.numbers = {};
    }
    return content;
  }

  const Location& path_;
  const CsvOptions& options_;
  const Table* like_;  // null: no other table
  CsvRecords records_;
  std::vector<CsvColumn> columns_;
  std::int64_t rows_ = 0;
  std::int64_t rows_dropped_ = 0;
};

Table read_table(const Location& path, const CsvOptions& options, const Table* like) {
  require(options.label.empty() || options.target.empty(), "a table has a label, {}, or a target, {}, not both", options.label,
          options.target);
  require(options.decimal == '.' || options.decimal == ',', "the decimal mark is '.' or ',', not '{}'", options.decimal);
  const auto file = open_file(path);
  const std::shared_ptr<const std::byte> content = file->map();
  const std::string_view text(reinterpret_cast<const char*>(content.get()), file->size());
  return CsvReading(text, path, options, like).read();
}

}  // namespace

Table read_csv(const Location& path, const CsvOptions& options) { return read_table(path, options, nullptr); }

Table read_csv(const Location& path, const CsvOptions& options, const Table& like) { return read_table(path, options, &like); }

}  // namespace trireme::data
