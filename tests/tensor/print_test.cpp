// Texts as NumPy 2.4 prints the same elements, except for lines of 80 characters and the type at the end.
#include "trireme/tensor/print.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "catch.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/core/float8.hpp"

using namespace trireme;

namespace {

template <typename T>
std::string text(const Shape& shape, std::initializer_list<double> values) {
  Tensor<T> tensor(shape);
  std::size_t at = 0;
  for (const double value : values) tensor.span()[at++] = static_cast<T>(static_cast<Accumulate<T>>(value));
  return to_string(tensor);
}

template <typename T>
Tensor<T> counted(const Shape& shape) {
  Tensor<T> tensor(shape);
  for (std::size_t at = 0; at < tensor.span().size(); ++at) tensor.span()[at] = static_cast<T>(at);
  return tensor;
}

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("small tensors are printed whole, with type and shape") {
  CHECK(text<float>({2, 2}, {1, 2.5, -3, 4}) == "[[ 1.   2.5]\n [-3.   4. ]] (float32, shape [2, 2])");
  CHECK(text<std::int32_t>({3}, {1, -20, 300}) == "[  1 -20 300] (int32, shape [3])");
  CHECK(text<std::int64_t>({2, 1, 2}, {1, 2, 3, 4}) == "[[[1 2]]\n\n [[3 4]]] (int64, shape [2, 1, 2])");
  CHECK(text<std::uint16_t>({1}, {65535}) == "[65535] (uint16, shape [1])");
  CHECK(text<float>({}, {2.5}) == "2.5 (float32, shape [])");
  CHECK(text<std::int32_t>({}, {7}) == "7 (int32, shape [])");
  CHECK(text<double>({2}, {0, -0.0}) == "[ 0. -0.] (float64, shape [2])");
}

TEST_CASE("elements have the digits that tell them apart") {
  CHECK(text<float>({2}, {0.1, 0.25}) == "[0.1  0.25] (float32, shape [2])");
  CHECK(text<float>({2}, {1.0 / 3, 200}) == "[  0.33333334 200.        ] (float32, shape [2])");
  CHECK(text<double>({3}, {0.1, 1.0 / 3, 1e-3}) == "[0.1        0.33333333 0.001     ] (float64, shape [3])");
  CHECK(text<float16>({2}, {0.1, 0.2}) == "[0.1 0.2] (float16, shape [2])");
  CHECK(text<bfloat16>({2}, {0.1, 3.140625}) == "[0.1  3.14] (bfloat16, shape [2])");
  CHECK(text<float8_e4m3>({2}, {0.4375, 448}) == "[4.4e-01 4.5e+02] (float8_e4m3, shape [2])");
  CHECK(text<double>({2}, {1e10, 2.5}) == "[1.0e+10 2.5e+00] (float64, shape [2])");
  CHECK(text<float>({2}, {1e-5, 1}) == "[1e-05 1e+00] (float32, shape [2])");
  CHECK(text<double>({1}, {1.0 / 3e10}) == "[3.33333333e-11] (float64, shape [1])");
  CHECK(text<float>({3}, {std::nan(""), 1.5, -infinity}) == "[ nan  1.5 -inf] (float32, shape [3])");
  CHECK(text<float>({2}, {std::nan(""), infinity}) == "[nan inf] (float32, shape [2])");
}

TEST_CASE("large tensors are abbreviated, long rows are wrapped") {
  CHECK(to_string(counted<float>({1001})) == "[   0.    1.    2. ...  998.  999. 1000.] (float32, shape [1001])");
  const std::string of_thousand = to_string(counted<std::int32_t>({1000}));
  CHECK(of_thousand.find("...") == std::string::npos);
  CHECK(of_thousand.find(" 19\n  20 ") != std::string::npos);
  CHECK(to_string(counted<std::int64_t>({501, 2})) ==
        "[[   0    1]\n [   2    3]\n [   4    5]\n ...\n [ 996  997]\n [ 998  999]\n [1000 1001]] (int64, shape [501, 2])");
  CHECK(to_string(counted<std::int32_t>({7, 2, 100})) ==
        "[[[   0    1    2 ...   97   98   99]\n  [ 100  101  102 ...  197  198  199]]\n\n"
        " [[ 200  201  202 ...  297  298  299]\n  [ 300  301  302 ...  397  398  399]]\n\n"
        " [[ 400  401  402 ...  497  498  499]\n  [ 500  501  502 ...  597  598  599]]\n\n ...\n\n"
        " [[ 800  801  802 ...  897  898  899]\n  [ 900  901  902 ...  997  998  999]]\n\n"
        " [[1000 1001 1002 ... 1097 1098 1099]\n  [1100 1101 1102 ... 1197 1198 1199]]\n\n"
        " [[1200 1201 1202 ... 1297 1298 1299]\n  [1300 1301 1302 ... 1397 1398 1399]]] (int32, shape [7, 2, 100])");
}

TEST_CASE("tensors that hold nothing are printed too") {
  CHECK(to_string(Tensor<float>({2, 0})) == "[] (float32, shape [2, 0])");
  CHECK(to_string(Tensor<float>({1'000'000'000'000, 0})) == "[] (float32, shape [1000000000000, 0])");
  CHECK(to_string(Tensor<float>()) == "undefined tensor");
}

TEST_CASE("streams and fmt print the same text") {
  const auto x = Tensor<float>::from({2}, {1, 2.5F});
  std::ostringstream out;
  out << "x = " << x << ", " << Tensor<std::int32_t>();
  CHECK(out.str() == "x = [1.  2.5] (float32, shape [2]), undefined tensor");
  CHECK(fmt::format("x = {}", x) == "x = [1.  2.5] (float32, shape [2])");
  CHECK(to_string(x.narrow(1, 1)) == "[2.5] (float32, shape [1])");
}
