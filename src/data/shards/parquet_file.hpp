#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trireme/data/shards/parquet_rows.hpp"
#include "trireme/files/location.hpp"

namespace trireme::data {
namespace detail {

// A column of a decoded row group. Of the vectors those of its kind are filled; a row without a value has 0 or nothing there.
struct ParquetValues {
  std::vector<std::int64_t> integers = {};
  std::vector<double> numbers = {};
  std::string bytes = {};               // of all texts, one after the other
  std::vector<std::int64_t> ends = {};  // [rows]: of texts and lists
  std::vector<bool> nulls = {};         // [rows]; empty: none is null
};

struct ParquetGroup {
  std::int64_t rows = 0;
  std::vector<ParquetValues> columns = {};
  std::int64_t bytes = 0;  // of memory
};

}  // namespace detail

struct ParquetFooter {
  std::vector<ParquetColumn> columns = {};
  std::vector<std::string> others = {};  // columns of other kinds: "name: type"
  std::vector<std::int64_t> rows = {};   // of each row group
};

// Both throw Error{corrupt_file} with the file, or Error{not_available} in a build without Arrow.
ParquetFooter read_parquet_footer(const Location& file);
detail::ParquetGroup read_parquet_group(const Location& file, std::int64_t group, std::span<const ParquetColumn> columns);

}  // namespace trireme::data
