#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/picture.hpp"

using namespace trireme;

TEST_CASE("without libpng a picture cannot be written and the error says what to do") {
  CHECK_THROWS_WITH(
      data::write_png("a.png", {.shape = {1, 1, 1}, .pixels = {0}}),
      ContainsSubstring("this build has no libpng") && ContainsSubstring("a.png") && ContainsSubstring("libpng-dev"));
}
