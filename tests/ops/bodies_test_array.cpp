#include "ops/array/copy_strided_body.hpp"
#include "ops/array/line_body.hpp"
#include "ops/array/triangle_body.hpp"
#include "ops/strided_boxes.hpp"
#include "ops/team_compare.hpp"
#include "trireme/ops/array/array.hpp"

// The copies of a GPU, run by teams of the host's threads, against those of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

// The words that elements move in, by threads or by teams where x and y have different orders. Returns whether teams did it.
template <typename Word>
bool move_as(const ArrangedCopy& copy, const void* x, void* y) {
  const int reading = reading_dim(copy);
  if (reading < 0) {
    const MoveWords<Word> body{copy, static_cast<const Word*>(x), static_cast<Word*>(y)};
    for (std::int64_t i = 0; i < copy.kept_count; ++i) body(i);
    return false;
  }
  const auto body = squares_of<Word>(copy, reading, x, y);
  typename MoveSquares<Word>::Memory memory;
  run_rows(3, body.tiles(), [&](const device::HostTeam& team, std::int64_t tile) { body(team, tile, memory); });
  return true;
}

template <typename T>
bool move_by_bodies(const StridedCopy& box, const Tensor<T>& x, const Tensor<T>& y) {
  ArrangedCopy copy = arrange(box);
  const T* from = x.data() + copy.from;
  T* to = y.data() + copy.to;
  const auto addresses = reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to);
  const int bytes = take_words(copy, sizeof(T), addresses % 16 == 0 ? 16 : sizeof(T));
  CAPTURE(bytes);
  switch (bytes) {
    case 1: return move_as<std::uint8_t>(copy, from, to);
    case 2: return move_as<std::uint16_t>(copy, from, to);
    case 4: return move_as<std::uint32_t>(copy, from, to);
    case 8: return move_as<std::uint64_t>(copy, from, to);
    default: return move_as<Pack<std::uint64_t, 2>>(copy, from, to);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("elements moved by threads and teams", "", float, double, bfloat16, bool) {
  int by_teams = 0;
  for (std::uint32_t seed = 1; seed < 60; ++seed) {
    const RandomBox random = random_box(seed, 40, false);
    if (arrange(random.box).kept_count > 20'000) continue;
    CAPTURE(seed);
    const auto x = random_numbers<TestType>(random.x_elements, 1);
    Tensor<TestType> expected = random_numbers<TestType>(random.y_elements, 2);
    const Tensor<TestType> y = expected.clone();
    copy_strided(random.box, x, expected);
    by_teams += move_by_bodies(random.box, x, y) ? 1 : 0;
    require_identical(y, expected);
  }
  CHECK(by_teams > 3);
  CHECK(by_teams < 40);
}

TEMPLATE_TEST_CASE("elements added by threads", "", float, double, float16, std::int32_t) {
  using T = TestType;
  for (std::uint32_t seed = 1; seed < 30; ++seed) {
    const RandomBox random = random_box(seed, 9, false);
    CAPTURE(seed);
    const auto x = random_numbers<T>(random.x_elements, 1);
    Tensor<T> expected = random_numbers<T>(random.y_elements, 2);
    const Tensor<T> y = expected.clone();
    copy_strided(random.box, x, expected, true);
    const ArrangedCopy copy = arrange(random.box);
    const AddStrided<T> body{copy, x.data() + copy.from, y.data() + copy.to};
    for (std::int64_t i = 0; i < copy.kept_count; ++i) body(i);
    require_identical(y, expected);
  }
}

TEMPLATE_TEST_CASE("elements summed by teams", "", float, double, bfloat16, std::int64_t) {
  using T = TestType;
  int sums = 0;
  for (std::uint32_t seed = 2000; seed < 2030; ++seed) {
    const RandomBox random = random_box(seed, 6, true);
    const ArrangedCopy copy = arrange(random.box);
    if (copy.summed_count == 1) continue;
    ++sums;
    CAPTURE(seed);
    const auto x = random_numbers<T>(random.x_elements, 1);
    for (const bool accumulate : {false, true}) {
      Tensor<T> expected = random_numbers<T>(random.y_elements, 2);
      const Tensor<T> y = expected.clone();
      const Tensor<T> alone = expected.clone();
      copy_strided(random.box, x, expected, accumulate);
      const SumStrided<T> body{copy, x.data() + copy.from, y.data() + copy.to, accumulate};
      run_rows(3, copy.kept_count, body);
      require_identical(y, expected);
      const SumStrided<T> by_one{copy, x.data() + copy.from, alone.data() + copy.to, accumulate};
      for (std::int64_t i = 0; i < copy.kept_count; ++i) by_one(device::LoneThread{}, i);
      require_identical(alone, expected);
    }
  }
  CHECK(sums > 5);
}

TEST_CASE("places beyond 32 bits") {
  const StridedCopy::Dim dims[] = {{.extent = 1'000'000, .from = 3, .to = 1'000'000},
                                   {.extent = 1'000'000, .from = -1, .to = 1}};
  const std::int64_t count = 1'000'000'000'000;
  const StridedPlace last = strided_place(dims, 2, count - 2, count);
  CHECK(last.from == 999'999 * 3 - 999'998);
  CHECK(last.to == count - 2);
  const StridedPlace near = strided_place(dims, 2, 1'000'001, 2'000'000'000);
  CHECK(near.to == 1'000'001);
  CHECK(near.from == 2);
}

TEST_CASE("triangles and lines by threads") {
  const auto x = arange<float>(30).reshape({2, 3, 5});
  const Tensor<float> y(x.shape());
  for (const std::int64_t diagonal : {-3, -1, 0, 2, 5}) {
    for (const bool upper : {false, true}) {
      const TakeTriangle<float> body{{.upper = upper, .rows = 3, .columns = 5, .diagonal = diagonal}, x.data(), y.data()};
      for (std::int64_t i = 0; i < x.numel(); ++i) body(i);
      require_identical(y, upper ? triu(x, diagonal) : tril(x, diagonal));
    }
  }
  const Tensor<bfloat16> line({9});
  for (std::int64_t i = 0; i < 9; ++i) FillLine<bfloat16>{linspace_line(-1, 3, 9), 9, line.data()}(i);
  require_identical(line, linspace<bfloat16>(-1, 3, 9));
}
