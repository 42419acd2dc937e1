#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/file_system.hpp"

using namespace trireme;

TEST_CASE("without libcurl, OpenSSL and pugixml a location over the network is an error that says what to do") {
  for (const char* location : {"https://host/a.csv", "s3://bucket/a.csv", "webhdfs://host:1/a.csv"}) {
    CHECK_THROWS_WITH(open_file(location), ContainsSubstring("no locations over the network") && ContainsSubstring(location) &&
                                               ContainsSubstring("install lib"));
    CHECK_FALSE(is_there(location));
  }
}
