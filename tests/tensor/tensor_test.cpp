#include "trireme/tensor/tensor.hpp"

#include <vector>

#include "catch.hpp"

using namespace trireme;

TEST_CASE("a tensor from elements that are written out") {
  const auto x = Tensor<float>::from({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(x.shape() == Shape{2, 3});
  CHECK(std::vector<float>(x.span().begin(), x.span().end()) == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(Tensor<std::int32_t>::from({2}, {7, -8}).at(1) == -8);
  CHECK(Tensor<double>::from({}, {0.5}).item() == 0.5);
  CHECK(Tensor<float>::from({0}, {}).numel() == 0);
  CHECK(Tensor<std::int64_t>::from({2}, std::vector<std::int64_t>{3, 4}).at(0) == 3);
  CHECK_THROWS_WITH(Tensor<float>::from({2, 2}, {1, 2, 3}), "3 values do not fill the shape [2, 2]");
}

TEST_CASE("the elements as a vector") {
  const auto x = Tensor<float>::from({2, 2}, {1, 2, 3, 4});
  CHECK(x.narrow(1, 1).to_vector() == std::vector<float>{3, 4});
  CHECK(Tensor<std::int64_t>({0, 3}).to_vector().empty());
  CHECK_THROWS_AS(Tensor<float>().to_vector(), Error);
}

TEST_CASE("at() reads and writes an element, negative numbers count from the end") {
  const auto x = Tensor<float>::from({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(x.at(0, 0) == 1);
  CHECK(x.at(1, 2) == 6);
  CHECK(x.at(-1, -3) == 4);
  CHECK(x.at(std::size_t{1}, std::int64_t{1}) == 5);
  x.at(1, 0) = 40;
  CHECK(x.data()[3] == 40);
  CHECK(x.narrow(1, 1).at(0, 0) == 40);
  Tensor<float>::from({}, {0.5F}).at() = 1;
  CHECK(Tensor<float>::from({}, {0.5F}).at() == 0.5F);
}

TEST_CASE("at() refuses what lies outside") {
  const auto x = Tensor<float>::from({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK_THROWS_WITH(x.at(2, 0), "the element [2, 0] lies outside the shape [2, 3]");
  CHECK_THROWS_WITH(x.at(0, 3), "the element [0, 3] lies outside the shape [2, 3]");
  CHECK_THROWS_WITH(x.at(-3, 0), "the element [-3, 0] lies outside the shape [2, 3]");
  CHECK_THROWS_WITH(x.at(0, std::size_t{0} - 1), "the element [0, 9223372036854775807] lies outside the shape [2, 3]");
  CHECK_THROWS_WITH(x.at(1), "the element [1] of the shape [2, 3]: it needs 2 numbers");
  CHECK_THROWS_WITH(x.at(), "the element [] of the shape [2, 3]: it needs 2 numbers");
  CHECK_THROWS_WITH(x.at(0, 0, 0), "the element [0, 0, 0] of the shape [2, 3]: it needs 2 numbers");
  CHECK_THROWS_WITH(x.narrow(1, 1).at(1, 0), "the element [1, 0] lies outside the shape [1, 3]");
  CHECK_THROWS_WITH(Tensor<float>({0}).at(0), "the element [0] lies outside the shape [0]");
  CHECK_THROWS_WITH(Tensor<float>().at(), "at() of a tensor that is undefined");
}
