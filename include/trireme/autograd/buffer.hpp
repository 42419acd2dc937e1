#pragma once

#include <memory>
#include <utility>

#include "trireme/autograd/model.hpp"

namespace trireme {

// A named place among the buffers of a model's store. A value: copies mean the same buffer.
template <typename T, typename D = Cpu>
class Buffer {
 public:
  Buffer() = default;  // stands for none
  Buffer(std::shared_ptr<Model> model, int index) : model_(std::move(model)), index_(index) {}

  bool defined() const { return model_ != nullptr; }
  const BufferInfo& info() const { return model_->store().buffers().info(index_); }
  Tensor<T, D> value() const { return model_->store().buffers().template values<T, D>(index_); }

 private:
  std::shared_ptr<Model> model_;
  int index_ = -1;
};

}  // namespace trireme
