#include "trireme/core/shape.hpp"

#include "catch.hpp"
#include "trireme/core/error.hpp"

using trireme::Error;
using trireme::Shape;
using trireme::shape_for;

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

TEST_CASE("one dim of a shape may be what the others leave") {
  CHECK(shape_for(12, {-1, 4}) == Shape{3, 4});
  CHECK(shape_for(12, {2, -1, 3}) == Shape{2, 2, 3});
  CHECK(shape_for(12, {-1}) == Shape{12});
  CHECK(shape_for(0, {-1, 4}) == Shape{0, 4});
  CHECK(shape_for(1, {}) == Shape{});
  CHECK(shape_for(7, {2, 3}) == Shape{2, 3});  // nothing is left open: whoever takes it compares
  CHECK_THROWS_WITH(shape_for(12, {-1, 5}), "12 elements do not fill a shape [-1, 5]");
  CHECK_THROWS_WITH(shape_for(0, {-1, 0}), "0 elements do not fill a shape [-1, 0]");
  CHECK_THROWS_WITH(shape_for(12, {-1, -1}), "a shape's dims are 0 or more, got [1, -1]");
  CHECK_THROWS_AS(shape_for(12, {-2, 6}), Error);
}
