#include "ops/convolution/grouped_convolution.hpp"

#include <algorithm>
#include <vector>

#include "ops/base/parallel.hpp"
#include "ops/convolution/grouped_geometry.hpp"
#include "ops/convolution/grouped_kernels.hpp"
#include "trireme/device/isa.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme::ops {
namespace grouped {
namespace {

// Scratch memory that grows as needed.
class Scratch {
 public:
  float* of(std::int64_t count) {
    if (!all_.defined() || all_.numel() < count) all_ = Tensor<float>({count});
    return all_.data();
  }

 private:
  Tensor<float> all_;
};

// Channels are computed in chunks of several blocks, and rows in bands, so that the spread pixels stay in the L2 cache.
class GroupedConvolution {
 public:
  GroupedConvolution(const ConvolutionShape& shape, const Geometry& geometry)
      : shape_(shape),
        geometry_(geometry),
        channels_(shape.in),
        group_(shape.in / shape.groups),
        lanes_(grouped_kernels().lanes),
        pixel_(group_ * lanes_),
        taps_(shape.kernel.height * shape.kernel.width),
        rows_(ceil_div(geometry.to.height, geometry.to_step.height)) {
    constexpr std::int64_t floats_of_block = 12 << 10, floats_of_chunk = 256 << 10;
    constexpr std::int64_t least_rows = 8;  // neighbouring bands read some pixels twice
    const Band one = band_of(geometry, {.begin = 0, .end = 1});
    const std::int64_t lines = floats_of_block / (one.from_columns.size() * pixel_) - one.from_rows.size();
    bands_ = ceil_div(rows_, std::max(lines / geometry.from_step.height, least_rows));
    const Band band = band_of(geometry, {.begin = 0, .end = ceil_div(rows_, bands_)});
    const std::int64_t blocks = ceil_div(channels_, lanes_);
    const std::int64_t of_block = band.from_rows.size() * band.from_columns.size() * pixel_;
    chunks_ = ceil_div(blocks, std::max<std::int64_t>(1, floats_of_chunk / of_block));
    chunk_channels_ = ceil_div(blocks, chunks_) * lanes_;
    chunks_ = ceil_div(channels_, chunk_channels_);
  }

  void convolve(const float* from, const float* weight, bool transposed, const float* bias, float* to) const {
    const Tensor<float> weights = spread_weights(weight, transposed);
    const Tensor<float> biases = filled_up(bias);
    for_items(shape_.batch * bands_, pixels_of(geometry_.to) / bands_, [&](std::int64_t begin, std::int64_t end) {
      Scratch scratch;
      std::vector<std::int64_t> offsets;
      for (std::int64_t item = begin; item < end; ++item) {
        const std::int64_t image = item / chunks_ / bands_;
        const Band band = band_number(item / chunks_ % bands_);
        const Range channels = chunk(item % chunks_);
        const float* pixels = spread(band, channels, from + image * pixels_of(geometry_.from), scratch);
        convolve_band(band, channels, {pixels, weights.data(), bias == nullptr ? nullptr : biases.data()},
                      to + image * pixels_of(geometry_.to), offsets);
      }
    });
  }

  void add_gradient(const float* x, const float* dy, float* dweight) const {
    const std::int64_t parts = std::min<std::int64_t>(shape_.batch, 16);  // for any number of threads
    const std::int64_t of_part = ceil_div(channels_, lanes_) * taps_ * pixel_;
    const auto sums = Tensor<float>::zeros({parts, of_part});
    for_items(parts, shape_.batch / parts * pixels_of(geometry_.to), [&](std::int64_t begin, std::int64_t end) {
      Scratch of_x, of_dy;
      for (std::int64_t item = begin; item < end; ++item) {
        const std::int64_t part = item / chunks_;
        const Range channels = chunk(item % chunks_);
        float* const of_chunk = sums.data() + part * of_part + channels.begin * taps_ * group_;
        for (std::int64_t image = shape_.batch * part / parts; image < shape_.batch * (part + 1) / parts; ++image) {
          for (std::int64_t number = 0; number < bands_; ++number) {
            const Band band = band_number(number);
            const float* pixels = spread(band, channels, x + image * pixels_of(geometry_.from), of_x);
            const float* gradients = spread_gradients(band, channels, dy + image * pixels_of(geometry_.to), of_dy);
            add_gradient_of_band(band, channels, pixels, gradients, of_chunk);
          }
        }
      }
    });
    for (std::int64_t channel = 0; channel < channels_; ++channel) {
      for (std::int64_t k = 0; k < group_ * taps_; ++k) {
        const float* from = sums.data() + place(channel, k % taps_, k / taps_);
        float sum = 0;
        for (std::int64_t part = 0; part < parts; ++part) sum += from[part * of_part];
        dweight[channel * group_ * taps_ + k] = sum;
      }
    }
  }

 private:
  struct Operands {
    const float* pixels;
    const float* weights;
    const float* bias;
  };

  // Calls body(begin, end) for parts of count * chunks_ items. All chunks of an item have `results` elements.
  template <typename Body>
  void for_items(std::int64_t count, std::int64_t results, const Body& body) const {
    const std::int64_t work = std::max<std::int64_t>(results / chunks_ * taps_ * group_, 1);
    parallel_ranges(count * chunks_, 1, least_elements / work, body);
  }

  std::int64_t pixels_of(const Extent2d& extent) const { return extent.height * extent.width * channels_; }
  Band band_number(std::int64_t band) const {
    return band_of(geometry_, {.begin = rows_ * band / bands_, .end = rows_ * (band + 1) / bands_});
  }
  Range chunk(std::int64_t number) const {
    return {.begin = number * chunk_channels_, .end = std::min((number + 1) * chunk_channels_, channels_)};
  }
  // The index of a weight in [block, tap, channel of the group, lane].
  std::int64_t place(std::int64_t channel, std::int64_t tap, std::int64_t of_group) const {
    return (channel / lanes_ * taps_ + tap) * pixel_ + of_group * lanes_ + channel % lanes_;
  }

  // Taps in the order of the phases. `transposed`: lanes are channels of x rather than of y.
  Tensor<float> spread_weights(const float* weight, bool transposed) const {
    auto spread = Tensor<float>::zeros({ceil_div(channels_, lanes_), taps_, group_, lanes_});
    for (std::int64_t channel = 0; channel < channels_; ++channel) {
      for (std::int64_t other = 0; other < group_; ++other) {
        const std::int64_t out = transposed ? channel / group_ * group_ + other : channel;
        const float* from = weight + (out * group_ + (transposed ? channel % group_ : other)) * taps_;
        float* to = spread.data() + place(channel, 0, other);
        for (const Phase& phase : geometry_.phases) {
          for (const Tap& tap : phase.taps) {
            *to = from[tap.index];
            to += pixel_;
          }
        }
      }
    }
    return spread;
  }

  Tensor<float> filled_up(const float* bias) const {
    auto all = Tensor<float>::zeros({ceil_div(channels_, lanes_) * lanes_});
    if (bias != nullptr) std::copy_n(bias, channels_, all.data());
    return all;
  }

  // Spreads pixels of x to [block, from row, from column, group, lane], with zeros outside the image.
  const float* spread(const Band& band, const Range& channels, const float* image, Scratch& scratch) const {
    const Range& columns = band.from_columns;
    const std::int64_t of_block = band.from_rows.size() * columns.size() * pixel_;
    float* const all = scratch.of(ceil_div(channels.size(), lanes_) * of_block);
    const std::int64_t left = std::clamp<std::int64_t>(-columns.begin, 0, columns.size());
    const std::int64_t right = std::clamp<std::int64_t>(geometry_.from.width - columns.begin, left, columns.size());
    for (std::int64_t row = band.from_rows.begin; row < band.from_rows.end; ++row) {
      const bool inside = row >= 0 && row < geometry_.from.height;
      const std::int64_t first = (row * geometry_.from.width + columns.begin + left) * channels_ + channels.begin;
      grouped_kernels().spread({.from = inside ? image + first : nullptr,
                                .zeros_before = inside ? left : columns.size(),
                                .pixels = inside ? right - left : 0,
                                .zeros_after = inside ? columns.size() - right : 0,
                                .step = channels_,
                                .channels = channels.size(),
                                .group = static_cast<int>(group_),
                                .to = all + (row - band.from_rows.begin) * columns.size() * pixel_,
                                .block_step = of_block});
    }
    return all;
  }

  // Spreads gradients to [block, row, column, lane].
  const float* spread_gradients(const Band& band, const Range& channels, const float* image, Scratch& scratch) const {
    const std::int64_t count = band.rows.size() * geometry_.to.width;
    float* const all = scratch.of(ceil_div(channels.size(), lanes_) * lanes_ * count);
    grouped_kernels().spread({.from = image + band.rows.begin * geometry_.to.width * channels_ + channels.begin,
                              .zeros_before = 0,
                              .pixels = count,
                              .zeros_after = 0,
                              .step = channels_,
                              .channels = channels.size(),
                              .group = 1,
                              .to = all,
                              .block_step = count * lanes_});
    return all;
  }

  // The spread pixel that a tap multiplies for the first result of a row.
  std::int64_t offset(const Band& band, const Tap& tap, std::int64_t row) const {
    const std::int64_t from_row = row * geometry_.from_step.height + tap.row - band.from_rows.begin;
    return (from_row * band.from_columns.size() + tap.column - band.from_columns.begin) * pixel_;
  }

  void convolve_band(const Band& band, const Range& channels, const Operands& operands, float* image,
                     std::vector<std::int64_t>& offsets) const {
    const std::int64_t row_step = geometry_.from_step.height * band.from_columns.size() * pixel_;
    const float* weights = operands.weights + channels.begin * taps_ * group_;
    for (const Phase& phase : geometry_.phases) {
      offsets.clear();
      for (const Tap& tap : phase.taps) {
        for (std::int64_t k = 0; k < group_; ++k) offsets.push_back(offset(band, tap, band.rows.begin) + k * lanes_);
      }
      const std::int64_t end = std::min(band.rows.end, ceil_div(geometry_.to.height - phase.row, geometry_.to_step.height));
      // Computes rows with the same taps together.
      for (std::int64_t row = band.rows.begin, next = row; row < end; row = next) {
        const Range taps = taps_inside(geometry_, phase, row);
        do {
          ++next;
        } while (next < end && taps_inside(geometry_, phase, next) == taps);
        const std::int64_t to_pixel = (phase.row + row * geometry_.to_step.height) * geometry_.to.width + phase.column;
        grouped_kernels().convolve({.pixels = operands.pixels + (row - band.rows.begin) * row_step,
                                    .step = geometry_.from_step.width * pixel_,
                                    .row_step = row_step,
                                    .block_step = band.from_rows.size() * band.from_columns.size() * pixel_,
                                    .offsets = offsets.data() + taps.begin * group_,
                                    .weights = weights + taps.begin * pixel_,
                                    .weights_block_step = taps_ * pixel_,
                                    .num_taps = taps.size() * group_,
                                    .bias = operands.bias == nullptr ? nullptr : operands.bias + channels.begin,
                                    .rows = next - row,
                                    .columns = ceil_div(geometry_.to.width - phase.column, geometry_.to_step.width),
                                    .channels = channels.size(),
                                    .y = image + to_pixel * channels_ + channels.begin,
                                    .y_step = geometry_.to_step.width * channels_,
                                    .y_row_step = geometry_.to_step.height * geometry_.to.width * channels_});
      }
      weights += static_cast<std::int64_t>(phase.taps.size()) * pixel_;
    }
  }

  void add_gradient_of_band(const Band& band, const Range& channels, const float* pixels, const float* gradients,
                            float* sums) const {
    const std::int64_t line = band.from_columns.size() * pixel_;
    const std::vector<Tap>& taps = geometry_.phases.front().taps;
    const std::int64_t of_row = shape_.kernel.width * group_;  // sums of a row of the kernel
    const std::int64_t kernel_rows = std::max<std::int64_t>(1, most_gradient_taps / of_row);
    for (std::int64_t block = 0; block < ceil_div(channels.size(), lanes_); ++block) {
      for (std::int64_t first = 0; first < shape_.kernel.height; first += kernel_rows) {
        const std::int64_t last = std::min(first + kernel_rows, shape_.kernel.height) - 1;
        const Range rows = rows_inside(geometry_, band,
                                       {.begin = first * shape_.dilation.height - shape_.padding.height,
                                        .end = last * shape_.dilation.height - shape_.padding.height + 1});
        if (rows.size() <= 0) continue;
        const std::int64_t all = (last - first + 1) * of_row;
        const std::int64_t pieces = ceil_div(all, most_gradient_taps);
        for (std::int64_t piece = 0; piece < pieces; ++piece) {
          const Range of_piece{.begin = first * of_row + all * piece / pieces,
                               .end = first * of_row + all * (piece + 1) / pieces};
          const float* addresses[most_gradient_taps];
          for (std::int64_t k = of_piece.begin; k < of_piece.end; ++k) {
            addresses[k - of_piece.begin] =
                pixels + offset(band, taps[static_cast<std::size_t>(k / group_)], rows.begin) + k % group_ * lanes_;
          }
          grouped_kernels().add_gradient({.taps = addresses,
                                          .num_taps = of_piece.size(),
                                          .step = geometry_.from_step.width * pixel_,
                                          .row_step = geometry_.from_step.height * line,
                                          .rows = rows.size(),
                                          .columns = geometry_.to.width,
                                          .dy = gradients + (rows.begin - band.rows.begin) * geometry_.to.width * lanes_,
                                          .sums = sums + of_piece.begin * lanes_});
        }
      }
      pixels += band.from_rows.size() * line;
      gradients += band.rows.size() * geometry_.to.width * lanes_;
      sums += taps_ * pixel_;
    }
  }

  const ConvolutionShape& shape_;
  const Geometry& geometry_;
  std::int64_t channels_;
  std::int64_t group_;  // channels of a group
  std::int64_t lanes_;
  std::int64_t pixel_;  // floats of a spread pixel in a block
  std::int64_t taps_;
  std::int64_t rows_;  // most rows of a phase
  std::int64_t bands_;
  std::int64_t chunks_;
  std::int64_t chunk_channels_;
};

}  // namespace
}  // namespace grouped

namespace {

bool is_depthwise(const ConvolutionShape& s) { return s.groups > 1 && s.groups == s.in && s.in == s.out; }

bool has_narrow_groups(const ConvolutionShape& s) {
  const std::int64_t group = s.in / s.groups;
  return s.groups > 1 && s.in == s.out && (group == 2 || group == 4);
}

}  // namespace

// Measured by benchmarks/products with kernels from 1 x 3 to 31 x 1. oneDNN has special code for some depthwise kernels, which
// is faster, as spreading pixels costs more than the few products. Its general code takes 3 to 500 times as long.
bool suits_grouped(const ConvolutionShape& s) {
  const std::int64_t most_width = device::current_isa() == device::Isa::avx512 ? 31 : 7;
  return has_narrow_groups(s) || (is_depthwise(s) && s.kernel.width > most_width);
}

bool data_suits_grouped(const ConvolutionShape& s) {
  return has_narrow_groups(s) || (is_depthwise(s) && s.kernel.width >= 7 && s.kernel.height >= 7);
}

bool weight_suits_grouped(const ConvolutionShape& s) {
  return has_narrow_groups(s) || (is_depthwise(s) && (s.kernel.width > 3 || s.kernel.height > 15));
}

void grouped_forward(const ConvolutionShape& shape, const float* x, const float* weight, const float* bias, float* y) {
  grouped::GroupedConvolution(shape, grouped::geometry_of_forward(shape)).convolve(x, weight, false, bias, y);
}

void grouped_data(const ConvolutionShape& shape, const float* dy, const float* weight, float* dx) {
  grouped::GroupedConvolution(shape, grouped::geometry_of_data(shape)).convolve(dy, weight, true, nullptr, dx);
}

void grouped_weight(const ConvolutionShape& shape, const float* x, const float* dy, float* dweight) {
  grouped::GroupedConvolution(shape, grouped::geometry_of_forward(shape)).add_gradient(x, dy, dweight);
}

}  // namespace trireme::ops
