#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/autograd/planes/plane_device.hpp"
#include "trireme/autograd/planes/plane_parts.hpp"
#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/first_use.hpp"
#include "trireme/core/range.hpp"
#include "trireme/core/shape.hpp"
#include "trireme/core/state.hpp"
#include "trireme/device/memory.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {

// How the replicas of a model combine their buffers after each step.
enum class BufferReduction : std::uint8_t {
  mean,  // averaged; with synchronised batch norm, the replicas' values are already equal and do not change
  max,
  none,  // each replica keeps its own values, as with BufferOptions::rows
};

// The rows of the whole batch that this rank computes.
struct BatchRows {
  std::int64_t batch_size = 0;  // of all ranks; 0: not known
  Range own = {};
  int ranks = 1;  // that share the batch

  bool even() const { return batch_size % ranks == 0; }
  std::int64_t largest_share() const { return (batch_size + ranks - 1) / ranks; }
};

struct BufferOptions {
  BufferReduction reduction = BufferReduction::mean;
  // True: part of the model, saved and loaded with the weights. False: part of training, saved only by checkpoints; a
  // checkpoint without the buffer still loads.
  bool in_weights = true;
  // Set `rows` for a buffer with one row for each row of the batch that this rank computes. Checkpoints save the rows of all
  // ranks; if the ranks divide the batch in another way after loading, each rank gets its own rows.
  std::optional<BatchRows> rows = {};
};

struct BufferInfo {
  std::string name;  // dotted, unique among buffers and parameters
  Shape shape;
  double initial = 0;       // value of every element
  std::int64_t offset = 0;  // of its first element in the plane
  BufferOptions options = {};
};

// The buffers of a model, such as the running statistics of batch norm. They are saved and loaded with the parameters, but have
// no gradient, no optimizer state and no bucket. All buffers of a store lie in one plane, in registration order. Several
// threads may read values at the same time, even at the first use. A write needs exclusive access to the plane.
class BufferPlane {
 public:
  BufferPlane(DType dtype, const PlaneDevice& device) : dtype_(dtype), device_(&device) {}

  // Registers a buffer and returns its index. Throws after the first use of values.
  int add(std::string name, const Shape& shape, double initial, const BufferOptions& options);

  void keep_only(const std::vector<bool>& kept);  // by index; drops the other buffers; call it before the first use of values

  int size() const { return static_cast<int>(buffers_.size()); }
  const BufferInfo& info(int index) const { return buffers_[static_cast<std::size_t>(index)]; }
  int find(std::string_view name) const;  // -1 when there is none
  std::vector<int> in_weights() const;    // the buffers that are saved and loaded with the weights

  // T is the store's element type: float, or double.
  template <typename T, typename D = Cpu>
  Tensor<T, D> values() {  // the whole plane
    require_type(dtype_of<T>);
    require_device(plane_device<D>());
    return Tensor<T, D>({numel_}, values_);
  }
  template <typename T, typename D = Cpu>
  Tensor<T, D> values(int index) {
    require_type(dtype_of<T>);
    require_device(plane_device<D>());
    return Tensor<T, D>(info(index).shape, parts_[index]);
  }

  // The values that the last keep() saved.
  template <typename T, typename D = Cpu>
  Tensor<T, D> kept_values(int index) {
    require_type(dtype_of<T>);
    require_device(plane_device<D>());
    return Tensor<T, D>(info(index).shape, kept_, static_cast<std::size_t>(info(index).offset));
  }

  // Copy a buffer's values to or from the host, wherever the plane lies.
  template <typename T>
  Tensor<T> read_values(int index) {
    require_type(dtype_of<T>);
    Tensor<T> values(info(index).shape);
    device_->read(static_cast<const T*>(values_->data()) + info(index).offset, values.data(), values.span().size_bytes());
    return values;
  }
  template <typename T>
  void write_values(int index, const Tensor<T>& values) {
    require_type(dtype_of<T>);
    require_count(index, values.numel());
    write(index, values.data());
  }

  // All buffers as one block of `size_of(dtype) * numel()` bytes, on the plane's device.
  const std::shared_ptr<device::Storage>& plane();
  std::int64_t numel() const { return numel_; }

  // Adds every buffer to a checkpoint's state, with the prefix before its name.
  void add_to(State& state, const std::string& prefix);

  // keep() saves the values of all buffers. restore() brings the saved values back if keep() was called in this step. A skipped
  // step needs restore(), because its forward passes have changed the buffers.
  void keep();
  bool are_kept() const { return are_kept_; }
  void restore();
  void restore_if(const bool* condition);  // the condition lies on the buffers' device
  void end_step() { are_kept_ = false; }

  // Sets every buffer of a module to its initial value; "" is the whole model. The first use of values does this for all
  // buffers.
  void initialize(std::string_view module = {});

 private:
  void require_type(DType wanted);  // also makes the initial values if there are no values yet
  bool make_values();               // makes the initial values; false if there are values already
  void require_device(const PlaneDevice& wanted) const;
  void require_count(int index, std::int64_t count) const;
  std::size_t bytes() const { return static_cast<std::size_t>(numel_) * size_of(dtype_); }
  template <typename T>
  void fill(std::string_view module);
  void write(int index, const void* values);

  DType dtype_;
  const PlaneDevice* device_;
  std::vector<BufferInfo> buffers_;
  std::int64_t numel_ = 0;
  FirstUse has_values_;
  std::shared_ptr<device::Storage> values_;  // null until the first use
  PlaneParts parts_;                         // of values_
  std::shared_ptr<device::Storage> kept_;    // null until the first keep()
  bool are_kept_ = false;
};

}  // namespace trireme
