#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/sources/rows.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

enum class ParquetKind : std::uint8_t {
  integer,   // also bool
  number,    // float and double
  text,      // texts and bytes
  integers,  // lists
  numbers,
};

struct ParquetColumn {
  std::string name;  // of a field in a struct "image.bytes"
  ParquetKind kind = ParquetKind::number;

  bool operator==(const ParquetColumn&) const = default;
};

struct ParquetOptions {
  std::vector<std::string> columns = {};              // only these are read; empty: all that have one of the kinds
  std::int64_t cached_bytes = std::int64_t{1} << 30;  // the most of decoded row groups in memory, beside the last one
  int workers = 0;                                    // threads that read the files' footers; 0: all threads of this rank
};

namespace detail {
struct ParquetGroup;
struct ParquetState;
}  // namespace detail

// A row. Its functions throw Error{invalid_argument} for a column that is not read or has another kind, and Error{corrupt_file}
// with file and row where there is no value.
class ParquetRow {
 public:
  std::string_view text(std::string_view column) const;  // valid as long as the row or a copy of it lives
  std::int64_t integer(std::string_view column) const;
  double number(std::string_view column) const;  // of an integer too
  std::span<const std::int64_t> integers(std::string_view column) const;
  std::span<const double> numbers(std::string_view column) const;
  bool is_null(std::string_view column) const;

 private:
  friend class ParquetRows;
  struct Cell;
  Cell cell(std::string_view column) const;
  Cell value(std::string_view column, ParquetKind kind) const;

  std::shared_ptr<const detail::ParquetState> state_;
  std::shared_ptr<const detail::ParquetGroup> group_;
  std::size_t group_index_ = 0;
  std::int64_t row_ = 0;
};

// The rows of Parquet files that need not fit into memory, as a dataset for Loader.
//
//   const data::ParquetRows rows(data::locations_of("part-{00..31}.parquet"), {.columns = {"text", "score"}});
//   rows.at(12'345).text("text"), rows.at(12'345).number("score")
//
// Needs Apache Arrow; a build without it throws Error{not_available}. The constructor reads each file's footer. at() decodes
// the row's group, of the read columns alone, and keeps the last groups. neighbours() is the size of the largest group: a
// shuffled Loader then reads up to twice LoaderOptions::blocks_at_once groups in turn, which should fit into cached_bytes.
// Several threads may call at().
//
// Throws Error{corrupt_file} with the file for damaged files, and for files whose columns differ from those of the first file.
class ParquetRows {
 public:
  explicit ParquetRows(std::vector<Location> files, const ParquetOptions& options = {});

  std::int64_t size() const;
  ParquetRow at(std::int64_t index) const;
  std::int64_t neighbours() const;
  const std::vector<ParquetColumn>& columns() const;  // that are read
  const std::vector<Location>& files() const;

  // A text that identifies the content, from the files' sizes, beginnings and ends, where their footers are.
  friend std::string content_of(const ParquetRows& rows);

 private:
  std::shared_ptr<const detail::ParquetState> state_;
};
std::string content_of(const ParquetRows& rows);

struct ParquetTableOptions {
  std::vector<std::string> features = {};  // columns of integers and numbers; empty: all of them but label and target
  std::string label = {};                  // a column of classes, from 0 on; empty: none
  std::string target = {};                 // a column of numbers to predict; empty: none
};

// Numeric columns of Parquet files as rows of a table, for Loader:
//
//   const data::ParquetTable table(data::ParquetRows(files), {.label = "class"});
//   const data::Loader loader(table, run.batch());  // x [batch, features], labels [batch]
class ParquetTable {
 public:
  // Throws Error for columns that the rows do not have or that are not numeric, and without features.
  explicit ParquetTable(ParquetRows rows, const ParquetTableOptions& options = {});

  std::int64_t size() const { return rows_.size(); }
  std::int64_t neighbours() const { return rows_.neighbours(); }
  const std::vector<std::string>& feature_names() const { return options_.features; }
  const ParquetRows& rows() const { return rows_; }

  Rows collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const;

 private:
  ParquetRows rows_;
  ParquetTableOptions options_;
};
std::string content_of(const ParquetTable& table);

}  // namespace data
}  // namespace trireme
