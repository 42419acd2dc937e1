#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/tables/csv_columns.hpp"
#include "trireme/data/tables/table.hpp"

namespace trireme::data {

// The columns and classes of another table.
struct CsvLike {
  const std::vector<TableColumn>& columns;
  const std::vector<std::string>& class_names;
};

// Where the values of a CSV file's rows are in a table. `like`: null, or the table whose classes and categories are taken.
class CsvLayout {
 public:
  CsvLayout(const CsvColumns& columns, const CsvLike* like);

  const std::vector<TableColumn>& columns() const { return columns_; }
  const std::vector<std::string>& feature_names() const { return feature_names_; }
  const std::vector<std::string>& class_names() const { return class_names_; }
  std::size_t width() const { return feature_names_.size(); }
  std::optional<std::size_t> label() const { return label_; }    // its column in the file
  std::optional<std::size_t> target() const { return target_; }  // its column in the file

  // The features of a row, [width()], of its values.
  void write(std::span<const CsvValue> values, std::span<double> features) const;
  std::int32_t class_of(std::span<const CsvValue> values) const;

  Standardization standardization(const CsvColumns& columns) const;

 private:
  struct Part {  // a column of the file
    bool is_feature;
    bool has_categories;
    std::size_t first = 0;                  // of its features
    double mean = 0;                        // fills missing values
    std::vector<std::int32_t> places = {};  // of its different values among its categories or classes
  };
  void add_categories(const CsvColumns& columns, const CsvColumn& column, const CsvLike* like, Part& part);

  std::vector<Part> parts_;
  std::vector<TableColumn> columns_;
  std::vector<std::string> feature_names_;
  std::vector<std::string> class_names_;
  std::optional<std::size_t> label_;
  std::optional<std::size_t> target_;
};

}  // namespace trireme::data
