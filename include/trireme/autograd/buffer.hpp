#pragma once

#include <memory>
#include <utility>

#include "trireme/autograd/flat_store.hpp"

namespace trireme {

// A named place among the buffers of a flat store. A value: copies mean the same buffer.
template <typename T, typename D = Cpu>
class Buffer {
 public:
  Buffer() = default;  // stands for none
  Buffer(std::shared_ptr<FlatStore> store, int index) : store_(std::move(store)), index_(index) {}

  bool defined() const { return store_ != nullptr; }
  const BufferInfo& info() const { return store_->buffers().info(index_); }
  Tensor<T, D> value() const { return store_->buffers().template values<T, D>(index_); }

 private:
  std::shared_ptr<FlatStore> store_;
  int index_ = -1;
};

}  // namespace trireme
