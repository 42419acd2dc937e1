#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/sources/rows.hpp"
#include "trireme/data/tables/read_csv.hpp"
#include "trireme/data/tables/table.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

struct CsvRowsOptions {
  CsvOptions csv = {};
  int workers = 0;  // threads that index the files; 0: all threads of this rank
};

// The rows of CSV files that need not fit into memory, as a dataset for Loader. Rows, features, classes and errors are those of
// read_csv().
//
//   const data::CsvOptions csv{.label = "class", .categories = {"country"}};
//   const data::CsvRows rows(data::locations_of("clicks-{00..31}.csv"), {.csv = csv});
//   const data::Loader loader(rows.standardized(rows.standardization()), run.batch());  // x [batch, features], labels [batch]
//
// The constructor reads each file once: it finds the beginnings of rows, checks all values, and learns the categories, the
// classes and the means over all files. write_index() saves this beside the file, in x.csv.index; the index is used for as long
// as the file and CsvOptions are the same. A row takes one byte of memory. Local files are mapped; from other files up to 8
// neighbouring rows are read with one request. Copies are cheap. Several threads may read.
//
// Throws the errors of read_csv(). All files must have the same columns. Throws Error{corrupt_file} for a row of more than
// 1 GiB, and for a column of categories or classes with more than a million different values, which are kept in memory. What
// needs all rows at once is done by read_csv(): Table::split().
class CsvRows {
 public:
  explicit CsvRows(std::vector<Location> files, const CsvRowsOptions& options = {});

  // Files with the same columns, such as the test rows. Classes and categories get the same numbers as in `like`; a class or
  // category that `like` does not have throws Error.
  CsvRows(std::vector<Location> files, const CsvRowsOptions& options, const CsvRows& like);

  std::int64_t size() const;  // rows
  std::int64_t num_features() const { return std::ssize(feature_names()); }
  std::int64_t num_classes() const { return std::ssize(class_names()); }  // 0 without labels
  const std::vector<std::string>& feature_names() const;
  const std::vector<std::string>& class_names() const;
  const std::vector<TableColumn>& columns() const;
  const std::vector<Location>& files() const;

  // One row, x [1, features], and the batch of these rows, as by Table::collate(). Throws Error for an index outside of
  // [0, size()), and Error{corrupt_file} with file and byte where a file is not what it was.
  Rows at(std::int64_t index) const;
  Rows collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const;

  // Mean and standard deviation of each feature, in double, from the numbers in the files. Costs nothing: they were computed
  // when the files were indexed. standardized() returns the same rows with (x - mean) / std.
  Standardization standardization() const;
  CsvRows standardized(const Standardization& standardization) const;

  void write_index() const;  // for each file that has no valid index

  // A text that identifies the content, made from the files' sizes, beginnings and ends, the places of rows, the options and
  // the standardization.
  friend std::string content_of(const CsvRows& rows);

 private:
  struct State;
  CsvRows(std::vector<Location> files, const CsvRowsOptions& options, const CsvRows* like);

  std::shared_ptr<const State> state_;
  std::shared_ptr<const Standardization> standardization_;  // null: rows as in the files
};
std::string content_of(const CsvRows& rows);

}  // namespace data
}  // namespace trireme
