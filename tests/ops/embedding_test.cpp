#include "trireme/ops/embedding/embedding.hpp"

#include "ops/compare.hpp"
#include "ops/threads.hpp"

using namespace trireme;
using namespace trireme::ops;

namespace {

Tensor<std::int32_t> indices(const Shape& shape, std::int32_t rows) {
  Tensor<std::int32_t> index(shape);
  for (std::int64_t i = 0; i < index.numel(); ++i) index.data()[i] = static_cast<std::int32_t>((i * 5 + i / 3) % rows);
  return index;
}

}  // namespace

TEMPLATE_TEST_CASE("embedding forward and backward", "", float, double) {
  using T = TestType;
  constexpr std::int32_t rows = 11;
  constexpr std::int64_t width = 19;
  const auto index = indices({4, 9}, rows);
  const auto weight = random_tensor<T>({rows, width}, 1);
  const auto dy = random_tensor<T>({4, 9, width}, 2);
  Doubles picked;
  Doubles gradient(rows * width);
  for (std::int64_t i = 0; i < index.numel(); ++i) {
    for (std::int64_t j = 0; j < width; ++j) {
      const std::int64_t place = index.data()[i] * width + j;
      picked.push_back(static_cast<double>(weight.data()[place]));
      gradient[static_cast<std::size_t>(place)] += static_cast<double>(dy.data()[i * width + j]);
    }
  }
  Tensor<T> y({4, 9, width});
  embedding(index, weight, y);
  require_close(y, picked, 0);
  embedding(index, weight, y, true);
  require_close(y, add(picked, picked), tolerance<T>(1e-6));

  Tensor<T> dweight = Tensor<T>::full(weight.shape(), 3);
  embedding_backward(index, dy, dweight, false);
  require_close(dweight, gradient, tolerance<T>(1e-6));
  embedding_backward(index, dy, dweight, true);
  require_close(dweight, add(gradient, gradient), tolerance<T>(2e-6));
}

TEST_CASE("the gradient of an embedding has the same bits for any number of threads") {
  const auto index = indices({3000}, 700);
  const auto dy = random_tensor<float>({3000, 130}, 1);
  Tensor<float> one({700, 130});
  Tensor<float> three({700, 130});
  with_threads(1, [&] { embedding_backward(index, dy, one, false); });
  with_threads(3, [&] { embedding_backward(index, dy, three, false); });
  require_identical(one, three);
}

TEST_CASE("embedding refuses an index outside the table") {
  const auto weight = Tensor<float>::zeros({4, 2});
  Tensor<float> y({3, 2});
  for (const std::int32_t wrong : {4, -1}) {
    const std::int32_t values[] = {0, 3, wrong};
    CHECK_THROWS_WITH(embedding(Tensor<std::int32_t>::from({3}, values), weight, y),
                      "embedding: index 2 is " + std::to_string(wrong) + ", but must lie in [0, 4)");
  }
  CHECK_THROWS_WITH(embedding(Tensor<std::int32_t>::zeros({2}), weight, y),
                    ContainsSubstring("do not fit rows of shape [3, 2]"));
}

TEST_CASE("a padding row is any row of the table, from its end too") {
  const auto index = Tensor<std::int32_t>::from({3}, std::vector<std::int32_t>{0, 3, 3});
  const auto dy = Tensor<float>::full({3, 2}, 1);
  const auto gradient = [&](std::optional<std::int32_t> padding) {
    Tensor<float> dweight({4, 2});
    embedding_backward(index, dy, dweight, false, padding);
    return Doubles(dweight.span().begin(), dweight.span().end());
  };
  CHECK(gradient({}) == Doubles{1, 1, 0, 0, 0, 0, 2, 2});
  CHECK(gradient(0) == Doubles{0, 0, 0, 0, 0, 0, 2, 2});
  CHECK(gradient(-1) == Doubles{1, 1, 0, 0, 0, 0, 0, 0});
  CHECK(gradient(-4) == gradient(0));
  for (const std::int32_t outside : {4, -5}) {
    CHECK_THROWS_WITH(gradient(outside),
                      "padding_idx is " + std::to_string(outside) + ", but must lie in [-4, 4) for a table of 4 rows");
  }
}
