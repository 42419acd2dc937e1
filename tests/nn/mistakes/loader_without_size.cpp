// wanted: a loader needs a function batch_size\(\) const: the samples of a step, of all ranks together
#include "trireme/trainer/run.hpp"

using namespace trireme;

struct Batch {
  Tensor<float> x;
  std::int64_t first_sample = 0;
};
struct Noise {
  std::int64_t num_micro_batches() const { return 1; }
  std::int64_t samples_per_epoch() const { return 1000; }
  Batch load(std::int64_t, std::int64_t = 0) const { return {}; }
};

void train(trainer::Run& run, const Noise& noise) {
  for (auto& step : run.steps(noise)) step.finish();
}
