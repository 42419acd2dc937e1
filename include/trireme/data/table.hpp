#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/rows.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// What a Table is made of.
struct TableContent {
  std::vector<std::string> feature_names = {};
  std::vector<float> features = {};       // [rows, features]
  std::vector<std::int32_t> labels = {};  // [rows], each a number of class_names; or none
  std::vector<std::string> class_names = {};
  std::vector<float> targets = {};  // [rows]: numbers to predict; or none
};

// Mean and standard deviation of each feature.
struct Standardization {
  std::vector<double> mean;  // [features]
  std::vector<double> std;   // [features]; 1 for a feature that is the same in all rows
};

struct SplitOptions {
  double test = 0.2;         // which part of the rows, in (0, 1), goes to the test table
  std::uint64_t seed = 1;    // of the order in which they are drawn
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

  // Not of a table that is gone before the loop over them starts.
  std::span<const float> features() const& noexcept { return content_->features; }     // [rows, features]
  std::span<const std::int32_t> labels() const& noexcept { return content_->labels; }  // [rows], or none
  std::span<const float> targets() const& noexcept { return content_->targets; }       // [rows], or none
  void features() const&& = delete;
  void labels() const&& = delete;
  void targets() const&& = delete;

  // These rows as a batch. An index that is not in [0, size()) throws Error.
  Rows collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const;

  // Two tables of other rows each, both in a shuffled order, which is a function of the seed.
  TableSplit split(const SplitOptions& options = {}) const;

  // The same as scikit-learn's StandardScaler: fit() on the training rows, transform() of all.
  //
  //   const auto standardization = training.standardization();
  //   const auto later = data::read_csv("later.csv").standardized(standardization);
  Standardization standardization() const;
  Table standardized(const Standardization& standardization) const;

 private:
  Table rows(std::span<const std::int64_t> indices) const;
  std::vector<std::int64_t> rows_of_test(const SplitOptions& options) const;  // by their places in the shuffled order

  std::int64_t size_;
  std::shared_ptr<const TableContent> content_;
};

struct TableSplit {
  Table training;
  Table test;
};

}  // namespace data
}  // namespace trireme
