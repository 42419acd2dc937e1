#include "trireme/data/read_csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "data/csv_column.hpp"
#include "data/csv_records.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/file.hpp"

namespace trireme::data {
namespace {

constexpr std::size_t most_categories = 1000;  // of a column; more are names of the rows rather than categories
constexpr std::size_t most_listed = 30;        // columns in a message
constexpr float no_number = std::numeric_limits<float>::quiet_NaN();  // until its column's mean is known

enum class ColumnRole : std::uint8_t { number, category, label, target, ignored };

struct CsvColumn {
  std::string name;
  ColumnRole role = ColumnRole::number;
  std::vector<float> numbers = {};  // of a number or target
  CsvCategories categories = {};    // of a category or label
};

class CsvReading {
 public:
  CsvReading(std::string_view content, const std::filesystem::path& path, const CsvOptions& options, const Table* like)
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
      columns_.push_back({.name = name.empty() ? fmt::format("Unnamed: {}", i) : std::move(name)});
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
    require(column.role == ColumnRole::number, "the column \"{}\" of {} has two uses; {} names it too", name, path_.string(),
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
      refuse("a column has no name, as the numbers of rows that pandas writes",
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
      refuse_value(column, fmt::format("a missing value, \"{}\", of which there is no mean to use", text),
                   "leave such rows out by .missing = MissingValues::rows_dropped");
    }
    if (column.role == ColumnRole::category || column.role == ColumnRole::label) {
      column.categories.add(text);
    } else {
      column.numbers.push_back(missing ? no_number : checked_number(column, text));
    }
  }

  float checked_number(const CsvColumn& column, std::string_view text) const {
    const auto number = number_in(text);
    if (!number) {
      refuse_value(column, fmt::format("\"{}\" is no number", text.substr(0, 60)),
                   fmt::format("if its values are names, set .categories = {{\"{0}\"}}; leave it out by .ignored = {{\"{0}\"}}",
                               column.name));
    }
    if (!(std::abs(*number) <= std::numeric_limits<float>::max())) {
      refuse_value(column, fmt::format("\"{}\" is no finite number of a float", text.substr(0, 60)),
                   "values that are missing are named by .missing_values");
    }
    return static_cast<float>(*number);
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
    double sum = 0;
    std::int64_t count = 0;
    for (const float number : column.numbers) {
      if (std::isnan(number)) continue;
      sum += static_cast<double>(number);
      ++count;
    }
    if (count == rows_) return;
    if (count == 0) {
      refuse(fmt::format("the column \"{}\" has no values, of which there is no mean", column.name),
             "leave it out by .ignored");
    }
    const auto mean = static_cast<float>(sum / static_cast<double>(count));
    std::ranges::replace_if(
        column.numbers, [](float number) { return std::isnan(number); }, mean);
  }

  // The names of a column's values: its own, or those that it has in the table that it has to be like.
  std::vector<std::string> names_of(const CsvColumn& column) const {
    if (like_ == nullptr) return column.categories.names();
    if (column.role == ColumnRole::label) return like_->class_names();
    std::vector<std::string> names;
    const std::string prefix = column.name + "_";
    for (const std::string& feature : like_->feature_names()) {
      const bool is_column = std::ranges::find(columns_, feature, &CsvColumn::name) != columns_.end();
      if (feature.starts_with(prefix) && !is_column) names.push_back(feature.substr(prefix.size()));
    }
    return names;
  }

  std::vector<std::int32_t> places_of(const CsvColumn& column, const std::vector<std::string>& names) const {
    std::string unknown;
    auto places = column.categories.places(names, unknown);
    if (!places) {
      refuse(fmt::format("the column \"{}\" holds \"{}\", which the first table does not have there", column.name, unknown),
             "read both from one file, or leave such rows out");
    }
    return *std::move(places);
  }

  TableContent content() {
    TableContent content;
    std::vector<std::vector<std::int32_t>> places(columns_.size());  // of the values of categories
    std::vector<std::size_t> widths;                                 // how many features a column becomes
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      CsvColumn& column = columns_[i];
      const std::size_t before = content.feature_names.size();
      if (column.role == ColumnRole::number) content.feature_names.push_back(column.name);
      if (column.role == ColumnRole::target) content.targets = std::move(column.numbers);
      if (column.role == ColumnRole::label) {
        content.class_names = names_of(column);
        content.labels = places_of(column, content.class_names);
      }
      if (column.role == ColumnRole::category) {
        const auto names = names_of(column);
        if (names.size() > most_categories) {
          refuse(fmt::format("the column \"{}\" has {} different values, more than {} categories", column.name, names.size(),
                             most_categories),
                 "leave it out by .ignored");
        }
        places[i] = places_of(column, names);
        for (const std::string& name : names) content.feature_names.push_back(column.name + "_" + name);
      }
      widths.push_back(content.feature_names.size() - before);
    }
    if (like_ != nullptr && content.feature_names != like_->feature_names()) {
      refuse("the features are not those of the first table", "name the same columns, in the same order");
    }
    const std::size_t width = content.feature_names.size();
    content.features.resize(static_cast<std::size_t>(rows_) * width);
    float* first = content.features.data();
    for (std::size_t i = 0; i < columns_.size(); first += widths[i], ++i) {
      for (std::size_t row = 0; is_feature(columns_[i]) && row < static_cast<std::size_t>(rows_); ++row) {
        if (columns_[i].role == ColumnRole::number) {
          first[row * width] = columns_[i].numbers[row];
        } else {
          first[row * width + static_cast<std::size_t>(places[i][row])] = 1;
        }
      }
      columns_[i] = {};
    }
    return content;
  }

  const std::filesystem::path& path_;
  const CsvOptions& options_;
  const Table* like_;  // null: no other table
  CsvRecords records_;
  std::vector<CsvColumn> columns_;
  std::int64_t rows_ = 0;
  std::int64_t rows_dropped_ = 0;
};

Table read_table(const std::filesystem::path& path, const CsvOptions& options, const Table* like) {
  require(options.label.empty() || options.target.empty(), "a table has a label, {}, or a target, {}, not both", options.label,
          options.target);
  const File file = File::open(path);
  const std::uint64_t bytes = file.size();
  const std::shared_ptr<const std::byte> content = bytes == 0 ? nullptr : file.map();
  const std::string_view text(reinterpret_cast<const char*>(content.get()), bytes);
  return CsvReading(text, path, options, like).read();
}

}  // namespace

Table read_csv(const std::filesystem::path& path, const CsvOptions& options) { return read_table(path, options, nullptr); }

Table read_csv(const std::filesystem::path& path, const CsvOptions& options, const Table& like) {
  return read_table(path, options, &like);
}

}  // namespace trireme::data
