#pragma once

#include <memory>
#include <optional>

#include "options.hpp"
#include "training/training.hpp"
#include "trireme/data/image_loader.hpp"
#include "trireme/data/read_images.hpp"
#include "trireme/trireme.hpp"

// One rank's part of a training run. Model: models::Cnn or models::ResNet of Float32, MixedBfloat16 or MixedFloat16.
template <typename Model>
class Trainer {
 public:
  // Collective: a wrong option or file is the same error on all ranks.
  Trainer(const Options& options, const trireme::Group& world);

  void run();

 private:
  using D = typename Model::Device;

  void open();  // what may fail on one rank alone
  trireme::data::ImageLoader loader(const trireme::data::ImageDataset& images, trireme::data::ImageOrder order) const;
  void backward(trireme::parallel::Step& step);
  Validation validate() const;
  void print_start() const;

  Options options_;
  trireme::Group world_;
  std::optional<trireme::data::Images> images_;
  trireme::data::Normalization normalization_;
  std::optional<trireme::data::ImageLoader> loader_;
  std::unique_ptr<Model> model_;
};
