#include "data/images/image_levels.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace trireme::data {
namespace {

constexpr int num_levels = 256;

int level_of(float value) { return static_cast<int>(std::clamp(value, 0.0f, 1.0f) * (num_levels - 1) + 0.5f); }
float value_of(int level) { return static_cast<float>(level) / (num_levels - 1); }

// Calls change(value) for each value of a channel.
template <typename Change>
void for_each_value(Image image, std::int64_t channel, const Change& change) {
  const auto channels = static_cast<std::size_t>(image.shape.channels);
  for (auto i = static_cast<std::size_t>(channel); i < image.pixels.size(); i += channels) change(image.pixels[i]);
}

}  // namespace

void posterize(Image image, int bits) {
  const int kept = num_levels - (num_levels >> bits);
  for (float& value : image.pixels) value = value_of(level_of(value) & kept);
}

void solarize(Image image, float threshold) {
  const float first = threshold / (num_levels - 1);  // computed as in read_shifted(), so that equal levels compare equal
  for (float& value : image.pixels) value = value < first ? value : 1 - value;
}

void autocontrast(Image image) {
  for (std::int64_t channel = 0; channel < image.shape.channels; ++channel) {
    float least = 1;
    float most = 0;
    for_each_value(image, channel, [&](float value) {
      least = std::min(least, value);
      most = std::max(most, value);
    });
    if (most <= least) continue;
    for_each_value(image, channel, [&](float& value) { value = (value - least) / (most - least); });
  }
}

void equalize(Image image) {
  for (std::int64_t channel = 0; channel < image.shape.channels; ++channel) {
    std::array<std::int64_t, num_levels> counts = {};
    for_each_value(image, channel, [&](float value) { ++counts[static_cast<std::size_t>(level_of(value))]; });
    const auto last = std::ranges::find_if(counts.rbegin(), counts.rend(), [](std::int64_t count) { return count > 0; });
    const std::int64_t step = (std::accumulate(last, counts.rend(), std::int64_t{0}) - *last) / (num_levels - 1);
    if (step == 0) continue;
    std::array<float, num_levels> values;
    std::int64_t below = step / 2;
    for (std::size_t level = 0; level < counts.size(); ++level) {
      values[level] = value_of(static_cast<int>(std::min<std::int64_t>(below / step, num_levels - 1)));
      below += counts[level];
    }
    for_each_value(image, channel, [&](float& value) { value = values[static_cast<std::size_t>(level_of(value))]; });
  }
}

void adjust_sharpness(Image image, float factor) {
  constexpr float weight = 1.0f / 13;  // the weight of each neighbour; the pixel itself has five times this
  const auto [height, width, channels] = image.shape;
  const std::int64_t line = width * channels;
  const std::vector<float> before(image.pixels.begin(), image.pixels.end());
  for (std::int64_t y = 1; y < height - 1; ++y) {
    for (std::int64_t i = y * line + channels; i < (y + 1) * line - channels; ++i) {
      const float* at = before.data() + i;
      float sum = 4 * *at;
      for (const std::int64_t down : {-line, std::int64_t{0}, line})
        sum += at[down - channels] + at[down] + at[down + channels];
      image.pixels[static_cast<std::size_t>(i)] = std::clamp(factor * *at + (1 - factor) * weight * sum, 0.0f, 1.0f);
    }
  }
}

}  // namespace trireme::data
