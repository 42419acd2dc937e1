#pragma once

#include "ops/base/pack.hpp"
#include "ops/pooling/pooling_dims.hpp"

// The operations of ops/pooling/pooling.hpp, a thread for each pack of `Width` channels of a pixel of the result. A gradient is
// summed over the windows that contain the pixel, in their order.
namespace trireme::ops {

struct PoolImages {
  PoolWindows windows;
  std::int64_t channels;

  struct Place {
    std::int64_t image;
    std::int32_t row;
    std::int32_t column;
    std::int64_t channel;
  };

  // The pixel and channels of pack number `i`, of `width` channels.
  TRIREME_TEAM Place place_in_x(std::int64_t i, int width) const {
    return place(i, width, windows.rows.size, windows.columns.size);
  }
  TRIREME_TEAM Place place_in_y(std::int64_t i, int width) const {
    return place(i, width, windows.rows.windows, windows.columns.windows);
  }

  // Calls visit(element of x) for the pixels of a window in row-major order.
  template <typename Visit>
  TRIREME_TEAM void each_pixel(const Place& in_y, const PoolSpan& down, const PoolSpan& across, Visit visit) const {
    for (std::int32_t i = 0; i < down.count; ++i) {
      const std::int64_t row = in_y.image * windows.rows.size + down.begin + i * windows.rows.dilation;
      for (std::int32_t j = 0; j < across.count; ++j) {
        const std::int64_t column = across.begin + j * windows.columns.dilation;
        visit((row * windows.columns.size + column) * channels + in_y.channel);
      }
    }
  }

  // Calls visit(element of y, place of the pixel in the window, divisor) for the windows that contain a pixel.
  template <typename Visit>
  TRIREME_TEAM void each_window(const Place& in_x, Visit visit) const {
    const std::int32_t end_row = windows.rows.end_window(in_x.row);
    const std::int32_t first_column = windows.columns.first_window(in_x.column);
    const std::int32_t end_column = windows.columns.end_window(in_x.column);
    for (std::int32_t row = windows.rows.first_window(in_x.row); row < end_row; ++row) {
      const PoolSpan down = windows.rows.span(row);
      const std::int32_t i = windows.rows.place(down, in_x.row);
      if (i < 0) continue;
      const std::int64_t first = (in_x.image * windows.rows.windows + row) * windows.columns.windows;
      for (std::int32_t column = first_column; column < end_column; ++column) {
        const PoolSpan across = windows.columns.span(column);
        const std::int32_t j = windows.columns.place(across, in_x.column);
        if (j < 0) continue;
        visit((first + column) * channels + in_x.channel, i * across.count + j, std::int64_t{down.divisor} * across.divisor);
      }
    }
  }

 private:
  TRIREME_TEAM Place place(std::int64_t i, int width, std::int32_t rows, std::int32_t columns) const {
    const std::int64_t packs = channels / width;
    if (i >> 32 == 0 && packs >> 32 == 0) {
      return place_of(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(packs), width, rows, columns);
    }
    return place_of(i, packs, width, rows, columns);
  }
  // Number: std::uint32_t if i and packs fit, which makes division several times as fast; otherwise std::int64_t.
  template <typename Number>
  static TRIREME_TEAM Place place_of(Number i, Number packs, int width, std::int32_t rows, std::int32_t columns) {
    const Number pixel = i / packs;
    const Number line = pixel / static_cast<Number>(columns);
    const Number image = line / static_cast<Number>(rows);
    return {.image = static_cast<std::int64_t>(image),
            .row = static_cast<std::int32_t>(line - image * static_cast<Number>(rows)),
            .column = static_cast<std::int32_t>(pixel - line * static_cast<Number>(columns)),
            .channel = static_cast<std::int64_t>(i - pixel * packs) * width};
  }
};

template <int Width, typename T>
struct MaxPool {
  PoolImages images;
  const T* x;
  T* y;
  std::int32_t* argmax;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    const auto at = images.place_in_y(i, Width);
    Pack<Accumulate<T>, Width> largest{};
    Pack<std::int32_t, Width> places{};
    std::int32_t place = 0;
    images.each_pixel(at, images.windows.rows.span(at.row), images.windows.columns.span(at.column), [&](std::int64_t element) {
      const auto pixel = load<Width>(x + element);
      for (int k = 0; k < Width; ++k) {
        if (place == 0 || pixel.at[k] > largest.at[k] || pixel.at[k] != pixel.at[k]) {
          largest.at[k] = pixel.at[k];
          places.at[k] = place;
        }
      }
      ++place;
    });
    store<Width>(y + i * Width, largest);
    *reinterpret_cast<Pack<std::int32_t, Width>*>(argmax + i * Width) = places;
  }
};

template <int Width, typename T>
struct MaxPoolGradient {
  PoolImages images;
  const T* dy;
  const std::int32_t* argmax;
  T* dx;
  bool accumulate;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    Pack<Accumulate<T>, Width> sums{};
    if (accumulate) sums = load<Width>(dx + i * Width);
    images.each_window(images.place_in_x(i, Width), [&](std::int64_t element, std::int32_t place, std::int64_t) {
      const auto gradients = load<Width>(dy + element);
      const auto places = *reinterpret_cast<const Pack<std::int32_t, Width>*>(argmax + element);
      for (int k = 0; k < Width; ++k) {
        if (places.at[k] == place) sums.at[k] += gradients.at[k];
      }
    });
    store<Width>(dx + i * Width, sums);
  }
};

template <int Width, typename T>
struct AveragePool {
  using A = Accumulate<T>;
  PoolImages images;
  const T* x;
  T* y;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    const auto at = images.place_in_y(i, Width);
    const PoolSpan down = images.windows.rows.span(at.row);
    const PoolSpan across = images.windows.columns.span(at.column);
    Pack<A, Width> sums{};
    images.each_pixel(at, down, across, [&](std::int64_t element) {
      const auto pixel = load<Width>(x + element);
      for (int k = 0; k < Width; ++k) sums.at[k] += pixel.at[k];
    });
    const A scale = A(1) / static_cast<A>(std::int64_t{down.divisor} * across.divisor);
    for (int k = 0; k < Width; ++k) sums.at[k] *= scale;
    store<Width>(y + i * Width, sums);
  }
};

template <int Width, typename T>
struct AveragePoolGradient {
  using A = Accumulate<T>;
  PoolImages images;
  const T* dy;
  T* dx;
  bool accumulate;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    Pack<A, Width> sums{};
    if (accumulate) sums = load<Width>(dx + i * Width);
    images.each_window(images.place_in_x(i, Width), [&](std::int64_t element, std::int32_t, std::int64_t divisor) {
      const auto gradients = load<Width>(dy + element);
      const A scale = A(1) / static_cast<A>(divisor);
      for (int k = 0; k < Width; ++k) sums.at[k] += gradients.at[k] * scale;
    });
    store<Width>(dx + i * Width, sums);
  }
};

}  // namespace trireme::ops
