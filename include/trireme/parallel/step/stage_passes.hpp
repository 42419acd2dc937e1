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
  nn::PackedFlow input = {};                       // until forward has taken it
  std::vector<nn::FlowPart> input_gradients = {};  // of its parts that have one, in order; without memory: none arrived
  nn::PackedFlow output = {};                      // until it is sent; the last stage has none
  nn::GiveGradients give = {};                     // to those of its parts that have a gradient
  std::function<void()> backward = {};             // of the last stage, from its loss
  std::int64_t nominal_targets = 0;                // of that loss
  // Where layers of another stage have added losses: the first part of their backward pass.
  std::function<void(const Tape& tape, std::int64_t nominal_targets)> begin_added = {};
};

// A model of stages and the micro-batches of a step, as a schedule runs them: parallel::Step makes one of any nn::Staged.
class StagePasses {
 public:
  StagePasses() = default;
  StagePasses(const StagePasses&) = delete;
  StagePasses& operator=(const StagePasses&) = delete;
  virtual ~StagePasses() = default;

  virtual int num_micro_batches() const = 0;
  virtual TapeOptions names(int micro_batch) const = 0;  // of its random numbers
  virtual void listen(Tape& tape) = 0;                   // to the newest backward pass of a micro-batch on this rank

  // Takes the input and leaves the output, or on the last stage how backward begins; on the current tape.
  virtual void forward(int stage, int micro_batch, StagePass& pass) = 0;
};

}  // namespace parallel
}  // namespace trireme
