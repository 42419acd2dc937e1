#include "trireme/data/loaders/image_loader.hpp"

#include <omp.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "data/images/augment.hpp"
#include "data/images/mix.hpp"
#include "trireme/core/first_exception.hpp"
#include "trireme/core/stopwatch.hpp"
#include "trireme/data/sources/permutation.hpp"

namespace trireme::data {

struct ImageLoader::Seconds {
  double reading = 0;
  double decoding = 0;
  double augmenting = 0;
};

struct ImageLoader::Spent {
  std::mutex mutex;
  Seconds seconds;

  void add(const Seconds& more) {
    const std::scoped_lock lock(mutex);
    seconds.reading += more.reading;
    seconds.decoding += more.decoding;
    seconds.augmenting += more.augmenting;
  }
};

ImageLoader::ImageLoader(ImageDataset dataset, const ImageLoaderOptions& options)
    : dataset_(std::move(dataset)), options_(options), share_(options.batch), spent_(std::make_shared<Spent>()) {
  require(dataset_.count() > 0, "a data set without images cannot be loaded");
  require(share_.has_one_size() || options.order == ImageOrder::shuffled,
          "images in their order are for evaluation, in batches of one size: leave batch_size_from_step out");
  check(options.normalization, dataset_.shape().channels);
  check(options.augmentation, dataset_.shape());
}

LoaderReport ImageLoader::report() const {
  const std::scoped_lock lock(spent_->mutex);
  const auto& [reading, decoding, augmenting] = spent_->seconds;
  return {.reading_seconds = reading,
          .decoding_seconds = decoding,
          .augmenting_seconds = augmenting,
          .num_bad_samples = dataset_.num_bad_samples()};
}

std::int64_t ImageLoader::image_of(std::int64_t sample) const {
  if (options_.order == ImageOrder::sequential) return sample;
  const Permutation order(dataset_.count(), options_.batch.seed, static_cast<std::uint64_t>(sample / dataset_.count()));
  return order(sample % dataset_.count());
}

// The previous sample of the step; for the first sample, the last one.
std::int64_t ImageLoader::partner_of(std::int64_t sample, std::int64_t step) const {
  if (sample > share_.samples_of_steps(step)) return sample - 1;
  const std::int64_t last = share_.samples_of_steps(step + 1) - 1;
  return options_.order == ImageOrder::sequential ? std::min(last, dataset_.count() - 1) : last;
}

ImageBatch ImageLoader::load(std::int64_t step, std::int64_t micro_batch) const {
  const ImageShape& shape = dataset_.shape();
  const std::int64_t rows = share_.micro_batch_size(step);
  const std::int64_t first = share_.first_sample(step, micro_batch);
  std::int64_t valid = rows;
  if (options_.order == ImageOrder::sequential) {
    require(step < steps_per_epoch(), "step {} does not exist: {} images in their order are {} steps", step, dataset_.count(),
            steps_per_epoch());
    valid = std::clamp<std::int64_t>(dataset_.count() - first, 0, rows);
  }
  ImageBatch batch{.images = Tensor<float>({rows, shape.height, shape.width, shape.channels}),
                   .labels = Tensor<std::int32_t>::full({rows}, no_label),
                   .first_sample = first,
                   .valid = valid};
  const bool mixed = mixes(options_.augmentation);
  std::vector<float> before_first(mixed && valid > 0 ? static_cast<std::size_t>(shape.numel()) : 0);
  const std::int64_t partner = partner_of(first, step);
  std::int32_t partner_label = no_label;
  FirstException thrown;
  const std::int64_t first_row = before_first.empty() ? 0 : -1;
  // Images take unequal times to decode, and equal times otherwise.
  const std::int64_t chunk = dataset_.is_in_memory() ? (rows - first_row) / omp_get_max_threads() + 1 : 4;
#pragma omp parallel if (rows * shape.numel() >= least_values)
  {
    const Stopwatch all;
    Seconds spent;  // of this thread
#pragma omp for schedule(dynamic, chunk) nowait
    for (std::int64_t row = first_row; row < rows; ++row) {
      thrown.guard([&] {
        if (row < 0) {
          partner_label = read(partner, before_first, spent);
          return;
        }
        const std::span<float> into(batch.images.data() + row * shape.numel(), static_cast<std::size_t>(shape.numel()));
        if (row < valid) {
          batch.labels.data()[row] = read(first + row, into, spent);
        } else {
          std::ranges::fill(into, 0.0f);
        }
      });
    }
    spent.augmenting = all.seconds() - spent.reading - spent.decoding;
    spent_->add(spent);
  }
  thrown.rethrow();
  if (mixed) {
    mix(batch, {.pixels = before_first, .label = partner_label}, dataset_.classes(), options_.augmentation,
        options_.batch.seed);
  }
  return batch;
}

std::int32_t ImageLoader::read(std::int64_t sample, std::span<float> into, Seconds& spent) const {
  const Image pixels{.pixels = into, .shape = dataset_.shape()};
  const std::uint64_t seed = options_.batch.seed;
  const LabelledPixels stored = read_pixels(dataset_, image_of(sample), crop_rule(options_.augmentation, seed, sample));
  read_augmented(stored.pixels, options_.augmentation, seed, sample, pixels);
  normalize(pixels, options_.normalization);
  if (const auto& erasing = options_.augmentation.random_erasing) erase_box(*erasing, seed, sample, pixels);
  spent.reading += stored.reading_seconds;
  spent.decoding += stored.decoding_seconds;
  return stored.label;
}

}  // namespace trireme::data
