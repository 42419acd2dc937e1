#include <algorithm>
#include <numeric>

#include "ops/embedding/embedding_body.hpp"
#include "ops/embedding/sorted_index_body.hpp"
#include "ops/team_compare.hpp"
#include "trireme/ops/embedding/embedding.hpp"

// The embedding of a GPU, run by teams of the host's threads, against that of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

struct Sorted {
  std::vector<std::int32_t> keys, places;
};

Sorted keys_of(const Tensor<std::int32_t>& index, std::int64_t rows, std::int32_t padding) {
  const auto count = static_cast<std::size_t>(index.numel());
  Sorted sorted{std::vector<std::int32_t>(count), std::vector<std::int32_t>(count)};
  const KeysOfIndex body{index.data(), 0, rows, padding, sorted.keys.data(), sorted.places.data()};
  for (std::int64_t i = 0; i < index.numel(); ++i) body(i);
  return sorted;
}

Sorted sorted_by_teams(Sorted from, std::int64_t rows, int size) {
  const auto count = static_cast<std::int64_t>(from.keys.size());
  Sorted to = from;
  for (int shift = 0; (rows >> shift) > 0; shift += digit_bits) {
    const std::int64_t tiles = (count + sort_tile - 1) / sort_tile;
    std::vector<std::int32_t> digits(static_cast<std::size_t>((tiles + 1) * num_digits));
    const SortPass pass{.keys = from.keys.data(),
                        .places = from.places.data(),
                        .count = count,
                        .shift = shift,
                        .tile_digits = digits.data(),
                        .moved_keys = to.keys.data(),
                        .moved_places = to.places.data()};
    device::run_host_team(size, [&](const device::HostTeam& team) {
      for (std::int64_t tile = 0; tile < tiles; ++tile) CountDigits{pass}(team, tile);
      team.wait();
      PlaceDigits{pass, digits.data() + tiles * num_digits}(team);
      team.wait();
      for (std::int64_t tile = 0; tile < tiles; ++tile) MoveByDigit{pass}(team, tile);
    });
    std::swap(from, to);
  }
  return from;
}

// Some rows often, so that runs go over several chunks, some once, some never.
Tensor<std::int32_t> skewed_index(std::int64_t count, std::int64_t rows) {
  Tensor<std::int32_t> index({count});
  std::mt19937 generator(7);
  for (std::int32_t& row : index.span()) {
    const auto random = static_cast<std::int64_t>(generator());
    row = static_cast<std::int32_t>(random % 3 == 0 ? rows - 1 : random % 7 == 0 ? 2 % rows : random % rows);
  }
  return index;
}

template <int Width, typename T>
void check_backward(std::int64_t count, std::int64_t rows, std::int64_t width, std::int32_t padding) {
  CAPTURE(Width, count, rows, width, padding);
  const auto index = skewed_index(count, rows);
  const auto dy = random_tensor<T>({count, width}, 1);
  Tensor<T> expected = random_tensor<T>({rows, width}, 2);
  const Tensor<T> dweight = expected.clone();
  embedding_backward(index, dy, expected, true, padding < 0 ? std::nullopt : std::optional(padding));

  const Sorted sorted = sorted_by_teams(keys_of(index, rows, padding), rows, 3);
  const std::int64_t chunks = (count + gradient_chunk - 1) / gradient_chunk;
  const Tensor<T> continued({chunks, width});
  const ScatterRows<Width, T> body{sorted.keys.data(), sorted.places.data(), count, dy.data(), rows, width,
                                   dweight.data(),     continued.data()};
  for (std::int64_t i = 0; i < chunks * width / Width; ++i) body(i);
  for (std::int64_t i = 0; i < chunks * width / Width; ++i) ScatterContinuedRows<Width, T>{body}(i);
  require_close(dweight, as_doubles(expected), tolerance<T>(1e-4));
}

}  // namespace

TEST_CASE("an index sorted by teams keeps the order of equal rows") {
  for (const int size : {1, 3}) {
    for (const std::int64_t rows : {1, 255, 256, 70'000}) {
      for (const std::int64_t count : {1, 511, 512, 1300}) {
        CAPTURE(size, rows, count);
        const Sorted keys = keys_of(skewed_index(count, rows), rows, -1);
        const Sorted sorted = sorted_by_teams(keys, rows, size);
        std::vector<std::int32_t> expected = keys.places;
        std::ranges::stable_sort(expected, {}, [&](std::int32_t at) { return keys.keys[static_cast<std::size_t>(at)]; });
        CHECK(sorted.places == expected);
        CHECK(std::ranges::is_sorted(sorted.keys));
      }
    }
  }
}

TEST_CASE("an index outside the table and the padding become no row") {
  const std::int32_t values[] = {-1, 0, 4, 5, 1 << 30, 2};
  CHECK(keys_of(Tensor<std::int32_t>::from({6}, values), 5, 2).keys == std::vector<std::int32_t>{5, 0, 4, 5, 5, 5});
}

TEMPLATE_TEST_CASE("rows gathered by threads", "", float, double) {
  using T = TestType;
  const auto index = skewed_index(50, 9);
  const auto weight = random_tensor<T>({9, 12}, 1);
  Tensor<T> expected = random_tensor<T>({50, 12}, 2);
  const Tensor<T> y = expected.clone();
  for (const bool accumulate : {true, false}) {
    embedding(index, weight, expected, accumulate);
    for (std::int64_t i = 0; i < 50 * 3; ++i) GatherRows<4, T>{index.data(), weight.data(), 9, 12, y.data(), accumulate}(i);
    require_identical(y, expected);
  }
  const std::int32_t outside = 9;
  GatherRows<4, T>{&outside, weight.data(), 9, 12, y.data(), false}(0);
  CHECK(std::isnan(y.data()[0]));
}

TEMPLATE_TEST_CASE("the gradient of an embedding in sorted order", "", float, double) {
  for (const std::int64_t count : {1, 31, 32, 33, 700}) {
    check_backward<4, TestType>(count, 11, 8, -1);
    check_backward<1, TestType>(count, 300, 3, 2);
    check_backward<1, TestType>(count, 1, 3, -1);
  }
}
