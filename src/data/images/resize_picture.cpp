#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "data/images/decode_picture.hpp"

namespace trireme::data {
namespace {

// Weights are fixed-point numbers in units of 2^-22: a sum of weight * byte fits into 32 bits.
constexpr int weight_bits = 32 - 8 - 2;

// The input pixels of an output pixel, from `first` on, and their weights.
struct Taps {
  std::int64_t first;
  std::vector<std::int32_t> weights;
};

// The weight of an input pixel by its distance: a triangle, or the cubic of Keys 1981 with a = -0.5.
double weight_at(double distance, Resampling resampling) {
  const double x = std::abs(distance);
  if (resampling == Resampling::bilinear) return x < 1 ? 1 - x : 0;
  constexpr double a = -0.5;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

// The taps of each of `to` output pixels on a line of `from` input pixels. Distances are in pixels of the smaller image.
std::vector<Taps> taps_of(std::int64_t from, std::int64_t to, Resampling resampling) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double unit = std::max(scale, 1.0);
  const double support = resampling == Resampling::bilinear ? unit : 2 * unit;
  std::vector<Taps> all;
  for (std::int64_t at = 0; at < to; ++at) {
    const double center = (static_cast<double>(at) + 0.5) * scale;
    const std::int64_t first = std::max<std::int64_t>(0, static_cast<std::int64_t>(center - support + 0.5));
    const std::int64_t end = std::min(from, static_cast<std::int64_t>(center + support + 0.5));
    std::vector<double> weights;
    double sum = 0;
    for (std::int64_t pixel = first; pixel < end; ++pixel) {
      weights.push_back(weight_at((static_cast<double>(pixel) - center + 0.5) * (1 / unit), resampling));
      sum += weights.back();
    }
    Taps taps{.first = first, .weights = {}};
    for (const double weight : weights) {
      taps.weights.push_back(static_cast<std::int32_t>(std::copysign(0.5, weight) + weight / sum * (1 << weight_bits)));
    }
    all.push_back(std::move(taps));
  }
  return all;
}

constexpr std::int32_t half = 1 << (weight_bits - 1);

std::uint8_t byte_of(std::int32_t sum) { return static_cast<std::uint8_t>(std::clamp(sum >> weight_bits, 0, 255)); }

// Resizes a line of pixels with `channels` channels.
template <int channels>
void resample_line(const std::uint8_t* line, const std::vector<Taps>& all, std::uint8_t* into) {
  for (const Taps& taps : all) {
    std::array<std::int32_t, channels> sums;
    sums.fill(half);
    const std::uint8_t* pixel = line + taps.first * channels;
    for (const std::int32_t weight : taps.weights) {
      for (std::int32_t& sum : sums) sum += *pixel++ * weight;
    }
    for (const std::int32_t sum : sums) *into++ = byte_of(sum);
  }
}

// Resizes one dim: `outer` lines of pixels of `inner` bytes.
std::vector<std::uint8_t> resample(const std::vector<std::uint8_t>& pixels, std::int64_t outer, std::int64_t from,
                                   std::int64_t to, std::int64_t inner, Resampling resampling) {
  std::vector<std::uint8_t> result(static_cast<std::size_t>(outer * to * inner));
  const std::vector<Taps> all = taps_of(from, to, resampling);
  if (inner == 1 || inner == 3) {
    const auto resample_one = inner == 1 ? resample_line<1> : resample_line<3>;
    for (std::int64_t line = 0; line < outer; ++line) {
      resample_one(pixels.data() + line * from * inner, all, result.data() + line * to * inner);
    }
    return result;
  }
  std::vector<std::int32_t> sums(static_cast<std::size_t>(inner));
  std::uint8_t* into = result.data();
  for (std::int64_t line = 0; line < outer; ++line) {
    for (const Taps& taps : all) {
      std::ranges::fill(sums, half);
      const std::uint8_t* pixel = pixels.data() + (line * from + taps.first) * inner;
      for (const std::int32_t weight : taps.weights) {
        for (std::int32_t& sum : sums) sum += *pixel++ * weight;
      }
      for (const std::int32_t sum : sums) *into++ = byte_of(sum);
    }
  }
  return result;
}

// The input pixel at the centre of each of `to` output pixels. Adds up the centres as PIL does, to round alike.
std::vector<std::int64_t> nearest_places(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  std::vector<std::int64_t> places;
  double middle = scale * 0.5;
  for (std::int64_t at = 0; at < to; ++at, middle += scale) {
    places.push_back(std::min(static_cast<std::int64_t>(middle), from - 1));
  }
  return places;
}

Picture nearest(const Picture& picture, std::int64_t height, std::int64_t width) {
  const ImageShape& shape = picture.shape;
  Picture result{.shape = {.height = height, .width = width, .channels = shape.channels}, .pixels = {}};
  result.pixels.reserve(static_cast<std::size_t>(result.shape.numel()));
  const std::vector<std::int64_t> columns = nearest_places(shape.width, width);
  for (const std::int64_t row : nearest_places(shape.height, height)) {
    for (const std::int64_t column : columns) {
      const std::uint8_t* pixel = picture.pixels.data() + (row * shape.width + column) * shape.channels;
      result.pixels.insert(result.pixels.end(), pixel, pixel + shape.channels);
    }
  }
  return result;
}

}  // namespace

Picture resized(Picture picture, std::int64_t height, std::int64_t width, Resampling resampling) {
  ImageShape& shape = picture.shape;
  const auto resize_columns = [&] {
    if (height == shape.height) return;
    picture.pixels = resample(picture.pixels, 1, shape.height, height, shape.width * shape.channels, resampling);
    shape.height = height;
  };
  if (resampling == Resampling::nearest) return nearest(picture, height, width);
  // The first pass rounds to bytes, so the order must be PIL 13's: columns first if the height shrinks by more than twice what
  // the width does.
  const bool columns_first = shape.height > height && shape.height - height > 2 * (shape.width - width);
  if (columns_first) resize_columns();
  if (width != shape.width) {
    picture.pixels = resample(picture.pixels, shape.height, shape.width, width, shape.channels, resampling);
    shape.width = width;
  }
  resize_columns();
  return picture;
}

std::vector<std::uint8_t> resized_box(std::span<const std::uint8_t> pixels, const ImageShape& shape, const Box& box,
                                      std::int64_t height, std::int64_t width) {
  Picture part{.shape = {.height = box.height, .width = box.width, .channels = shape.channels}, .pixels = {}};
  part.pixels.reserve(static_cast<std::size_t>(part.shape.numel()));
  for (std::int64_t y = box.top; y < box.top + box.height; ++y) {
    const auto line = pixels.subspan(static_cast<std::size_t>((y * shape.width + box.left) * shape.channels),
                                     static_cast<std::size_t>(box.width * shape.channels));
    part.pixels.insert(part.pixels.end(), line.begin(), line.end());
  }
  return resized(std::move(part), height, width).pixels;
}

Picture centre_of(const Picture& picture, std::int64_t height, std::int64_t width) {
  const ImageShape& shape = picture.shape;
  Picture centre{.shape = {.height = height, .width = width, .channels = shape.channels}, .pixels = {}};
  auto row = picture.pixels.begin() + ((shape.height - height) / 2 * shape.width + (shape.width - width) / 2) * shape.channels;
  for (std::int64_t y = 0; y < height; ++y, row += shape.width * shape.channels) {
    centre.pixels.insert(centre.pixels.end(), row, row + width * shape.channels);
  }
  return centre;
}

}  // namespace trireme::data
