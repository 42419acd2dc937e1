#include "data/tables/csv_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace trireme::data {
namespace {

constexpr std::size_t most_categories = 1000;  // in a column; a column with more has names of rows, not categories

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

// The names of a column's values: from the column itself, or from `like`.
std::vector<std::string> names_of_values(const CsvColumns& columns, const CsvColumn& column, const CsvLike* like) {
  if (like == nullptr) return column.categories.names();
  if (column.role == ColumnRole::label) return like->class_names;
  const auto first = std::ranges::find(like->columns, column.name, &TableColumn::name);
  if (first == like->columns.end() || first->categories.empty()) {
    columns.refuse(fmt::format("the first table has no categories of a column \"{}\"", column.name),
                   "give both files the same .categories");
  }
  return first->categories;
}

double mean_of(const CsvColumns& columns, const CsvColumn& column) {
  if (column.numbers.count == 0) {
    columns.refuse(fmt::format("the column \"{}\" has no values to take the mean of", column.name), "leave it out by .ignored");
  }
  return column.numbers.mean();
}

}  // namespace

CsvLayout::CsvLayout(const CsvColumns& columns, const CsvLike* like) {
  std::size_t first = 0;
  for (const CsvColumn& column : columns.all()) {
    Part part{.is_feature = column.is_feature(), .has_categories = column.has_categories(), .first = first};
    if (column.role == ColumnRole::label) label_ = parts_.size();
    if (column.role == ColumnRole::target) target_ = parts_.size();
    if (column.role == ColumnRole::number) {
      part.mean = mean_of(columns, column);
      columns_.push_back({.name = column.name});
    }
    if (part.has_categories) add_categories(columns, column, like, part);
    if (part.is_feature) first += std::max<std::size_t>(1, columns_.back().categories.size());
    parts_.push_back(std::move(part));
  }
  if (like != nullptr && columns_ != like->columns) {
    columns.refuse("the features are not those of the first table", "name the same columns, in the same order");
  }
  feature_names_ = names_of_features(columns_);
}

void CsvLayout::add_categories(const CsvColumns& columns, const CsvColumn& column, const CsvLike* like, Part& part) {
  if (column.role == ColumnRole::label && column.categories.holds_a_fraction()) {
    columns.refuse(fmt::format("the column \"{}\" holds fractions, which are no classes", column.name),
                   fmt::format("for numbers to predict set .target = \"{}\"", column.name));
  }
  std::vector<std::string> names = names_of_values(columns, column, like);
  if (column.role == ColumnRole::category && names.size() > most_categories) {
    columns.refuse(fmt::format("the column \"{}\" has {} different values, more than {} categories", column.name, names.size(),
                               most_categories),
                   "leave it out by .ignored");
  }
  std::string unknown;
  auto places = column.categories.places(names, unknown);
  if (!places) {
    columns.refuse(
        fmt::format("the column \"{}\" holds \"{}\", which this column of the first table does not have", column.name, unknown),
        "read both tables from one file, or leave such rows out");
  }
  part.places = *std::move(places);
  if (part.is_feature) {
    columns_.push_back({.name = column.name, .categories = std::move(names)});
  } else {
    class_names_ = std::move(names);
  }
}

void CsvLayout::write(std::span<const CsvValue> values, std::span<double> features) const {
  std::ranges::fill(features, 0.0);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    if (!part.is_feature) continue;
    if (part.has_categories) {
      features[part.first + static_cast<std::size_t>(part.places[static_cast<std::size_t>(values[i].category)])] = 1;
    } else {
      features[part.first] = std::isnan(values[i].number) ? part.mean : values[i].number;
    }
  }
}

std::int32_t CsvLayout::class_of(std::span<const CsvValue> values) const {
  return parts_[*label_].places[static_cast<std::size_t>(values[*label_].category)];
}

// A missing value is its column's mean, from which it does not deviate. A category's feature is 1 in a part of the rows.
Standardization CsvLayout::standardization(const CsvColumns& columns) const {
  Standardization result{.mean = std::vector<double>(width()), .std = std::vector<double>(width())};
  const auto rows = static_cast<double>(columns.rows);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    const CsvColumn& column = columns.all()[i];
    if (!part.is_feature) continue;
    if (!part.has_categories) {
      result.mean[part.first] = part.mean;
      result.std[part.first] = std::sqrt(column.numbers.squares / rows);
      continue;
    }
    for (std::size_t value = 0; value < part.places.size(); ++value) {
      const std::size_t feature = part.first + static_cast<std::size_t>(part.places[value]);
      result.mean[feature] += static_cast<double>(column.categories.counts()[value]);
    }
  }
  std::size_t feature = 0;
  for (const TableColumn& column : columns_) {
    for (std::size_t category = 0; category < column.categories.size(); ++category) {
      const double mean = result.mean[feature + category] /= rows;
      result.std[feature + category] = std::sqrt(mean * (1 - mean));
    }
    feature += std::max<std::size_t>(1, column.categories.size());
  }
  for (double& std : result.std) std = std > 0 ? std : 1;
  return result;
}

}  // namespace trireme::data
