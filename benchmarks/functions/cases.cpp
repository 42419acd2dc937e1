#include <bit>
#include <cstring>
#include <memory>
#include <utility>

#include "functions/expression.hpp"
#include "functions/functions.hpp"
#include "trireme/ops/array/array.hpp"
#include "trireme/ops/index/index.hpp"
#include "trireme/ops/pointwise/functions.hpp"
#include "trireme/ops/pointwise/operators.hpp"
#include "trireme/ops/reduce/reductions.hpp"
#include "trireme/ops/search/cumulative.hpp"

using namespace trireme;

namespace {

Tensor<float> values(const Shape& shape) {
  Tensor<float> x(shape);
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data()[i] = static_cast<float>(i * 37 % 1000) / 250.0F - 1.999F;
  return x;
}

Tensor<std::int64_t> indices(const Shape& shape, std::int64_t below) {
  Tensor<std::int64_t> index(shape);
  for (std::int64_t i = 0; i < index.numel(); ++i) index.data()[i] = i * 7919 % below;
  return index;
}

}  // namespace

std::vector<Function> functions_of(std::int64_t bytes) {
  const std::int64_t count = bytes / 4;
  const std::int64_t rows = std::int64_t{1} << (std::bit_width(static_cast<std::uint64_t>(count)) / 2);
  const std::int64_t width = count / rows;
  const auto x = values({rows, width});
  const auto y = values({rows, width});
  const auto row = values({width});
  const auto column = values({rows, 1});
  const auto cube = values({rows / 4, 4, width});
  const auto shuffled = indices({rows, width}, width);
  const auto some_rows = indices({rows}, rows);

  std::vector<Function> functions;
  const auto from = std::make_shared<std::vector<char>>(static_cast<std::size_t>(2 * bytes));
  const auto to = std::make_shared<std::vector<char>>(static_cast<std::size_t>(2 * bytes));
  // times: bytes that it reads and writes / bytes of x
  const auto add = [&](std::string name, double times, std::function<void()> run) {
    const auto half = static_cast<std::size_t>(times / 2 * static_cast<double>(bytes));
    functions.push_back({std::move(name), std::move(run), [=] { std::memcpy(to->data(), from->data(), half); }});
  };
  add("add", 3, [=] { trireme::add(x, y); });
  add("add_row", 2, [=] { trireme::add(x, row); });
  add("add_column", 2, [=] { trireme::add(x, column); });
  add("exp", 2, [=] { exp(x); });
  add("where", 3, [=] { where(x > 0, x, y); });
  add("expression", 3, [=] { expression(x, y); });
  add("sum_first", 1, [=] { sum(x, 0); });
  add("sum_middle", 1, [=] { sum(cube, 1); });
  add("sum_last", 1, [=] { sum(x, -1); });
  add("max_first", 1, [=] { max(x, 0); });
  add("max_last", 1, [=] { max(x, -1); });
  add("var_last", 1, [=] { var(x, -1); });
  add("cumsum", 2, [=] { cumsum(x, -1); });
  add("cat", 4, [=] { cat({x, y}, -1); });
  add("permute", 2, [=] { permute(cube, {1, 0, 2}); });
  add("transpose", 2, [=] { permute(x, {1, 0}); });
  add("flip", 2, [=] { flip(x, {1}); });
  add("gather", 4, [=] { gather(x, -1, shuffled); });
  add("index_select", 2, [=] { index_select(x, 0, some_rows); });
  return functions;
}
