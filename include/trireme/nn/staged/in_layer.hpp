#pragma once

#include "trireme/autograd/tape.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn::detail {

// While an InLayer lives, the current tape draws the random numbers of this layer.
class InLayer {
 public:
  explicit InLayer(const LayerOfList& layer) : tape_(Tape::current()) {
    if (tape_ != nullptr) tape_->enter_layer(layer);
  }
  ~InLayer() {
    if (tape_ != nullptr) tape_->leave_layer();
  }
  InLayer(const InLayer&) = delete;
  InLayer& operator=(const InLayer&) = delete;

 private:
  Tape* tape_;
};

}  // namespace nn::detail
}  // namespace trireme
