#pragma once

#include <memory>
#include <utility>

#include "trireme/autograd/model.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// A handle to one buffer of a model's store. Copies refer to the same buffer.
template <typename T, typename D = Cpu>
class Buffer {
 public:
  Buffer() = default;  // no buffer
  Buffer(std::shared_ptr<Model> model, int number) : model_(std::move(model)), number_(number) {}

  bool defined() const { return model_ != nullptr; }
  const BufferInfo& info() const { return model_->store().buffers().info(index()); }
  Tensor<T, D> value() const { return model_->store().buffers().template values<T, D>(index()); }
  // The buffer's value at the beginning of the current step.
  Tensor<T, D> kept_value() const { return model_->store().buffers().template kept_values<T, D>(index()); }

 private:
  int index() const { return model_->store().buffer_index_of(number_); }

  std::shared_ptr<Model> model_;
  int number_ = -1;
};

}  // namespace trireme
