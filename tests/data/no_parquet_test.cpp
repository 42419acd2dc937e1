#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/shards/parquet_rows.hpp"

using namespace trireme;

TEST_CASE("without Apache Arrow a Parquet file is an error that says what to do") {
  const tests::TemporaryFolder folder;
  CHECK_THROWS_WITH(data::ParquetRows({folder.path() / "a.parquet"}), ContainsSubstring("this build has no Apache Arrow") &&
                                                                          ContainsSubstring("a.parquet") &&
                                                                          ContainsSubstring("pip install pyarrow"));
}
