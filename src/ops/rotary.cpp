#include "trireme/ops/rotary.hpp"

#include <cmath>
#include <vector>

#include "ops/check.hpp"
#include "ops/floats.hpp"
#include "ops/parallel.hpp"

namespace trireme::ops {
namespace {

template <typename T>
void rotate(std::string_view op, const Tensor<T, Cpu>& x, const RotaryOptions& options, Tensor<T, Cpu>& y, double direction) {
  require_shape(op, "y", y.shape(), x.shape());
  require(options.size > 0 && options.size % 2 == 0, "{}: the head size is {}, but must be even", op, options.size);
  require(x.shape().size() == 3 && options.heads >= 0 && x.dim(2) >= options.heads * options.size,
          "{}: x of shape {} does not hold [batch, time, {} heads of {}]", op, x.shape(), options.heads, options.size);
  const std::int64_t time = x.dim(1);
  const std::int64_t width = x.dim(2);
  const std::int64_t half = options.size / 2;
  using A = Accumulate<T>;
  std::vector<A> cosines(static_cast<std::size_t>(time * half));
  std::vector<A> sines(cosines.size());
  for (std::int64_t place = 0; place < time * half; ++place) {
    const auto position = static_cast<double>(options.first_position + place / half);
    const double angle =
        position * std::pow(options.base, -2.0 * static_cast<double>(place % half) / static_cast<double>(options.size));
    cosines[static_cast<std::size_t>(place)] = static_cast<A>(std::cos(angle));
    sines[static_cast<std::size_t>(place)] = static_cast<A>(direction * std::sin(angle));
  }
  parallel_rows(x.dim(0) * time, width, [&](std::int64_t begin, std::int64_t end) {
    FloatRow<T> read(width);
    FloatRow<T> written(width);
    for (std::int64_t row = begin; row < end; ++row) {
      const A* cosine = cosines.data() + row % time * half;
      const A* sine = sines.data() + row % time * half;
      const A* from = read.read(x.data() + row * width);
      A* to = written.place(y.data() + row * width);
      for (std::int64_t head = 0; head < options.heads; ++head, from += options.size, to += options.size) {
        for (std::int64_t j = 0; j < half; ++j) {
          const A first = from[j];
          const A second = from[j + half];
          to[j] = first * cosine[j] - second * sine[j];
          to[j + half] = second * cosine[j] + first * sine[j];
        }
      }
      if (from != to) std::copy_n(from, width - options.heads * options.size, to);
      written.write(y.data() + row * width);
    }
  });
}

}  // namespace

template <typename T, typename D>
void rotary(const Tensor<T, D>& x, const RotaryOptions& options, Tensor<T, D>& y) {
  rotate("rotary", x, options, y, 1);
}

template <typename T, typename D>
void rotary_backward(const Tensor<T, D>& dy, const RotaryOptions& options, Tensor<T, D>& dx) {
  rotate("rotary_backward", dy, options, dx, -1);
}

#define TRIREME_INSTANTIATE(T)                                                        \
  template void rotary(const Tensor<T, Cpu>&, const RotaryOptions&, Tensor<T, Cpu>&); \
  template void rotary_backward(const Tensor<T, Cpu>&, const RotaryOptions&, Tensor<T, Cpu>&);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
TRIREME_INSTANTIATE(bfloat16)
TRIREME_INSTANTIATE(float16)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
