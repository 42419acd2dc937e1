#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/sources/rows.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// A column of a file: one feature of numbers, or one of 0 or 1 for each of its categories.
struct TableColumn {
  std::string name;
  std::vector<std::string> categories = {};  // none: numbers

  bool operator==(const TableColumn&) const = default;
};

// What a Table is made of.
struct TableContent {
  std::vector<std::string> feature_names = {};
  std::vector<float> features = {};       // [rows, features]
  std::vector<std::int32_t> labels = {};  // [rows], each a number of class_names; or none
  std::vector<std::string> class_names = {};
  std::vector<float> targets = {};        // [rows]: numbers to predict; or none
  std::vector<double> unrounded = {};     // [rows, features]: what features were rounded from; none: they were not
  std::vector<TableColumn> columns = {};  // whose features they are, in this order; none: each is a column of numbers
};

// Mean and standard deviation of each feature.
struct Standardization {
  std::vector<double> mean;  // [features]
  std::vector<double> std;   // [features]; 1 for a feature that is the same in all rows
};

struct SplitOptions {
  double test = 0.2;         // which part of the rows, in (0, 1), goes to the test table
  std::uint64_t seed = 1;    // of the order in which they are drawn
  bool shuffle = true;       // false: the first rows train, the last ones test, in their order, as those of a series
  bool stratify = false;     // the same part of each class, at least one row to either table
  bool standardize = false;  // both tables get the standardization of the training rows
};
struct TableSplit;

// Rows of numbers, each with a class or a number to predict: of read_csv, or of your own numbers. A value: copies share the
// rows, which never change.
//
//   const auto [training, test] = data::read_csv("iris.csv", {.label = "class"}).split({.test = 0.2, .standardize = true});
//   const data::Loader rows(training, run.batch());
class Table {
 public:
  // Throws Error for a table without rows or features, for sizes that don't fit each other, and for values that are not finite.
  explicit Table(TableContent content);

  std::int64_t size() const noexcept { return size_; }  // rows
  std::int64_t num_features() const noexcept { return std::ssize(content_->feature_names); }
  std::int64_t num_classes() const noexcept { return std::ssize(content_->class_names); }  // 0 without labels
  const std::vector<std::string>& feature_names() const noexcept { return content_->feature_names; }
  const std::vector<std::string>& class_names() const noexcept { return content_->class_names; }
  const std::vector<TableColumn>& columns() const noexcept { return content_->columns; }

  // Not of a table that is gone before the loop over them starts.
  std::span<const float> features() const& noexcept { return content_->features; }     // [rows, features]
  std::span<const std::int32_t> labels() const& noexcept { return content_->labels; }  // [rows], or none
  std::span<const float> targets() const& noexcept { return content_->targets; }       // [rows], or none
  void features() const&& = delete;
  void labels() const&& = delete;
  void targets() const&& = delete;

  // These rows as a batch. An index that is not in [0, size()) throws Error.
  Rows collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const;

  // Rows [begin, begin + count), which have to exist; one at least.
  Table part(std::int64_t begin, std::int64_t count) const;

  // Two tables of other rows each, both in a shuffled order, which is a function of the seed, or in their own.
  TableSplit split(const SplitOptions& options = {}) const;

  // The same as scikit-learn's StandardScaler: fit() on the training rows, transform() of all. The deviation is that of these
  // rows, divided by their number. Computed in double, of numbers as they were before they became floats.
  //
  //   const auto standardization = training.standardization();
  //   const auto later = data::read_csv("later.csv").standardized(standardization);
  Standardization standardization() const;
  Table standardized(const Standardization& standardization) const;

 private:
  Table rows(std::span<const std::int64_t> indices) const;
  std::vector<std::int64_t> rows_of_test(const SplitOptions& options) const;  // by their places in the shuffled order
  TableSplit shuffled_split(const SplitOptions& options) const;
  double value(std::int64_t at) const;  // of a row's feature, as exactly as it is known

  std::int64_t size_;
  std::shared_ptr<const TableContent> content_;
};

struct TableSplit {
  Table training;
  Table test;
};

// In words that differ where the content does: the size, and a digest of features, labels and targets in the order of the rows.
std::string content_of(const Table& table);

}  // namespace data
}  // namespace trireme
