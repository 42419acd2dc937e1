#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "data/tables/csv_columns.hpp"

namespace trireme::data {

// What the rows of a file say of its columns, as bytes for its index.
std::string summary_of(const CsvColumns& columns);

// Nothing where these bytes are none of such columns.
std::optional<CsvColumns> columns_in(std::string_view summary, std::int64_t rows, const CsvOptions& options,
                                     const std::string& path);

// A text that two options share if they read the same rows of a file.
std::string text_of_options(const CsvOptions& options);

}  // namespace trireme::data
