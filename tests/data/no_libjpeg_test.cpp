#include "catch.hpp"
#include "data/image_files.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/images/read_image_folder.hpp"

using namespace trireme;

TEST_CASE("without libjpeg a JPEG image is an error that says what to do") {
  const tests::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "class");
  tests::write_bytes(folder.path() / "class" / "a.jpg", tests::Bytes{0xff, 0xd8, 0xff, 0xe0});
  CHECK_THROWS_WITH(
      data::read_image_folder(folder.path(), {.height = 1, .width = 1}),
      ContainsSubstring("this build has no libjpeg") && ContainsSubstring("a.jpg") && ContainsSubstring("libjpeg-dev"));
}
