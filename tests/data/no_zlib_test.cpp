#include "catch.hpp"
#include "data/image_files.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/images/mnist.hpp"

using namespace trireme;

TEST_CASE("without zlib a packed file is an error that says what to do") {
  const tests::TemporaryFolder folder;
  const auto packed = folder.path() / "images.gz";
  tests::write_bytes(packed, tests::Bytes{0x1f, 0x8b, 8});
  CHECK_THROWS_WITH(data::read_mnist(packed, packed), ContainsSubstring("this build has no zlib") &&
                                                          ContainsSubstring(packed.string()) &&
                                                          ContainsSubstring("zlib1g-dev"));
}
