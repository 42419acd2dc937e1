#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "trireme/core/philox.hpp"
#include "trireme/data/sources/batch_share.hpp"
#include "trireme/data/sources/permutation.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/trainer/run.hpp"

// A small model and its data, for the tests of runs.
namespace trireme::test {

struct PointBatch {
  Tensor<float> x;
  Tensor<std::int32_t> labels;
  std::int64_t first_sample;
};

// Points of the plane in three classes; a point depends only on its number.
inline PointBatch points(const std::vector<std::int64_t>& numbers, std::int64_t first_sample) {
  const auto rows = static_cast<std::int64_t>(numbers.size());
  PointBatch batch{Tensor<float>({rows, 2}), Tensor<std::int32_t>({rows}), first_sample};
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t number = numbers[static_cast<std::size_t>(row)];
    for (std::int64_t dim = 0; dim < 2; ++dim) {
      batch.x.data()[2 * row + dim] = static_cast<float>(philox_normal(7, 8, static_cast<std::uint64_t>(2 * number + dim))) +
                                      static_cast<float>(number % 3);
    }
    batch.labels.data()[row] = static_cast<std::int32_t>(number % 3);
  }
  return batch;
}

// 60 of them an epoch, shuffled; without a gap between epochs.
class PointLoader {
 public:
  static constexpr std::int64_t samples = 60;

  explicit PointLoader(const data::BatchOptions& options) : seed_(options.seed), share_(options) {}

  std::int64_t num_micro_batches() const { return share_.num_micro_batches(); }
  std::int64_t batch_size() const { return share_.batch_size(); }
  std::int64_t samples_per_epoch() const { return samples; }
  std::int64_t samples_of_steps(std::int64_t steps) const { return share_.samples_of_steps(steps); }
  PointBatch load(std::int64_t step, std::int64_t micro_batch = 0) const {
    const std::int64_t first = share_.first_sample(step, micro_batch);
    std::vector<std::int64_t> numbers;
    for (std::int64_t sample = first; sample < first + share_.micro_batch_size(step); ++sample) {
      const data::Permutation order(samples, seed_, static_cast<std::uint64_t>(sample / samples));
      numbers.push_back(order(sample % samples));
    }
    return points(numbers, first);
  }

 private:
  std::uint64_t seed_;
  data::BatchShare share_;
};

// The points after the training points.
struct TestPoints {
  std::int64_t count = 50;

  std::int64_t size() const { return count; }
  PointBatch collate(std::span<const std::int64_t> items, std::int64_t first_sample) const {
    std::vector<std::int64_t> numbers;
    for (const std::int64_t item : items) numbers.push_back(PointLoader::samples + item);
    return points(numbers, first_sample);
  }
};

struct PointNet : nn::Module<Float32> {
  using Module::Module;
  nn::Linear<Float32> hidden{*this, "hidden", {.in = 2, .out = 24}};
  nn::Dropout<Float32> drop{*this, "drop", 0.2};
  nn::Linear<Float32> output{*this, "output", {.in = 24, .out = 3}};

  Variable<float> forward(const PointBatch& batch) const {
    return output.forward(drop.forward(relu(hidden.forward(Variable<float>(batch.x)))));
  }
  Loss<float> loss(const Variable<float>& y, const PointBatch& batch) const { return cross_entropy(y, batch.labels); }
};

inline std::vector<float> values_of(const PointNet& net) {
  std::vector<float> values;
  for (int index = 0; index < net.store().num_parameters(); ++index) {
    const Tensor<float> one = net.store().values<float>(index);
    values.insert(values.end(), one.data(), one.data() + one.numel());
  }
  return values;
}

// A folder of its own for each test.
struct RunFolder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("trainer_test." + std::to_string(getpid()) + "." + std::to_string(next()));
  ~RunFolder() { std::filesystem::remove_all(path); }

 private:
  static int next() {
    static int number = 0;
    return number++;
  }
};

}  // namespace trireme::test
