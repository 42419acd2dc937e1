#include "ops/pooling/pooling_kernels.hpp"

#include "ops/base/vector.hpp"
#include "trireme/core/host_device.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

// `count` elements of one pixel, at any address.
template <typename T, int count>
struct ChannelsOf {
  typedef T type __attribute__((vector_size(count * sizeof(T)), aligned(alignof(T)), may_alias));
};
template <typename T, int count>
using Channels = typename ChannelsOf<T, count>::type;

template <typename V, typename T>
TRIREME_HOST_DEVICE void add_to(T* data, V addend) {
  store<V>(data, load<V>(data) + addend);
}

// Calls body(offset) for the pixels of a window in row-major order.
template <typename Body>
TRIREME_HOST_DEVICE void for_each_pixel(const PoolWindow& window, Body body) {
  for (std::int64_t row = 0; row < window.rows; ++row) {
    for (std::int64_t column = 0; column < window.columns; ++column) {
      body(row * window.row_stride + column * window.column_stride);
    }
  }
}

// Calls body(first, count) for runs of channels whose sums or maxima stay in registers. At the end runs have fewer registers,
// then shorter ones.
template <typename T, typename Body>
TRIREME_HOST_DEVICE void for_each_run(std::int64_t channels, Body body) {
  constexpr int whole = lanes<T>;
  std::int64_t c = 0;
  for (; c + 4 * whole <= channels; c += 4 * whole) body.template operator()<whole, 4>(c);
  for (; c + whole <= channels; c += whole) body.template operator()<whole, 1>(c);
  if constexpr (vector_bytes > 32) {
    for (; c + whole / 2 <= channels; c += whole / 2) body.template operator()<whole / 2, 1>(c);
  }
  if constexpr (vector_bytes > 16) {
    constexpr int least = 16 / static_cast<int>(sizeof(T));
    for (; c + least <= channels; c += least) body.template operator()<least, 1>(c);
  }
  for (; c < channels; ++c) body.template operator()<1, 1>(c);
}

template <typename T>
void max(const PoolWindow& window, const T* x, T* y, std::int32_t* argmax) {
  for_each_run<T>(window.channels, [&]<int count, int registers>(std::int64_t c) {
    using V = Channels<T, count>;
    using Places = decltype(V{} > V{});
    V largest[registers];
    Places places[registers];
    for (int r = 0; r < registers; ++r) {
      largest[r] = load<V>(x + c + r * count);
      places[r] = Places{};
    }
    Places place{};
    for_each_pixel(window, [&](std::int64_t offset) {
#pragma GCC unroll 4
      for (int r = 0; r < registers; ++r) {
        const V pixel = load<V>(x + offset + c + r * count);
        const Places larger = (pixel > largest[r]) | (pixel != pixel);
        largest[r] = larger ? pixel : largest[r];
        places[r] = larger ? place : places[r];
      }
      place += 1;
    });
    using Argmax = Channels<std::int32_t, count>;
    for (int r = 0; r < registers; ++r) {
      store<V>(y + c + r * count, largest[r]);
      store<Argmax>(argmax + c + r * count, __builtin_convertvector(places[r], Argmax));
    }
  });
}

template <typename T>
void max_backward(const PoolWindow& window, const T* dy, const std::int32_t* argmax, T* dx) {
  for_each_run<T>(window.channels, [&]<int count, int registers>(std::int64_t c) {
    using V = Channels<T, count>;
    using Places = decltype(V{} > V{});
    V gradients[registers];
    Places places[registers];
    for (int r = 0; r < registers; ++r) {
      gradients[r] = load<V>(dy + c + r * count);
      places[r] = __builtin_convertvector(load<Channels<std::int32_t, count>>(argmax + c + r * count), Places);
    }
    Places place{};
    for_each_pixel(window, [&](std::int64_t offset) {
#pragma GCC unroll 4
      for (int r = 0; r < registers; ++r) add_to<V>(dx + offset + c + r * count, places[r] == place ? gradients[r] : V{});
      place += 1;
    });
  });
}

template <typename T>
void average(const PoolWindow& window, const T* x, T scale, T* y) {
  for_each_run<T>(window.channels, [&]<int count, int registers>(std::int64_t c) {
    using V = Channels<T, count>;
    V sums[registers] = {};
    for_each_pixel(window, [&](std::int64_t offset) {
#pragma GCC unroll 4
      for (int r = 0; r < registers; ++r) sums[r] += load<V>(x + offset + c + r * count);
    });
    for (int r = 0; r < registers; ++r) store<V>(y + c + r * count, sums[r] * scale);
  });
}

template <typename T>
void average_backward(const PoolWindow& window, const T* dy, T scale, T* dx) {
  for_each_run<T>(window.channels, [&]<int count, int registers>(std::int64_t c) {
    using V = Channels<T, count>;
    V gradients[registers];
    for (int r = 0; r < registers; ++r) gradients[r] = load<V>(dy + c + r * count) * scale;
    for_each_pixel(window, [&](std::int64_t offset) {
#pragma GCC unroll 4
      for (int r = 0; r < registers; ++r) add_to<V>(dx + offset + c + r * count, gradients[r]);
    });
  });
}

template <typename T>
constexpr PoolingKernels<T> kernels{max<T>, max_backward<T>, average<T>, average_backward<T>};

}  // namespace

const KernelTable<PoolingKernels> pooling_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
