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

// A column of a file: one numeric feature, or a one-hot feature for each of its categories.
struct TableColumn {
  std::string name;
  std::vector<std::string> categories = {};  // empty: a column of numbers

  bool operator==(const TableColumn&) const = default;
};

// The data from which a Table is constructed.
struct TableContent {
  std::vector<std::string> feature_names = {};
  std::vector<float> features = {};       // [rows, features]
  std::vector<std::int32_t> labels = {};  // [rows]: indices into class_names; or empty
  std::vector<std::string> class_names = {};
  std::vector<float> targets = {};        // [rows]: numbers to predict; or empty
  std::vector<double> unrounded = {};     // [rows, features]: the features before rounding to float; empty: same as features
  std::vector<TableColumn> columns = {};  // the columns of the features, in order; empty: each feature is a column of numbers
};

// Mean and standard deviation of each feature.
struct Standardization {
  std::vector<double> mean;  // [features]
  std::vector<double> std;   // [features]; 1 for a feature that is the same in all rows
};

struct SplitOptions {
  double test = 0.2;         // fraction of the rows in the test table, in (0, 1)
  std::uint64_t seed = 1;    // of the shuffled order
  bool shuffle = true;       // false: keeps the order, and the last rows are the test rows; for time series
  bool stratify = false;     // both tables get the same fraction of each class, and at least one row of it
  bool standardize = false;  // both tables are standardized by the mean and std of the training rows
};
struct TableSplit;

// Rows of features, each with a class or a number to predict. Comes from read_csv() or from your own TableContent. Copies are
// cheap: they share the rows, which are immutable.
//
//   const auto [training, test] = data::read_csv("iris.csv", {.label = "class"}).split({.test = 0.2, .standardize = true});
//   const data::Loader rows(training, run.batch());
class Table {
 public:
  // Throws Error for a table without rows or features, for sizes that don't match, and for values that are not finite.
  explicit Table(TableContent content);

  std::int64_t size() const noexcept { return size_; }  // rows
  std::int64_t num_features() const noexcept { return std::ssize(content_->feature_names); }
  std::int64_t num_classes() const noexcept { return std::ssize(content_->class_names); }  // 0 without labels
  const std::vector<std::string>& feature_names() const noexcept { return content_->feature_names; }
  const std::vector<std::string>& class_names() const noexcept { return content_->class_names; }
  const std::vector<TableColumn>& columns() const noexcept { return content_->columns; }

  // The spans are valid as long as the table or a copy of it lives. Calls on a temporary table do not compile.
  std::span<const float> features() const& noexcept { return content_->features; }     // [rows, features]
  std::span<const std::int32_t> labels() const& noexcept { return content_->labels; }  // [rows], or empty
  std::span<const float> targets() const& noexcept { return content_->targets; }       // [rows], or empty
  void features() const&& = delete;
  void labels() const&& = delete;
  void targets() const&& = delete;

  // Makes a batch of these rows. Throws Error for an index outside of [0, size()).
  Rows collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const;

  // Rows [begin, begin + count). Throws Error if some of them do not exist or count is below 1.
  Table part(std::int64_t begin, std::int64_t count) const;

  // Splits the rows into two tables, shuffled by the seed or in their order (.shuffle = false).
  TableSplit split(const SplitOptions& options = {}) const;

  // As scikit-learn's StandardScaler: standardization() is fit(), standardized() is transform(). The standard deviation
  // divides by the number of rows (ddof = 0). Both functions compute in double, from the values before they were rounded to
  // float.
  //
  //   const auto standardization = training.standardization();
  //   const auto later = data::read_csv("later.csv").standardized(standardization);
  Standardization standardization() const;
  Table standardized(const Standardization& standardization) const;

 private:
  Table rows(std::span<const std::int64_t> indices) const;
  std::vector<std::int64_t> rows_of_test(const SplitOptions& options) const;  // places in the shuffled order
  TableSplit shuffled_split(const SplitOptions& options) const;
  double value(std::int64_t at) const;  // of features()[at], unrounded if known

  std::int64_t size_;
  std::shared_ptr<const TableContent> content_;
};

struct TableSplit {
  Table training;
  Table test;
};

// A text that identifies the content: the size, and a digest of features, labels and targets in the order of the rows.
std::string content_of(const Table& table);

}  // namespace data
}  // namespace trireme
