#include "trireme/ops/array/copy_strided.hpp"

#include <array>

#include "ops/compare.hpp"
#include "ops/strided_boxes.hpp"
#include "ops/threads.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

// Strided copies against plain loops.
using namespace trireme;
using namespace trireme::ops;

namespace {

template <typename T>
void check_boxes(std::uint32_t first_seed, int boxes, std::int64_t longest, bool sums) {
  for (int number = 0; number < boxes; ++number) {
    const RandomBox random = random_box(first_seed + static_cast<std::uint32_t>(number), longest, sums);
    CAPTURE(first_seed, number);
    const auto x = random_numbers<T>(random.x_elements, 1);
    for (const bool accumulate : {false, true}) {
      const auto before = random_numbers<T>(random.y_elements, 2);
      const Tensor<T> expected = copied_by_loops(random.box, x, before, accumulate);
      for (const int threads : {1, 3}) {
        Tensor<T> y = before.clone();
        with_threads(threads, [&] { copy_strided(random.box, x, y, accumulate); });
        require_identical(y, expected);
      }
    }
  }
}

}  // namespace

TEMPLATE_TEST_CASE("strided copies of random boxes", "", float, double, bfloat16, std::int32_t, std::int64_t) {
  check_boxes<TestType>(1, 60, 9, false);
  check_boxes<TestType>(1000, 3, 70, false);
}

TEMPLATE_TEST_CASE("strided sums of random boxes", "", float, double, float16, std::int64_t) {
  check_boxes<TestType>(2000, 60, 9, true);
  check_boxes<TestType>(3000, 3, 70, true);
}

TEST_CASE("sums are rounded once") {
  const auto x = Tensor<bfloat16>::full({1000}, bfloat16(1.0f));
  auto y = Tensor<bfloat16>::full({1}, bfloat16(24.0f));
  StridedCopy all;
  all.add({.extent = 1000, .from = 1, .to = 0});
  copy_strided(all, x, y, true);
  CHECK(static_cast<float>(y.data()[0]) == 1024);
}

TEST_CASE("nothing summed is zero, and an empty box leaves y as it is") {
  const Tensor<float> x({0});
  auto y = Tensor<float>::full({3}, 5);
  StridedCopy nothing;
  nothing.add({.extent = 3, .from = 0, .to = 1});
  nothing.add({.extent = 0, .from = 1, .to = 0});
  copy_strided(nothing, x, y, true);
  CHECK(as_doubles(y) == Doubles{5, 5, 5});
  copy_strided(nothing, x, y);
  CHECK(as_doubles(y) == Doubles{0, 0, 0});
  StridedCopy empty;
  empty.add({.extent = 0, .from = 1, .to = 1});
  empty.add({.extent = 100, .from = 7, .to = 9});
  y = Tensor<float>::full({3}, 5);
  copy_strided(empty, x, y);
  CHECK(as_doubles(y) == Doubles{5, 5, 5});
}

TEST_CASE("a box that leaves its tensors is refused") {
  const Tensor<float> x({6});
  Tensor<float> y({6});
  StridedCopy box;
  box.add({.extent = 4, .from = 2, .to = 1});
  CHECK_THROWS_WITH(copy_strided(box, x, y), "copy_strided: the box reaches from element 0 to 6 of x, which has 6");
  box.dims[0] = {.extent = 3, .from = 2, .to = -1};
  CHECK_THROWS_WITH(copy_strided(box, x, y), "copy_strided: the box reaches from element -2 to 0 of y, which has 6");
  box.to = 2;
  copy_strided(box, x, y);
  Tensor<float> overlapping = x.narrow(1, 3);
  CHECK_THROWS_WITH(copy_strided(box, x, overlapping), "copy_strided: x and y share memory");
  CHECK_THROWS_WITH(copy_strided(box, Tensor<float>(), y), "copy_strided: x is undefined");
  for (int i = 1; i < StridedCopy::max_dims; ++i) box.add({});
  CHECK_THROWS_WITH(box.add({}), "copy_strided: a box has at most 12 dims");
}
