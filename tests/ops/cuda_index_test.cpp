#include "ops/cuda_compare.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/index.hpp"
#include "trireme/autograd/record.hpp"
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

TEMPLATE_TEST_CASE("gradients of scatter_reduce and slice_scatter on the GPU", "", float, double, bfloat16) {
  using T = TestType;
  const auto results = [](auto device) {
    using D = decltype(device);
    const Tape tape;
    std::vector<Tensor<T>> found(4);
    // Few distinct values: several elements share a gradient.
    const auto few = [&](const Shape& shape, std::uint32_t seed) {
      auto values = random_tensor<T>(shape, seed, 2);
      for (T& value : values.span()) value = static_cast<T>(std::round(static_cast<Accumulate<T>>(value)));
      return watch(values.template to<D>(),
                   [&found, seed](const Tensor<T, D>& gradient) { found[seed] = gradient.template to<Cpu>(); });
    };
    const auto x = few({40, 30}, 1);
    const auto source = few({70, 30}, 2);
    const auto part = few({10, 30}, 3);
    const auto index = random_index(70 * 30, 40, 4).reshape({70, 30}).to<D>();
    const auto y = slice_scatter(scatter_reduce(x, 0, index, source, ScatterReduction::amax), part, 0, 5, 25, 2);
    found[0] = y.value().template to<Cpu>();
    y.backward(random_tensor<T>({40, 30}, 5).template to<D>());
    return found;
  };
  const auto here = results(Cpu{});
  const auto there = results(Cuda{});
  for (std::size_t i = 0; i < here.size(); ++i) require_close(there[i], as_doubles(here[i]), bound<T>());
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
