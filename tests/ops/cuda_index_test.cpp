#include "ops/cuda_compare.hpp"
#include "trireme/ops/index/index.hpp"

// Functions on indices on a GPU, against those of the CPU.
using namespace trireme;
using namespace trireme::ops;

TEMPLATE_TEST_CASE("functions on indices on the GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  const auto x = random_tensor<T>({3, 200, 50}, 1);
  const auto source = random_tensor<T>({3, 700, 50}, 2);
  const auto each = random_index(3 * 700 * 50, 200, 3).reshape({3, 700, 50});
  const auto rows = random_index(700, 200, 4);
  const auto x_there = x.template to<Cuda>();
  const auto source_there = source.template to<Cuda>();
  const auto each_there = each.to<Cuda>();
  const auto rows_there = rows.to<Cuda>();
  require_identical(gather(x_there, 1, each_there).template to<Cpu>(), gather(x, 1, each));
  require_identical(index_select(x_there, 1, rows_there).template to<Cpu>(), index_select(x, 1, rows));
  require_identical(scatter(x_there, 1, each_there, source_there).template to<Cpu>(), scatter(x, 1, each, source));
  for (const auto kind : {ScatterReduction::amax, ScatterReduction::amin}) {
    require_identical(scatter_reduce(x_there, 1, each_there, source_there, kind).template to<Cpu>(),
                      scatter_reduce(x, 1, each, source, kind));
  }
  require_same(scatter_add(x_there, 1, each_there, source_there), scatter_add(x, 1, each, source), 100);
  require_same(index_add(x_there, 1, rows_there, source_there), index_add(x, 1, rows, source), 100);
  require_identical(one_hot<T>(rows_there, 200).template to<Cpu>(), one_hot<T>(rows, 200));
}

TEST_CASE("on the GPU an index outside gives NaN and writes nothing") {
  const std::int64_t values[] = {0, 4, -1};
  const auto index = Tensor<std::int64_t, Cuda>::from({3}, values);
  const auto taken = index_select(Tensor<float, Cuda>::full({4, 2}, 1), 0, index).to<Cpu>();
  CHECK(taken.data()[0] == 1);
  CHECK(std::isnan(taken.data()[2]));
  CHECK(std::isnan(taken.data()[5]));
  const auto sums = index_add(Tensor<float, Cuda>::full({4}, 1), 0, index, Tensor<float, Cuda>::full({3}, 1)).to<Cpu>();
  require_close(sums, {2, 1, 1, 1}, 0);
}
