#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trireme/core/range.hpp"
#include "trireme/files/safetensors.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme::tests {

// The tensor "images" of a reference run's batches: bytes [steps, batch, height, width] or [steps, batch, channels, height,
// width]. Read normalised, (byte / 255 - mean) / std for each channel, and channels last.
class ImageBatches {
 public:
  ImageBatches(const SafetensorsFile& file, std::vector<double> mean, std::vector<double> std);
  ImageBatches(const SafetensorsFile& file, double mean, double std);  // the same for all channels

  std::int64_t num_batches() const { return num_batches_; }
  std::int64_t batch() const { return batch_; }
  std::int64_t height() const { return height_; }
  std::int64_t width() const { return width_; }
  std::int64_t channels() const { return channels_; }

  // Some samples of one step.
  Tensor<float> images(std::int64_t step, Range samples) const;

 private:
  std::vector<std::int64_t> images_;
  std::vector<double> mean_;
  std::vector<double> std_;
  std::int64_t num_batches_;
  std::int64_t batch_;
  std::int64_t height_;
  std::int64_t width_;
  std::int64_t channels_;
};

}  // namespace trireme::tests
