#include <algorithm>
#include <vector>

#include "ops/base/parallel.hpp"
#include "ops/elementwise/floats.hpp"
#include "ops/elementwise/rotary_body.hpp"
#include "ops/elementwise/rotary_on.hpp"

namespace trireme::ops {

template <>
template <typename T>
void Rotary<Cpu>::rotate(const RotarySizes& sizes, const RotaryOptions& options, double direction, const T* x, T* y) {
  const std::int64_t time = sizes.time;
  const std::int64_t width = sizes.width;
  const std::int64_t half = options.size / 2;
  using A = Accumulate<T>;
  std::vector<A> cosines(static_cast<std::size_t>(time * half));
  std::vector<A> sines(cosines.size());
  const RotaryAngles<A> angles{.half = half,
                               .first_position = options.first_position,
                               .base = options.base,
                               .direction = direction,
                               .cosines = cosines.data(),
                               .sines = sines.data(),
                               .scaling = options.scaling};
  for (std::int64_t place = 0; place < time * half; ++place) angles(place);
  parallel_rows(sizes.batch * time, width, [&](std::int64_t begin, std::int64_t end) {
    FloatRow<T> read(width);
    FloatRow<T> written(width);
    for (std::int64_t row = begin; row < end; ++row) {
      const A* cosine = cosines.data() + row % time * half;
      const A* sine = sines.data() + row % time * half;
      const A* from = read.read(x + row * width);
      A* to = written.place(y + row * width);
      for (std::int64_t head = 0; head < options.heads; ++head, from += options.size, to += options.size) {
        for (std::int64_t j = 0; j < half; ++j) {
          const A first = from[j];
          const A second = from[j + half];
          to[j] = first * cosine[j] - second * sine[j];
          to[j + half] = second * cosine[j] + first * sine[j];
        }
      }
      if (from != to) std::copy_n(from, width - options.heads * options.size, to);
      written.write(y + row * width);
    }
  });
}

TRIREME_INSTANTIATE_ROTARY(float, Cpu);
TRIREME_INSTANTIATE_ROTARY(double, Cpu);
TRIREME_INSTANTIATE_ROTARY(bfloat16, Cpu);
TRIREME_INSTANTIATE_ROTARY(float16, Cpu);

}  // namespace trireme::ops
