#include "data/shards/parquet_file.hpp"
#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

[[noreturn]] void refuse_parquet(const Location& path) {
  throw Error({.code = ErrorCode::not_available,
               .message = "this build has no Apache Arrow: a Parquet file cannot be read",
               .path = path.string(),
               .hint = "install libparquet-dev of Apache Arrow, or pip install pyarrow, and build again"});
}

}  // namespace

ParquetFooter read_parquet_footer(const Location& file) { refuse_parquet(file); }
detail::ParquetGroup read_parquet_group(const Location& file, std::int64_t, std::span<const ParquetColumn>) {
  refuse_parquet(file);
}

}  // namespace trireme::data
