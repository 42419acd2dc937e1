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

// What the replicas of a model make of their buffers after each step.
enum class BufferReduction : std::uint8_t {
  mean,  // where batch norm is not synchronised; otherwise each keeps its own, which then are the same
  max,
  none,  // each keeps its own: BufferOptions::rows
};

// Of the rows of the whole batch, those that a rank computes: share_of() all.
struct BatchRows {
  std::int64_t batch_size = 0;  // of all ranks; 0: not known
  Range own = {};
  int ranks = 1;  // that share the batch

  bool even() const { return batch_size % ranks == 0; }
  std::int64_t largest_share() const { return (batch_size + ranks - 1) / ranks; }
};

struct BufferOptions {
  BufferReduction reduction = BufferReduction::mean;
  // Of the model: saved and loaded with the weights. False: of training, kept by checkpoints alone, which may lack it.
  bool in_weights = true;
  // A buffer with one row for each row of the batch that this rank computes: checkpoints keep the rows of all ranks, and ranks
  // that divide the batch otherwise read theirs.
  std::optional<BatchRows> rows = {};
};

struct BufferInfo {
  std::string name;  // dotted, unique among buffers and parameters
  Shape shape;
  double initial = 0;       // value of every element
  std::int64_t offset = 0;  // of its first element in the plane
  BufferOptions options = {};
};

// What a model keeps beside its parameters, as the running statistics of batch norm: saved and loaded with them, but without
// gradient and optimizer state, and in no bucket. All buffers of a store lie in one plane, in registration order. Several
// threads may read values at once, the first use of them too; whatever writes has the plane for itself.
class BufferPlane {
 public:
  BufferPlane(DType dtype, const PlaneDevice& device) : dtype_(dtype), device_(&device) {}

  // Registers a buffer and returns its index. An error after the first use of values.
  int add(std::string name, const Shape& shape, double initial, const BufferOptions& options);

  void keep_only(const std::vector<bool>& kept);  // by index, before the first use of values; the others are forgotten

  int size() const { return static_cast<int>(buffers_.size()); }
  const BufferInfo& info(int index) const { return buffers_[static_cast<std::size_t>(index)]; }
  int find(std::string_view name) const;  // -1 when there is none
  std::vector<int> in_weights() const;    // those that are saved and loaded with the weights

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

  // Those of the last keep(), see below.
  template <typename T, typename D = Cpu>
  Tensor<T, D> kept_values(int index) {
    require_type(dtype_of<T>);
    require_device(plane_device<D>());
    return Tensor<T, D>(info(index).shape, kept_, static_cast<std::size_t>(info(index).offset));
  }

  // A buffer's values on the host, wherever they lie: a copy; and the other way.
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

  // All buffers as one block of `size_of(dtype) * numel()` bytes, wherever it lies.
  const std::shared_ptr<device::Storage>& plane();
  std::int64_t numel() const { return numel_; }

  // What a checkpoint keeps: every buffer, with the prefix before its name.
  void add_to(State& state, const std::string& prefix);

  // restore() gives all buffers the values of the last keep(), where there was one in this step: one that is skipped has
  // changed them.
  void keep();
  bool are_kept() const { return are_kept_; }
  void restore();
  void restore_if(const bool* condition);  // which lies where the buffers lie
  void end_step() { are_kept_ = false; }

  // Gives every buffer of a module, "" for all, its initial value, as the first use does with all.
  void initialize(std::string_view module = {});

 private:
  void require_type(DType wanted);  // makes the first values where there are none
  bool make_values();               // the initial ones; false where there are some
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
  PlaneParts parts_;                         // of them
  std::shared_ptr<device::Storage> kept_;    // likewise
  bool are_kept_ = false;
};

}  // namespace trireme
