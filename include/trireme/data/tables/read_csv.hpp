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
  refused,         // throws an Error that names the line and the column
  filled_by_mean,  // a missing number becomes the mean of its column over the whole file; a missing text is refused
  rows_dropped,    // leaves out rows with a missing value
};

// Columns have the names in the header. Without a header the columns are called "0", "1", ...
struct CsvOptions {
  std::string label = {};                    // the column with the classes: texts or whole numbers
  std::string target = {};                   // or, without a label, the column with the numbers to predict
  std::vector<std::string> categories = {};  // one-hot encoded columns, of texts or numbers
  std::vector<std::string> ignored = {};     // columns to leave out, for example row numbers
  char separator = ',';
  char decimal = '.';              // or ',' for numbers like 1,5
  std::int64_t skipped_lines = 0;  // at the start of the file
  bool header = true;              // whether the first line (after skipped_lines) has the column names
  MissingValues missing = MissingValues::refused;
  std::vector<std::string> missing_values = {"", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None"};
};

// Reads a file of comma-separated values (RFC 4180) into a table. The file is UTF-8, with or without a byte order mark; lines
// end in LF or CRLF.
//
//   const data::Table flowers = data::read_csv("iris.csv", {.label = "class"});
//   const data::Table houses = data::read_csv("houses.csv", {.target = "price", .categories = {"street"}, .ignored = {"id"}});
//
// All columns except the label, the target and the ignored columns are features, in the order of the file. Features are
// numbers; only columns named in `categories` may hold text, so that a typing error does not become hundreds of features. A
// category column is one-hot encoded and named as by pandas.get_dummies: "street" becomes "street_gravel" and "street_paved",
// sorted by value. If another column already has this name, a number is added: "street_paved_2". Table::columns() returns the
// columns and their categories.
//
// Classes are numbered from 0, sorted by name, or by value if all are whole numbers (all digits are compared, however many).
// Table::class_names() returns their names. Features are rounded to float; standardization uses the unrounded values. Blanks
// around values and empty lines are skipped. A quoted value may hold separators, line ends and doubled quotes.
//
// Throws Error{corrupt_file} with path, line and column for a value that can't be read, and for a compressed or binary file.
// Throws Error{invalid_argument} for a column that does not exist. Reading takes up to five times the memory of the features
// as float.
Table read_csv(const Location& path, const CsvOptions& options = {});

// Reads a second file with the same columns. Classes and categories get the same numbers as in the first table, `like`; a class
// or category that `like` does not have throws Error.
//
//   const data::Table training = data::read_csv("train.csv", options);
//   const data::Table test = data::read_csv("test.csv", options, training);
Table read_csv(const Location& path, const CsvOptions& options, const Table& like);

}  // namespace data
}  // namespace trireme
