#include "catch.hpp"
#include "data/image_files.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/images/picture.hpp"
#include "trireme/data/images/read_image_folder.hpp"

using namespace trireme;

TEST_CASE("without libpng a picture cannot be written and the error says what to do") {
  CHECK_THROWS_WITH(
      data::write_png("a.png", {.shape = {1, 1, 1}, .pixels = {0}}),
      ContainsSubstring("this build has no libpng") && ContainsSubstring("a.png") && ContainsSubstring("libpng-dev"));
}

TEST_CASE("without libpng a PNG image is an error that says what to do") {
  const tests::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "class");
  tests::write_bytes(folder.path() / "class" / "a.png", tests::Bytes{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'});
  CHECK_THROWS_WITH(
      data::read_image_folder(folder.path(), {.height = 1, .width = 1}),
      ContainsSubstring("this build has no libpng") && ContainsSubstring("a.png") && ContainsSubstring("libpng-dev"));
}
