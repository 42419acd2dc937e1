#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "ops/base/parallel.hpp"
#include "ops/elementwise/floats.hpp"
#include "ops/elementwise/rotary_body.hpp"
#include "ops/elementwise/rotary_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {
namespace {

auto angles_of(const RotaryOptions& options) {
  const RotaryScaling& s = options.scaling;
  return std::tuple(options.size, options.first_position, options.base, s.kind, s.factor, s.trained_positions, s.low_frequency,
                    s.high_frequency, s.beta_fast, s.beta_slow, s.truncate, s.attention_factor);
}

// Cosines and sines [time, half].
template <typename A>
struct RotaryTable {
  RotaryOptions options = {};
  std::int64_t time = 0;
  std::vector<A> cosines = {};
  std::vector<A> sines = {};
};

// Keeps the table of the last call with this direction, as all layers of a model have the same angles.
template <typename A>
const RotaryTable<A>& rotary_table(const RotaryOptions& options, std::int64_t time, double direction) {
  thread_local std::array<RotaryTable<A>, 2> kept;
  RotaryTable<A>& table = kept[direction > 0 ? 0 : 1];
  if (table.time == time && angles_of(table.options) == angles_of(options)) return table;
  const std::int64_t half = options.size / 2;
  RotaryTable<A> made{.options = options, .time = time};
  made.cosines.resize(static_cast<std::size_t>(time * half));
  made.sines.resize(made.cosines.size());
  const RotaryAngles<A> angles{.half = half,
                               .first_position = options.first_position,
                               .base = options.base,
                               .direction = direction,
                               .cosines = made.cosines.data(),
                               .sines = made.sines.data(),
                               .scaling = options.scaling};
  for (std::int64_t place = 0; place < time * half; ++place) angles(place);
  table = std::move(made);
  return table;
}

}  // namespace

std::vector<float> rotary_frequencies(const RotaryOptions& options) {
  std::vector<float> frequencies;
  for (std::int64_t j = 0; j < options.size / 2; ++j) {
    frequencies.push_back(static_cast<float>(rotary_frequency(options.scaling, options.base, options.size, j)));
  }
  return frequencies;
}

template <>
template <typename T>
void Rotary<Cpu>::rotate(const RotarySizes& sizes, const RotaryOptions& options, double direction, const std::int32_t* starts,
                         const T* x, T* y) {
  const std::int64_t time = sizes.time;
  const std::int64_t width = sizes.width;
  const std::int64_t half = options.size / 2;
  using A = Accumulate<T>;
  const RotaryTable<A>& table = rotary_table<A>(options, time, direction);
  for (std::int64_t row = 0; starts != nullptr && row < sizes.batch * time; ++row) {
    require(starts[row] >= 0 && starts[row] <= row % time, "rotary: the document of place {} can't start at place {}",
            row % time, starts[row]);
  }
  parallel_rows(sizes.batch * time, width, [&](std::int64_t begin, std::int64_t end) {
    FloatRow<T> read(width);
    FloatRow<T> written(width);
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t position = row % time - (starts == nullptr ? 0 : starts[row]);
      const A* cosine = table.cosines.data() + position * half;
      const A* sine = table.sines.data() + position * half;
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

TRIREME_INSTANTIATE(FLOATS, rotary, Cpu)
TRIREME_INSTANTIATE(FLOATS, rotary_backward, Cpu)

}  // namespace trireme::ops
