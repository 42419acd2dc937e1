#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "data/decode_picture.hpp"

namespace trireme::data {
namespace {

// Weights are whole numbers of 2^-22: a sum of them and bytes fits into 32 bits.
constexpr int weight_bits = 32 - 8 - 2;

// The pixels that a pixel of the result is a mean of.
struct Taps {
  std::int64_t first;
  std::vector<std::int32_t> weights;
};

// Of each of `to` pixels along a line of `from`: a triangle around its place, as wide as a pixel of the larger of the two.
std::vector<Taps> taps_of(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0);
  std::vector<Taps> all;
  for (std::int64_t at = 0; at < to; ++at) {
    const double center = (static_cast<double>(at) + 0.5) * scale;
    const std::int64_t first = std::max<std::int64_t>(0, static_cast<std::int64_t>(center - support + 0.5));
    const std::int64_t end = std::min(from, static_cast<std::int64_t>(center + support + 0.5));
    std::vector<double> weights;
    double sum = 0;
    for (std::int64_t pixel = first; pixel < end; ++pixel) {
      const double distance = std::abs((static_cast<double>(pixel) - center + 0.5) * (1 / support));
      weights.push_back(distance < 1 ? 1 - distance : 0);
      sum += weights.back();
    }
    Taps taps{.first = first, .weights = {}};
    for (const double weight : weights) {
      taps.weights.push_back(static_cast<std::int32_t>(0.5 + weight / sum * (1 << weight_bits)));
    }
    all.push_back(std::move(taps));
  }
  return all;
}

// Along one of the dims: `outer` lines, whose pixels are `inner` bytes.
std::vector<std::uint8_t> resample(const std::vector<std::uint8_t>& pixels, std::int64_t outer, std::int64_t from,
                                   std::int64_t to, std::int64_t inner) {
  std::vector<std::uint8_t> result(static_cast<std::size_t>(outer * to * inner));
  std::vector<std::int32_t> sums(static_cast<std::size_t>(inner));
  const std::vector<Taps> all = taps_of(from, to);
  std::uint8_t* into = result.data();
  for (std::int64_t line = 0; line < outer; ++line) {
    for (const Taps& taps : all) {
      std::ranges::fill(sums, 1 << (weight_bits - 1));
      const std::uint8_t* pixel = pixels.data() + (line * from + taps.first) * inner;
      for (const std::int32_t weight : taps.weights) {
        for (std::int32_t& sum : sums) sum += *pixel++ * weight;
      }
      for (const std::int32_t sum : sums) *into++ = static_cast<std::uint8_t>(std::clamp(sum >> weight_bits, 0, 255));
    }
  }
  return result;
}

}  // namespace

Picture resized(Picture picture, std::int64_t height, std::int64_t width) {
  ImageShape& shape = picture.shape;
  const auto resize_columns = [&] {
    if (height == shape.height) return;
    picture.pixels = resample(picture.pixels, 1, shape.height, height, shape.width * shape.channels);
    shape.height = height;
  };
  // Bytes are rounded in between: the order is PIL 13's.
  const bool columns_first = height < shape.height && width > shape.width;
  if (columns_first) resize_columns();
  if (width != shape.width) {
    picture.pixels = resample(picture.pixels, shape.height, shape.width, width, shape.channels);
    shape.width = width;
  }
  resize_columns();
  return picture;
}

}  // namespace trireme::data
