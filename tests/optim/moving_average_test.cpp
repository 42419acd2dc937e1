#include "trireme/optim/moving_average.hpp"

#include <algorithm>

#include "catch.hpp"
#include "optim/weights.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;
using tests::Weights;

TEST_CASE("an exponential moving average follows the weights and takes their place") {
  Weights weights;
  const auto values = weights.store.values<float>().span();
  optim::ExponentialMovingAverage<Float32> average(weights.model, {.decay = 0.9, .warms_up = false});
  optim::ExponentialMovingAverage<Float32> warm(weights.model, {.decay = 0.9});
  std::ranges::fill(values, 1.0F);  // as an initialisation or a file does, after the averages were made
  CHECK(average.average().data()[0] == 1);
  average.swap();
  CHECK(values[0] == 1);
  average.swap();
  average.update();
  warm.update();
  CHECK(average.average().data()[0] == 1);
  std::ranges::fill(values, 3.0F);
  for (int update = 0; update < 2; ++update) {
    average.update();
    warm.update();
  }
  CHECK(average.average().data()[0] == Approx(3 - 2 * 0.9 * 0.9));
  CHECK(warm.average().data()[0] == Approx(3 - 2 * (3.0 / 12) * (4.0 / 13)));
  average.swap();
  CHECK(values[0] == Approx(3 - 2 * 0.9 * 0.9));
  CHECK_THROWS_AS(average.update(), Error);
  average.swap();
  CHECK(values[0] == 3);
  CHECK_THROWS_AS(optim::ExponentialMovingAverage<Float32>(weights.model, {.decay = 1}), Error);
}

TEST_CASE("a moving average is neither saved nor loaded while its values are the model's") {
  Weights weights;
  optim::ExponentialMovingAverage<Float32> average(weights.model);
  State state;
  weights.store.add_to(state, "model.");
  average.add_to(state);
  state.prepare();
  average.swap();
  CHECK_THROWS_WITH(state.prepare(),
                    ContainsSubstring("saved or loaded while it is swapped into the model; call swap() first"));
  State other;
  CHECK_THROWS_AS(average.add_to(other), Error);
  average.swap();
  state.prepare();
}

TEST_CASE("a moving average that was made before the model's values keeps nothing of what was there") {
  Weights weights;
  std::ranges::fill(weights.store.values<float>().span(), 0.0F);
  optim::ExponentialMovingAverage<Float32> average(weights.model);
  std::ranges::fill(weights.store.values<float>().span(), 5.0F);
  State saved;
  average.add_to(saved);
  saved.prepare();  // before the first update a checkpoint keeps the values
  CHECK(*static_cast<const float*>(saved.tensors().front().pieces.front().data) == 5);
  for (int update = 0; update < 20; ++update) average.update();
  for (const float value : average.average().span()) CHECK(value == 5);
  average.swap();
  average.swap();
  CHECK(weights.store.values<float>().data()[0] == 5);
}
