#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trireme/core/safetensors.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme::tests {

// The tensor "images" of a reference run's batches: bytes [steps, batch, height, width] or [steps, batch, channels, height,
// width]. Read normalised, (byte / 255 - mean) / std for each channel, and channels last.
class ImageBatches {
 public:
  ImageBatches(const SafetensorsFile& file, std::vector<double> mean, std::vector<double> std);

  std::int64_t batch() const { return batch_; }
  std::int64_t height() const { return height_; }
  std::int64_t width() const { return width_; }
  std::int64_t channels() const { return channels_; }

  // The samples [first, first + count) of one step.
  Tensor<float> images(std::int64_t step, std::int64_t first, std::int64_t count) const;

 private:
  std::vector<std::int64_t> images_;
  std::vector<double> mean_;
  std::vector<double> std_;
  std::int64_t batch_;
  std::int64_t height_;
  std::int64_t width_;
  std::int64_t channels_;
};

}  // namespace trireme::tests
