#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "trireme/autograd/tape.hpp"
#include "trireme/core/export.hpp"
#include "trireme/nn/base/flow.hpp"

namespace trireme TRIREME_EXPORT {
namespace parallel {

// A micro-batch in a stage, from its forward pass to its last gradient.
struct StagePass {
  std::unique_ptr<Tape> tape = {};
  nn::PackedFlow input = {};                       // until forward() takes it
  std::vector<nn::FlowPart> input_gradients = {};  // of the parts with a gradient, in order; no memory if there is no gradient
  nn::PackedFlow output = {};                      // until it is sent; empty on the last stage
  nn::GiveGradients give = {};                     // passes gradients to the output's parts that have a gradient
  std::function<void()> backward = {};             // on the last stage: the backward pass from the loss
  std::int64_t nominal_targets = 0;                // of the loss
  // On other stages, begins the backward pass of the losses that their layers added, if there are any.
  std::function<void(const Tape& tape, std::int64_t nominal_targets)> begin_added = {};
};

// The interface by which a schedule runs the stages of a model and the micro-batches of a step. parallel::Step implements it
// for any nn::Staged.
class StagePasses {
 public:
  StagePasses() = default;
  StagePasses(const StagePasses&) = delete;
  StagePasses& operator=(const StagePasses&) = delete;
  virtual ~StagePasses() = default;

  virtual int num_micro_batches() const = 0;
  virtual TapeOptions names(int micro_batch) const = 0;  // identify its random numbers
  virtual void listen(Tape& tape) = 0;                   // before the last backward pass of a micro-batch on this rank

  // Takes pass.input and sets pass.output, or pass.backward on the last stage. Records on the current tape.
  virtual void forward(int stage, int micro_batch, StagePass& pass) = 0;
};

}  // namespace parallel
}  // namespace trireme
