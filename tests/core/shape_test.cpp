#include "trireme/core/shape.hpp"

#include "catch.hpp"
#include "trireme/core/error.hpp"

using trireme::Error;
using trireme::Shape;

TEST_CASE("a shape counts dims, elements and rows") {
  const Shape shape{8, 256, 384};
  CHECK(shape.size() == 3);
  CHECK(shape.numel() == 8 * 256 * 384);
  CHECK(shape.rows() == 8 * 256);
  CHECK(shape[-1] == 384);
  CHECK(shape.str() == "[8, 256, 384]");
  CHECK(Shape{}.numel() == 1);
  CHECK(Shape{0, 4}.numel() == 0);
}

TEST_CASE("a shape refuses what no tensor can have") {
  CHECK_THROWS_AS((Shape{2, -1}), Error);
  CHECK_THROWS_AS((Shape{1, 1, 1, 1, 1, 1, 1}), Error);
  CHECK_THROWS_AS((Shape{2, 3}[2]), Error);
  CHECK_THROWS_AS((Shape{std::int64_t{1} << 40, std::int64_t{1} << 40}.numel()), Error);
  CHECK_THROWS_AS((Shape{std::int64_t{1} << 40, std::int64_t{1} << 40, 0}.rows()), Error);
}
