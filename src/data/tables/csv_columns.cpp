#include "data/tables/csv_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "data/tables/number.hpp"
#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

constexpr std::size_t most_listed = 30;  // columns listed in a message
constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace

void CsvNumbers::add(double number) {
  if (count == 0) first = number;
  const double difference = number - first;
  const double before = count == 0 ? 0 : sum / static_cast<double>(count);
  sum += difference;
  ++count;
  squares += std::max(0.0, (difference - before) * (difference - sum / static_cast<double>(count)));
}

void CsvNumbers::add(const CsvNumbers& later) {
  if (later.count == 0) return;
  if (count == 0) {
    *this = later;
    return;
  }
  const auto here = static_cast<double>(count), there = static_cast<double>(later.count);
  const double difference = (later.first - first) + later.sum / there - sum / here;  // of the means
  squares += later.squares + difference * difference * (here * there / (here + there));
  sum += later.sum + (later.first - first) * there;
  count += later.count;
}

CsvColumns::CsvColumns(const std::vector<std::string>& names, const CsvOptions& options, std::string file)
    : path(std::move(file)), options_(options) {
  for (const std::string& name : names) {
    columns_.push_back({.name = name.empty() ? fmt::format("Unnamed: {}", columns_.size()) : name,
                        .categories = CsvCategories(options_.decimal)});
  }
  std::set<std::string_view> different;
  for (const CsvColumn& column : columns_) {
    if (different.insert(column.name).second) continue;
    refuse(fmt::format("two columns have the name \"{}\"", column.name), "rename one of them" + no_header_hint());
  }
  choose_roles();
}

void CsvColumns::refuse(std::string message, std::string hint) const {
  throw Error({.code = ErrorCode::corrupt_file, .message = std::move(message), .path = path, .hint = std::move(hint)});
}

void CsvColumns::refuse_value(std::int64_t line, const CsvColumn& column, std::string_view what, std::string hint) const {
  refuse(fmt::format("line {}, column \"{}\": {}", line, column.name, what), std::move(hint));
}

std::string CsvColumns::no_header_hint() const {
  const bool numbers =
      std::ranges::all_of(columns_, [](const CsvColumn& column) { return number_in(column.name).has_value(); });
  return numbers && options_.header ? "; where the first line is a row and no header, set .header = false" : "";
}

CsvColumn& CsvColumns::column_of(const std::string& name, const char* option) {
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
       .path = path,
       .had = fmt::format("the columns {}", fmt::join(names, ", ")),
       .hint = one ? "is the separator another one? Set .separator = ';'" : "name one of the columns" + no_header_hint()});
}

void CsvColumns::choose(const std::string& name, ColumnRole role, const char* option) {
  CsvColumn& column = column_of(name, option);
  require(column.role == ColumnRole::number, "the column \"{}\" of {} has two roles; {} names it too", name, path, option);
  column.role = role;
}

void CsvColumns::choose_roles() {
  if (!options_.label.empty()) choose(options_.label, ColumnRole::label, ".label");
  if (!options_.target.empty()) choose(options_.target, ColumnRole::target, ".target");
  for (const std::string& name : options_.categories) choose(name, ColumnRole::category, ".categories");
  for (const std::string& name : options_.ignored) choose(name, ColumnRole::ignored, ".ignored");
  for (const CsvColumn& column : columns_) {
    if (column.role != ColumnRole::number || !column.name.starts_with("Unnamed: ")) continue;
    refuse("a column has no name; pandas writes row numbers like this",
           fmt::format("leave it out: .ignored = {{\"{}\"}}, or name it in the file", column.name));
  }
  if (std::ranges::none_of(columns_, &CsvColumn::is_feature)) {
    refuse("no column is left as a feature", "a table needs one beside its label, its target and ignored columns");
  }
}

bool CsvColumns::is_missing(std::string_view text) const {
  return std::ranges::find(options_.missing_values, text) != options_.missing_values.end();
}

bool CsvColumns::is_row(const CsvRecords& record) const {
  const auto fields = record.fields();
  if (fields.size() != columns_.size()) {
    refuse(fmt::format("line {} has {} values, the first line {}", record.line(), fields.size(), columns_.size()),
           fmt::format("put a value that holds '{}' into quotes", options_.separator));
  }
  if (options_.missing != MissingValues::rows_dropped) return true;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (columns_[i].role != ColumnRole::ignored && is_missing(fields[i])) return false;
  }
  return true;
}

void CsvColumns::parse(const CsvRecords& record, std::vector<CsvValue>& values) const {
  values.assign(columns_.size(), {});
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const CsvColumn& column = columns_[i];
    if (column.role == ColumnRole::ignored) continue;
    const std::string_view text = record.fields()[i];
    const bool missing = is_missing(text);
    if (missing && options_.missing == MissingValues::refused) {
      refuse_value(record.line(), column, fmt::format("a missing value, \"{}\"", text),
                   ".missing = MissingValues::rows_dropped leaves such rows out, filled_by_mean fills numbers; where it is no "
                   "missing value, set .missing_values");
    }
    if (missing && column.role != ColumnRole::number) {
      refuse_value(record.line(), column, fmt::format("a missing value, \"{}\", in a column that has no mean", text),
                   "leave such rows out by .missing = MissingValues::rows_dropped");
    }
    if (column.has_categories()) {
      values[i].text = text;
    } else {
      values[i].number = missing ? no_number : checked_number(column, text, record.line());
    }
  }
}

double CsvColumns::checked_number(const CsvColumn& column, std::string_view text, std::int64_t line) const {
  const auto number = number_in(text, options_.decimal);
  if (!number) {
    const char other = options_.decimal == '.' ? ',' : '.';
    const std::string decimal =
        number_in(text, other) ? fmt::format("where {} stands before a fraction, set .decimal = '{}'; ", other, other) : "";
    refuse_value(
        line, column, fmt::format("\"{}\" is no number", text.substr(0, 60)),
        fmt::format("{0}if its values are names, set .categories = {{\"{1}\"}}; leave it out by .ignored = {{\"{1}\"}}",
                    decimal, column.name));
  }
  if (!(std::abs(*number) <= std::numeric_limits<float>::max())) {
    refuse_value(line, column, fmt::format("\"{}\" is not finite as a float", text.substr(0, 60)),
                 "if it marks a missing value, add it to .missing_values");
  }
  return *number;
}

void CsvColumns::refuse_many_categories(const CsvColumn& column, std::int64_t most) const {
  refuse(fmt::format("the column \"{}\" has more than {} different values, which are kept in memory", column.name, most),
         "leave it out by .ignored; numbers to predict are a .target");
}

void CsvColumns::learn(std::vector<CsvValue>& values, std::int64_t most_categories) {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    CsvColumn& column = columns_[i];
    if (column.has_categories()) {
      values[i].category = column.categories.add(values[i].text);
      if (column.categories.size() <= most_categories) continue;
      refuse_many_categories(column, most_categories);
    } else if (column.role != ColumnRole::ignored && !std::isnan(values[i].number)) {
      column.numbers.add(values[i].number);
    }
  }
  ++rows;
}

void CsvColumns::learn(const CsvColumns& later) {
  if (!std::ranges::equal(columns_, later.columns_, {}, &CsvColumn::name, &CsvColumn::name)) {
    later.refuse("the columns are not those of the first file, " + path, "the files of a dataset have one header");
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const CsvCategories& categories = later.columns_[i].categories;
    const std::vector<std::string_view> values = categories.values();
    for (std::size_t value = 0; value < values.size(); ++value) {
      columns_[i].categories.add(values[value], categories.counts()[value]);
    }
    columns_[i].numbers.add(later.columns_[i].numbers);
  }
  rows += later.rows;
  rows_dropped += later.rows_dropped;
}

bool CsvColumns::find(std::vector<CsvValue>& values) const {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!columns_[i].has_categories()) continue;
    const auto category = columns_[i].categories.number_of(values[i].text);
    if (!category) return false;
    values[i].category = *category;
  }
  return true;
}

void CsvColumns::require_rows() const {
  if (rows > 0) return;
  refuse(rows_dropped > 0 ? fmt::format("each of the {} rows has a missing value: none is left", rows_dropped)
                          : "the file holds no row but the first line",
         rows_dropped > 0 ? "leave the columns that miss values out by .ignored"
                          : "where that is a row and no header, set .header = false");
}

void check_csv_options(const CsvOptions& options) {
  require(options.label.empty() || options.target.empty(), "a table has a label, {}, or a target, {}, not both", options.label,
          options.target);
  require(options.decimal == '.' || options.decimal == ',', "the decimal mark is '.' or ',', not '{}'", options.decimal);
}

CsvColumns learn_csv(const RangedFile& file, const CsvOptions& options, std::int64_t most_categories, const OnCsvRow& on_row) {
  CsvFile records(file, options.separator);
  for (std::int64_t line = 0; line < options.skipped_lines; ++line) records.skip_line();
  bool is_there = records.next();
  if (!is_there) {
    throw Error({.code = ErrorCode::corrupt_file,
                 .message = "the file holds no lines",
                 .path = file.location().string(),
                 .hint = "a table is a line for each row"});
  }
  std::vector<std::string> names;
  for (const std::string_view field : records.record().fields()) {
    names.push_back(options.header ? std::string(field) : fmt::format("{}", names.size()));
  }
  CsvColumns columns(names, options, file.location().string());
  if (options.header) is_there = records.next();
  std::vector<CsvValue> values;
  for (; is_there; is_there = records.next()) {
    if (!columns.is_row(records.record())) {
      ++columns.rows_dropped;
      continue;
    }
    columns.parse(records.record(), values);
    columns.learn(values, most_categories);
    on_row(columns, values, records.record().byte());
  }
  return columns;
}

}  // namespace trireme::data
