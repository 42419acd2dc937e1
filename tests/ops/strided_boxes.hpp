#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "trireme/core/dtype.hpp"
#include "trireme/ops/array/copy_strided.hpp"

// Random boxes and the plain loops that they are compared with.
namespace trireme::ops {

struct RandomBox {
  StridedCopy box;
  std::int64_t x_elements = 0;
  std::int64_t y_elements = 0;
};

// Dims in different orders in x and in y, with gaps, some backwards, some repeated and, with `sums`, some summed over.
inline RandomBox random_box(std::uint32_t seed, std::int64_t longest, bool sums) {
  std::mt19937 generator(seed);
  const auto below = [&](std::int64_t count) {
    return static_cast<std::int64_t>(generator() % static_cast<std::uint32_t>(count));
  };
  const auto size = static_cast<int>(1 + below(longest > 20 ? 3 : 5));
  std::vector<StridedCopy::Dim> dims(static_cast<std::size_t>(size));
  for (auto& dim : dims) dim.extent = below(3) == 0 ? 4 : 1 + below(longest);
  RandomBox random;
  const auto lay = [&](bool in_y) {
    std::vector<std::size_t> order(dims.size());
    std::iota(order.begin(), order.end(), 0);
    if (below(3) != 0) std::shuffle(order.begin(), order.end(), generator);
    std::int64_t stride = below(5) == 0 ? 2 : 1;
    std::int64_t offset = below(3) * 4;
    for (const std::size_t i : order) {
      std::int64_t& of_dim = in_y ? dims[i].to : dims[i].from;
      of_dim = stride;
      if (below(5) == 0 && (!in_y || sums)) of_dim = 0;
      if (below(5) == 0) {
        offset += of_dim * (dims[i].extent - 1);
        of_dim = -of_dim;
      }
      if (of_dim != 0) stride *= dims[i].extent + (below(4) == 0 ? 1 : 0);
    }
    (in_y ? random.box.to : random.box.from) = offset;
    (in_y ? random.y_elements : random.x_elements) = stride + offset + 1;
  };
  lay(false);
  lay(true);
  for (const auto& dim : dims) random.box.add(dim);
  return random;
}

// Whole numbers, so that sums are exact in every order.
template <typename T>
Tensor<T> random_numbers(std::int64_t count, std::uint32_t seed) {
  std::mt19937 generator(seed);
  Tensor<T> tensor({count});
  for (T& element : tensor.span()) element = static_cast<T>(static_cast<Accumulate<T>>(generator() % 2));
  return tensor;
}

template <typename T>
Tensor<T> copied_by_loops(const StridedCopy& box, const Tensor<T>& x, const Tensor<T>& before, bool accumulate) {
  std::vector<double> sums(static_cast<std::size_t>(before.numel()));
  std::vector<bool> written(sums.size());
  std::vector<std::int64_t> at(static_cast<std::size_t>(box.size));
  for (bool more = true; more;) {
    std::int64_t from = box.from;
    std::int64_t to = box.to;
    for (std::size_t i = 0; i < at.size(); ++i) {
      from += at[i] * box.dims[i].from;
      to += at[i] * box.dims[i].to;
    }
    sums[static_cast<std::size_t>(to)] += static_cast<double>(static_cast<Accumulate<T>>(x.data()[from]));
    written[static_cast<std::size_t>(to)] = true;
    more = false;
    for (std::size_t i = at.size(); !more && i-- > 0;) {
      more = ++at[i] < box.dims[i].extent;
      if (!more) at[i] = 0;
    }
  }
  Tensor<T> y = before.clone();
  for (std::size_t i = 0; i < sums.size(); ++i) {
    T& element = y.span()[i];
    if (!written[i]) continue;
    const double sum = sums[i] + (accumulate ? static_cast<double>(static_cast<Accumulate<T>>(element)) : 0);
    element = static_cast<T>(static_cast<Accumulate<T>>(sum));
  }
  return y;
}

}  // namespace trireme::ops
