#include <filesystem>

#include "catch.hpp"
#include "data/image_files.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/images/read_image_folder.hpp"

using namespace trireme;

TEST_CASE("without libwebp a WebP image is an error that says what to do") {
  const tests::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "class");
  tests::write_bytes(folder.path() / "class" / "a.webp", tests::Bytes{'R', 'I', 'F', 'F', 0, 0, 0, 0, 'W', 'E', 'B', 'P'});
  CHECK_THROWS_WITH(
      data::read_image_folder(folder.path(), {.height = 1, .width = 1}),
      ContainsSubstring("this build has no libwebp") && ContainsSubstring("a.webp") && ContainsSubstring("libwebp-dev"));
}
