#include "ops/index/indexing_body.hpp"
#include "ops/team_compare.hpp"
#include "trireme/ops/index/index.hpp"

// The functions on indices of a GPU, run by the host, against those of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

Tensor<std::int64_t> index_below(const Shape& shape, std::int64_t below) {
  Tensor<std::int64_t> index(shape);
  std::mt19937 generator(5);
  for (auto& row : index.span()) row = static_cast<std::int64_t>(generator() % static_cast<std::uint32_t>(below));
  return index;
}

IndexingSizes sizes_of(const Indexing& indexing) {
  return {indexing.outer, indexing.rows, indexing.places, indexing.inner, indexing.shared};
}

}  // namespace

TEMPLATE_TEST_CASE("elements by their index, by threads", "", float, double, bfloat16, std::int64_t) {
  using T = TestType;
  const auto [shared, owners] = GENERATE(std::pair(false, 1), std::pair(true, 1), std::pair(false, 4), std::pair(true, 2));
  const Indexing indexing{.name = "index", .outer = 3, .rows = 6, .places = 10, .inner = 4, .shared = shared};
  const auto sizes = sizes_of(indexing);
  const auto index = index_below(shared ? Shape{10} : Shape{3, 10, 4}, 5);
  const auto table = random_tensor<T>({3, 6, 4}, 1, 9);
  const auto source = random_tensor<T>({3, 10, 4}, 2, 9);
  Tensor<T> expected = source.clone();
  const Tensor<T> y = source.clone();
  for (const bool accumulate : {true, false}) {
    gather(indexing, table, index, expected, accumulate);
    for (std::int64_t i = 0; i < y.numel(); ++i) GatherElements<T>{sizes, table.data(), index.data(), y.data(), accumulate}(i);
    require_identical(y, expected);
  }
  Tensor<T> put = table.clone();
  const Tensor<T> put_by_lines = table.clone();
  scatter(indexing, source, index, put);
  for (std::int64_t i = 0; i < 12 * owners; ++i)
    ScatterLine<false, T>{sizes, owners, source.data(), index.data(), put_by_lines.data()}(i);
  require_identical(put_by_lines, put);
  for (const auto kind : {ScatterReduction::amax, ScatterReduction::amin}) {
    Tensor<T> extremes = table.clone();
    const Tensor<T> extremes_by_lines = table.clone();
    scatter_extreme(kind, indexing, source, index, extremes);
    for (std::int64_t i = 0; i < 12 * owners; ++i) {
      ScatterExtremeLine<T>{
          sizes, owners, source.data(), index.data(), extremes_by_lines.data(), kind == ScatterReduction::amax}(i);
    }
    require_identical(extremes_by_lines, extremes);
  }
  if constexpr (std::is_same_v<T, Accumulate<T>>) {
    Tensor<T> sums = table.clone();
    const Tensor<T> sums_by_lines = table.clone();
    scatter_add(indexing, source, index, sums);
    for (std::int64_t i = 0; i < 12 * owners; ++i)
      ScatterLine<true, T>{sizes, owners, source.data(), index.data(), sums_by_lines.data()}(i);
    require_identical(sums_by_lines, sums);
  }
  Tensor<T> dy = table.clone();
  const Tensor<T> dy_by_lines = table.clone();
  Tensor<T> dsource = Tensor<T>::zeros(source.shape());
  const Tensor<T> dsource_by_lines = source.clone();
  scatter_backward(indexing, dy, index, dsource);
  for (std::int64_t i = 0; i < 12 * owners; ++i) {
    ScatterLineBackward<T>{sizes, owners, dy_by_lines.data(), index.data(), dsource_by_lines.data()}(i);
  }
  require_identical(dy_by_lines, dy);
  require_identical(dsource_by_lines, dsource);
}

TEST_CASE("few long lines have many owners") {
  CHECK(owners_of_line({.outer = 1, .rows = 50'000, .places = 9, .inner = 1, .shared = false}) == 8192);
  CHECK(owners_of_line({.outer = 2, .rows = 50'000, .places = 9, .inner = 100, .shared = true}) == 32);
  CHECK(owners_of_line({.outer = 1, .rows = 5, .places = 9, .inner = 1, .shared = true}) == 4);
  CHECK(owners_of_line({.outer = 1, .rows = 50, .places = 9, .inner = 8192, .shared = true}) == 1);
  CHECK(owners_of_line({.outer = 1, .rows = 0, .places = 0, .inner = 1, .shared = true}) == 1);
}

TEST_CASE("on a GPU an index outside the rows reads NaN and writes nothing") {
  const std::int64_t index[] = {-1, 1, 2};
  const IndexingSizes sizes{.outer = 1, .rows = 2, .places = 3, .inner = 1, .shared = false};
  const float x[] = {5, 6};
  float y[] = {0, 0, 0};
  std::int64_t whole[] = {7, 7, 7};
  const std::int64_t whole_x[] = {5, 6};
  for (std::int64_t i = 0; i < 3; ++i) {
    GatherElements<float>{sizes, x, index, y, false}(i);
    GatherElements<std::int64_t>{sizes, whole_x, index, whole, false}(i);
  }
  CHECK(std::isnan(y[0]));
  CHECK(y[1] == 6);
  CHECK(std::isnan(y[2]));
  CHECK((whole[0] == 0 && whole[1] == 6 && whole[2] == 0));
  const float source[] = {10, 20, 40};
  float table[] = {1, 2};
  ScatterLine<true, float>{sizes, 1, source, index, table}(0);
  CHECK((table[0] == 1 && table[1] == 22));
  float dsource[] = {9, 9, 9};
  ScatterLineBackward<float>{sizes, 1, table, index, dsource}(0);
  CHECK((dsource[0] == 0 && dsource[1] == 22 && dsource[2] == 0 && table[0] == 1 && table[1] == 0));
  std::int64_t wide[1];
  const std::int32_t narrow = -3;
  WidenIndex{&narrow, wide}(0);
  CHECK(wide[0] == -3);
}
