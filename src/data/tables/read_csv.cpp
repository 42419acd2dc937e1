#include "trireme/data/tables/read_csv.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "data/sources/ranged_file.hpp"
#include "data/tables/csv_layout.hpp"

namespace trireme::data {
namespace {

// The values of a column in all rows: numbers, or categories.
struct KeptColumn {
  std::vector<double> numbers = {};
  std::vector<std::int32_t> categories = {};
};

void keep(const std::vector<CsvColumn>& columns, std::span<const CsvValue> values, std::vector<KeptColumn>& kept) {
  kept.resize(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].has_categories()) {
      kept[i].categories.push_back(values[i].category);
    } else if (columns[i].role != ColumnRole::ignored) {
      kept[i].numbers.push_back(values[i].number);
    }
  }
}

bool is_float(double number) { return static_cast<double>(static_cast<float>(number)) == number; }

// Whether some feature is not the number of the file, but is rounded to float.
bool rounds(const std::vector<CsvColumn>& columns, const std::vector<KeptColumn>& kept) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].role != ColumnRole::number) continue;
    const double mean = columns[i].numbers.mean();
    const auto is_exact = [&](double number) { return is_float(std::isnan(number) ? mean : number); };
    if (!std::ranges::all_of(kept[i].numbers, is_exact)) return true;
  }
  return false;
}

TableContent content_of_rows(const CsvColumns& columns, const CsvLayout& layout, const std::vector<KeptColumn>& kept) {
  TableContent content{
      .feature_names = layout.feature_names(), .class_names = layout.class_names(), .columns = layout.columns()};
  const auto rows = static_cast<std::size_t>(columns.rows);
  const std::size_t width = layout.width();
  content.features.resize(rows * width);
  if (rounds(columns.all(), kept)) content.unrounded.resize(rows * width);
  std::vector<CsvValue> values(kept.size());
  std::vector<double> features(width);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (!kept[i].numbers.empty()) values[i].number = kept[i].numbers[row];
      if (!kept[i].categories.empty()) values[i].category = kept[i].categories[row];
    }
    layout.write(values, features);
    for (std::size_t i = 0; i < width; ++i) content.features[row * width + i] = static_cast<float>(features[i]);
    if (!content.unrounded.empty())
      std::ranges::copy(features, content.unrounded.begin() + static_cast<std::ptrdiff_t>(row * width));
    if (layout.label()) content.labels.push_back(layout.class_of(values));
    if (layout.target()) content.targets.push_back(static_cast<float>(values[*layout.target()].number));
  }
  return content;
}

Table read_table(const Location& path, const CsvOptions& options, const CsvLike* like) {
  check_csv_options(options);
  std::vector<KeptColumn> kept;
  const CsvColumns columns =
      learn_csv(RangedFile(path), options, any_number_of_categories,
                [&](const CsvColumns& of, std::span<const CsvValue> values, std::uint64_t) { keep(of.all(), values, kept); });
  columns.require_rows();
  const CsvLayout layout(columns, like);
  return Table(content_of_rows(columns, layout, kept));
}

}  // namespace

Table read_csv(const Location& path, const CsvOptions& options) { return read_table(path, options, nullptr); }

Table read_csv(const Location& path, const CsvOptions& options, const Table& like) {
  const CsvLike of_first{.columns = like.columns(), .class_names = like.class_names()};
  return read_table(path, options, &of_first);
}

}  // namespace trireme::data
