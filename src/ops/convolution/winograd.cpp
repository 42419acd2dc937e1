#include "ops/convolution/winograd.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "ops/base/parallel.hpp"
#include "ops/convolution/winograd_kernels.hpp"
#include "ops/matmul/matmul_plan.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme::ops {
namespace {

constexpr std::int64_t side = 4;       // of a tile of the result, in pixels
constexpr std::int64_t products = 36;  // elements of a transformed tile

// Images [batch, height, width, channels].
template <typename T>
struct Images {
  T* data;
  Extent2d extent;
  std::int64_t channels;
};

// The tiles of the images that a convolution writes.
class Tiles {
 public:
  Tiles(std::int64_t batch, const Extent2d& extent)
      : rows_((extent.height + side - 1) / side),
        columns_((extent.width + side - 1) / side),
        count_(batch * rows_ * columns_) {}

  std::int64_t count() const { return count_; }

  // Pointers to the pixels of a square of `size` x `size`, whose corner is `offset` pixels before that of the tile. Pixels
  // outside the images are `outside`.
  template <std::int64_t size, typename T>
  std::array<T*, size * size> pixels(std::int64_t tile, const Images<T>& images, const Extent2d& offset, T* outside) const {
    std::array<T*, size * size> found;
    const std::int64_t image = tile / (rows_ * columns_);
    const std::int64_t top = tile / columns_ % rows_ * side - offset.height;
    const std::int64_t left = tile % columns_ * side - offset.width;
    for (std::int64_t i = 0; i < size; ++i) {
      for (std::int64_t j = 0; j < size; ++j) {
        const bool inside = top + i >= 0 && top + i < images.extent.height && left + j >= 0 && left + j < images.extent.width;
        found[static_cast<std::size_t>(i * size + j)] =
            inside ? images.data + ((image * images.extent.height + top + i) * images.extent.width + left + j) * images.channels
                   : outside;
      }
    }
    return found;
  }

 private:
  std::int64_t rows_;
  std::int64_t columns_;
  std::int64_t count_;
};

// Calls body(first, count) for blocks of tiles whose transforms fit into a few MB. A tile has `channels` channels in all.
template <typename Body>
void for_blocks(const Tiles& tiles, std::int64_t channels, const Body& body) {
  constexpr std::int64_t elements = 1 << 20;
  const std::int64_t most = std::max<std::int64_t>(32, elements / (products * channels));
  const std::int64_t blocks = (tiles.count() + most - 1) / most;
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t first = tiles.count() * block / blocks;
    body(first, tiles.count() * (block + 1) / blocks - first);
  }
}

// Calls body(tile, its index in the block) on this rank's threads.
template <typename Body>
void for_tiles(std::int64_t first, std::int64_t count, std::int64_t channels, const Body& body) {
  parallel_rows(count, products * channels, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) body(first + index, index);
  });
}

bool wants_direct() {
  static const bool wanted = [] {
    const char* value = std::getenv("TRIREME_CONVOLUTION");
    return value != nullptr && std::string_view(value) == "direct";
  }();
  return wanted;
}

void multiply_all(const MatmulShape& shape, const float* a, const float* b, float* c) {
  for (std::int64_t k = 0; k < products; ++k) {
    run_matmul(shape, a + k * shape.m * shape.k, b + k * shape.k * shape.n, nullptr, c + k * shape.m * shape.n);
  }
}

// Returns the transformed weight [36, out, in].
Tensor<float> transformed_weight(const ConvolutionShape& shape, const float* weight, bool turned) {
  const Tensor<float> all({products, shape.out, shape.in});
  parallel_rows(shape.out, products * shape.in, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t out = begin; out < end; ++out) {
      winograd_kernels().transform_weight(weight + out * shape.in * 9, shape.in, turned, all.data() + out * shape.in,
                                          shape.out * shape.in);
    }
  });
  return all;
}

void transform_images(const Tiles& tiles, const Images<const float>& images, const Extent2d& offset, std::int64_t first,
                      std::int64_t count, float* to) {
  const Tensor<float> zeros = Tensor<float>::zeros({images.channels});
  for_tiles(first, count, images.channels, [&](std::int64_t tile, std::int64_t index) {
    const auto pixels = tiles.pixels<6>(tile, images, offset, static_cast<const float*>(zeros.data()));
    winograd_kernels().transform_image(pixels.data(), images.channels, to + index * images.channels, count * images.channels);
  });
}

// to = the convolution of `from` with the transformed weights.
void convolve(std::int64_t batch, const Images<const float>& from, const Extent2d& offset, const Tensor<float>& weights,
              bool transpose_weights, const float* bias, const Images<float>& to) {
  const Tiles tiles(batch, to.extent);
  for_blocks(tiles, from.channels + to.channels, [&](std::int64_t first, std::int64_t count) {
    const Tensor<float> images({products, count, from.channels});
    const Tensor<float> results({products, count, to.channels});
    transform_images(tiles, from, offset, first, count, images.data());
    multiply_all({.m = count, .n = to.channels, .k = from.channels, .transpose_b = transpose_weights}, images.data(),
                 weights.data(), results.data());
    for_tiles(first, count, to.channels, [&](std::int64_t tile, std::int64_t index) {
      float* const result = results.data() + index * to.channels;
      // Pixels beyond the image are written to memory that has been read already.
      const auto pixels = tiles.pixels<side>(tile, to, 0, result);
      winograd_kernels().transform_result(result, count * to.channels, to.channels, bias, pixels.data());
    });
  });
}

}  // namespace

// With fewer channels or tiles, or weights that are larger than the images, the transforms take the time that the products
// save.
bool suits_winograd(const ConvolutionShape& s) {
  constexpr Extent2d one = 1;
  const std::int64_t tiles = Tiles(s.batch, s.y).count();
  return s.groups == 1 && s.kernel == Extent2d(3) && s.stride == one && s.dilation == one && s.padding.height <= 2 &&
         s.padding.width <= 2 && s.in % 16 == 0 && s.in >= 32 && s.out % 16 == 0 && s.out >= 32 && tiles >= 16 &&
         s.in * s.out <= 8192 * tiles && !wants_direct();
}

void winograd_forward(const ConvolutionShape& shape, const float* x, const float* weight, const float* bias, float* y) {
  convolve(shape.batch, {x, shape.x, shape.in}, shape.padding, transformed_weight(shape, weight, false), true, bias,
           {y, shape.y, shape.out});
}

void winograd_data(const ConvolutionShape& shape, const float* dy, const float* weight, float* dx) {
  const Extent2d offset(2 - shape.padding.height, 2 - shape.padding.width);
  convolve(shape.batch, {dy, shape.y, shape.out}, offset, transformed_weight(shape, weight, true), false, nullptr,
           {dx, shape.x, shape.in});
}

void winograd_weight(const ConvolutionShape& shape, const float* x, const float* dy, float* dweight) {
  const Tiles tiles(shape.batch, shape.y);
  const Tensor<float> sums({products, shape.out, shape.in});
  const Tensor<float> zeros = Tensor<float>::zeros({shape.out});
  for_blocks(tiles, shape.in + shape.out, [&](std::int64_t first, std::int64_t count) {
    const Tensor<float> images({products, count, shape.in});
    const Tensor<float> gradients({products, count, shape.out});
    transform_images(tiles, {x, shape.x, shape.in}, shape.padding, first, count, images.data());
    for_tiles(first, count, shape.out, [&](std::int64_t tile, std::int64_t index) {
      const auto pixels =
          tiles.pixels<side>(tile, Images<const float>{dy, shape.y, shape.out}, 0, static_cast<const float*>(zeros.data()));
      winograd_kernels().transform_gradient(pixels.data(), shape.out, gradients.data() + index * shape.out, count * shape.out);
    });
    multiply_all({.m = shape.out, .n = shape.in, .k = count, .transpose_a = true, .accumulate = first > 0}, gradients.data(),
                 images.data(), sums.data());
  });
  parallel_rows(shape.out, products * shape.in, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t out = begin; out < end; ++out) {
      winograd_kernels().weight_gradient(sums.data() + out * shape.in, shape.out * shape.in, shape.in,
                                         dweight + out * shape.in * 9);
    }
  });
}

}  // namespace trireme::ops
