#include "ops/elementwise/transpose_body.hpp"
#include "ops/team_compare.hpp"
#include "trireme/ops/elementwise/transpose.hpp"

// The transpose of a GPU, run by teams of the host's threads, against that of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

template <int Width>
void check_runs(const TransposeSizes& sizes) {
  CAPTURE(Width, sizes.rows, sizes.columns, sizes.inner);
  const auto x = random_tensor<float>({sizes.outer, sizes.rows, sizes.middle, sizes.columns, sizes.inner}, 1);
  Tensor<float> expected(transposed_shape(x.shape(), 1, 3));
  transpose(x, 1, 3, expected);
  const Tensor<float> y(expected.shape());
  for (std::int64_t pack = 0; pack < x.numel() / Width; ++pack) MoveRuns<Width, float>{sizes, x.data(), y.data()}(pack);
  require_identical(y, expected);
}

void check_tiles(const TransposeSizes& sizes, int team_size) {
  CAPTURE(sizes.rows, sizes.columns, team_size);
  const auto x = random_tensor<float>({sizes.outer, sizes.rows, sizes.middle, sizes.columns}, 1);
  Tensor<float> expected(transposed_shape(x.shape(), 1, 3));
  transpose(x, 1, 3, expected);
  const Tensor<float> y(expected.shape());
  const MoveTile<float> body{sizes, x.data(), y.data()};
  MoveTile<float>::Memory memory;
  const std::int64_t tiles = sizes.outer * sizes.middle * body.row_tiles() * body.column_tiles();
  run_rows(team_size, tiles, [&](const device::HostTeam& team, std::int64_t tile) { body(team, tile, memory); });
  require_identical(y, expected);
}

}  // namespace

TEST_CASE("runs of a transpose by threads") {
  check_runs<4>({.outer = 2, .rows = 3, .middle = 5, .columns = 7, .inner = 8});
  check_runs<1>({.outer = 1, .rows = 4, .middle = 1, .columns = 9, .inner = 3});
}

TEST_CASE("tiles of a transpose by teams") {
  for (const int team_size : {1, 3}) {
    check_tiles({.outer = 2, .rows = 33, .middle = 3, .columns = 70, .inner = 1}, team_size);
    check_tiles({.outer = 1, .rows = 64, .middle = 1, .columns = 5, .inner = 1}, team_size);
    check_tiles({.outer = 3, .rows = 40, .middle = 1, .columns = 1, .inner = 1}, team_size);
    check_tiles({.outer = 3, .rows = 1, .middle = 2, .columns = 40, .inner = 1}, team_size);
  }
}
