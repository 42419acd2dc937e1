#include <algorithm>

#include "ops/cuda_compare.hpp"
#include "trireme/ops/embedding/embedding.hpp"

// The embedding of a GPU against that of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

// A third of the places name one row, so that its run goes over many chunks.
Tensor<std::int32_t> skewed_index(std::int64_t count, std::int64_t rows) {
  Tensor<std::int32_t> index({count});
  std::mt19937 generator(7);
  for (std::int32_t& row : index.span()) {
    const auto random = static_cast<std::int64_t>(generator());
    row = static_cast<std::int32_t>(random % 3 == 0 ? rows - 1 : random % rows);
  }
  return index;
}

}  // namespace

TEMPLATE_TEST_CASE("embedding on the GPU", "", float, double) {
  using T = TestType;
  for (const auto& [count, rows, width] :
       {std::array<std::int64_t, 3>{1, 1, 1}, {33, 11, 19}, {5000, 300, 64}, {20'000, 50'257, 96}}) {
    CAPTURE(count, rows, width);
    const Tensor<std::int32_t> index = skewed_index(count, rows);
    const auto index_there = index.to<Cuda>();
    const auto weight = random_tensor<T>({rows, width}, 1);
    const auto dy = random_tensor<T>({count, width}, 2);
    const std::int64_t padding_idx = std::min<std::int64_t>(3, rows - 1);
    for (const bool accumulate : {false, true}) {
      Tensor<T> y = dy.clone();
      Tensor<T, Cuda> y_there = dy.template to<Cuda>();
      embedding(index, weight, y, accumulate);
      embedding(index_there, weight.template to<Cuda>(), y_there, accumulate);
      require_identical(y_there.template to<Cpu>(), y);

      Tensor<T> dweight = weight.clone();
      Tensor<T, Cuda> dweight_there = weight.template to<Cuda>();
      embedding_backward(index, dy, dweight, accumulate, padding_idx);
      embedding_backward(index_there, dy.template to<Cuda>(), dweight_there, accumulate, padding_idx);
      require_same(dweight_there, dweight, 1000);
      Tensor<T, Cuda> again = weight.template to<Cuda>();
      embedding_backward(index_there, dy.template to<Cuda>(), again, accumulate, padding_idx);
      require_identical(again.template to<Cpu>(), dweight_there.template to<Cpu>());
    }
  }
}

TEST_CASE("on the GPU an index outside the table gives NaN and has no gradient") {
  const std::int32_t values[] = {0, 4, -1};
  const auto index = Tensor<std::int32_t, Cuda>::from({3}, values);
  Tensor<float, Cuda> y({3, 2});
  embedding(index, Tensor<float, Cuda>::full({4, 2}, 1), y);
  const auto here = y.to<Cpu>();
  CHECK(here.data()[0] == 1);
  CHECK(std::isnan(here.data()[2]));
  CHECK(std::isnan(here.data()[5]));
  Tensor<float, Cuda> dweight({4, 2});
  embedding_backward(index, Tensor<float, Cuda>::full({3, 2}, 1), dweight, false);
  require_close(dweight.to<Cpu>(), {1, 1, 0, 0, 0, 0, 0, 0}, 0);
}
