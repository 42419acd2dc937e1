#pragma once

#include <cstdint>

#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/loss.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/nn/layers/layers.hpp"

// A small model with dropout and a buffer, and its batches, for the tests of steps.
namespace trireme::test {

inline constexpr std::int64_t rows = 4;  // of a micro-batch

struct Batch {
  std::int64_t first_sample = 0;
  Tensor<float> x = {};
  Tensor<std::int32_t> labels = {};
};

inline Batch batch_of(const Group& world, std::int64_t step, int micro_batches, int micro) {
  Batch batch{.first_sample = ((step * world.size() + world.rank()) * micro_batches + micro) * rows,
              .x = Tensor<float>({rows, 6}),
              .labels = Tensor<std::int32_t>({rows})};
  for (std::int64_t i = 0; i < batch.x.numel(); ++i) {
    batch.x.data()[i] = static_cast<float>(philox_normal(1, 2, static_cast<std::uint64_t>(batch.first_sample * 6 + i)));
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    batch.labels.data()[row] = static_cast<std::int32_t>((batch.first_sample + row) % 3);
  }
  return batch;
}

// It counts its forward passes in a buffer, which models that train with fixed bits can't have.
template <typename P>
struct Net : nn::Module<P> {
  explicit Net(bool counts = true) {
    if (counts) passes = this->add_buffer("passes", {1}, 0, {.reduction = BufferReduction::max});
  }

  nn::Linear<P> hidden{*this, "hidden", {.in = 6, .out = 40}};
  nn::Dropout<P> drop{*this, "drop", 0.3};
  nn::Linear<P> output{*this, "output", {.in = 40, .out = 3}};
  Buffer<float> passes;

  Loss<float> loss(const Batch& batch) const {
    if (passes.defined()) passes.value().data()[0] += 1;
    const auto x = cast<typename P::Compute>(Variable<float>(batch.x));
    return cross_entropy(output.forward(drop.forward(relu(hidden.forward(x)))), batch.labels);
  }
};

}  // namespace trireme::test
