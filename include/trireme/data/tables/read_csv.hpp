#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/tables/table.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

enum class MissingValues : std::uint8_t {
  refused,         // an Error that names the line and the column
  filled_by_mean,  // a number is the mean of its column over the whole file; others are refused
  rows_dropped,    // a row with a missing value is left out
};

// Columns are named by the header, and by their numbers "0", "1", ... where there is none.
struct CsvOptions {
  std::string label = {};                    // the column of classes: texts or whole numbers
  std::string target = {};                   // or that of numbers to predict
  std::vector<std::string> categories = {};  // columns of texts or numbers of which each value becomes a feature of 0 or 1
  std::vector<std::string> ignored = {};     // columns that are left out, as the number of a row
  char separator = ',';
  char decimal = '.';              // or ',', which then stands before the fraction of a number: 1,5
  std::int64_t skipped_lines = 0;  // at the start of the file
  bool header = true;              // the first line then names the columns
  MissingValues missing = MissingValues::refused;
  std::vector<std::string> missing_values = {"", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None"};
};

// A table of a file of comma-separated values (RFC 4180), UTF-8 with or without a byte order mark, lines that end in LF or
// CRLF:
//
//   const data::Table flowers = data::read_csv("iris.csv", {.label = "class"});
//   const data::Table houses = data::read_csv("houses.csv", {.target = "price", .categories = {"street"}, .ignored = {"id"}});
//
// All columns but the label, the target and those that are ignored are features, in their order. A feature is a number, unless
// it is one of the `categories`: a text elsewhere is an Error, so that neither a typing error nor a name becomes hundreds of
// features. A category column "street" becomes the features "street_gravel" and "street_paved", sorted by the value, as
// get_dummies of pandas names them. Where such a name is taken it gets a number: "street_paved_2". Table::columns() has the
// columns and their values.
//
// Classes are numbered from 0 in the order of their names, whole numbers in the order of their values; Table::class_names() has
// them. Whole numbers are compared by all of their digits. Features are rounded to float, and standardized as they were before.
// Blanks around values and empty lines don't count. A quoted value may hold separators, line ends and doubled quotes.
//
// Throws Error{corrupt_file} with path, line and column for what can't be read, also for a file that is packed or not a text,
// and Error{invalid_argument} for a column that does not exist. While it reads it takes up to five times the memory of floats.
Table read_csv(const Location& path, const CsvOptions& options = {});

// A second file of the same columns: classes and categories have the numbers that they have in the first table, `like`, others
// throw Error.
//
//   const data::Table training = data::read_csv("train.csv", options);
//   const data::Table test = data::read_csv("test.csv", options, training);
Table read_csv(const Location& path, const CsvOptions& options, const Table& like);

}  // namespace data
}  // namespace trireme
