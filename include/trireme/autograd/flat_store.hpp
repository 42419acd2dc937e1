#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/autograd/buffer_plane.hpp"
#include "trireme/autograd/placement.hpp"
#include "trireme/autograd/plane_device.hpp"
#include "trireme/autograd/shard.hpp"
#include "trireme/core/collectives.hpp"
#include "trireme/core/dtype.hpp"
#include "trireme/core/range.hpp"
#include "trireme/core/shape.hpp"
#include "trireme/core/state.hpp"
#include "trireme/device/memory.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme {

// How a parameter's first values are made: a function of (seed, name, index), so any number of ranks gets the same ones.
struct Initializer {
  enum class Kind : std::uint8_t { constant, normal, uniform };
  Kind kind = Kind::constant;
  double a = 0;      // constant: the value; normal: the mean; uniform: the lower bound
  double b = 0;      // normal: the standard deviation; uniform: the upper bound
  Range zeros = {};  // elements of the whole parameter that are 0 nevertheless: an embedding's padding

  static Initializer constant(double value) { return {Kind::constant, value, 0, {}}; }
  static Initializer normal(double mean, double deviation) { return {Kind::normal, mean, deviation, {}}; }
  static Initializer uniform(double lower, double upper) { return {Kind::uniform, lower, upper, {}}; }
};

// What the store knows of one parameter.
struct ParameterInfo {
  std::string name;     // dotted, unique in the store
  Shape shape;          // of what lies here
  Placement placement;  // that in the whole parameter
  Initializer initializer;
  Axis tied = {};           // ranks of other stages that hold it too: gradients are summed
  bool trainable = true;    // a frozen parameter has no gradient and no optimizer state
  std::int64_t offset = 0;  // of its first element in every plane
  std::int64_t numel = 0;
};

// All parameters of a model in one index space, in reverse registration order (the order in which backward finishes them);
// frozen ones come last. Planes over that space: values, gradients, and in mixed precision the values rounded to the type that
// layers compute with; optimizers add their own. A bucket, a shard or an optimizer pass is a range of it. Parameters start at
// 64-byte boundaries; the gaps stay zero.
class FlatStore {
 public:
  explicit FlatStore(DType dtype) : FlatStore(dtype, dtype) {}
  FlatStore(DType dtype, DType compute_dtype, const PlaneDevice& device = plane_device<Cpu>());

  std::uint64_t serial() const { return serial_; }  // no other store of this process has it; above 0
  DType dtype() const { return dtype_; }            // of values and gradients
  DType compute_dtype() const { return compute_dtype_; }
  const PlaneDevice& device() const { return *device_; }  // where all planes lie
  bool on_host() const { return device_->memory()->on_host(); }

  // Registers a parameter and returns its index. An error once the store is laid out, or for a name in use.
  int add(std::string name, const Shape& shape, const Initializer& initializer);
  int add(std::string name, const Placement& placement, const Initializer& initializer);  // a part of one
  void freeze(int index);                                                                 // before the store is laid out

  // Before the store is laid out, on all of these ranks; one parameter a model, since stages finish several in different
  // orders.
  void tie(int index, Axis ranks);

  // Beside the parameters; they have the element type of values.
  int add_buffer(std::string name, const Shape& shape, double initial, const BufferOptions& options = {});
  BufferPlane& buffers() { return buffers_; }

  // The first use of values or gradients fixes the layout.
  int num_parameters() const { return static_cast<int>(parameters_.size()); }
  const ParameterInfo& parameter(int index);  // by index: in registration order
  int find(std::string_view name) const;      // -1 when there is none
  std::span<const int> layout();              // parameter indices by offset
  std::int64_t trainable_numel();             // elements of the gradient plane, gaps included
  std::int64_t numel();
  std::int64_t num_elements() const;  // of all parameters as a whole, gaps left out

  // T and D: the store's own.
  template <typename T, typename D = Cpu>
  Tensor<T, D> values() {  // the whole plane
    return plane<T, D>(values_, numel());
  }
  template <typename T, typename D = Cpu>
  Tensor<T, D> values(int index) {
    return part<T, D>(values_, index);
  }
  template <typename T, typename D = Cpu>
  Tensor<T, D> gradients() {
    return plane<T, D>(gradients_, trainable_numel());
  }
  template <typename T, typename D = Cpu>
  Tensor<T, D> gradient(int index) {
    return part<T, D>(gradients_, index);
  }

  // The planes as blocks of elements of dtype(), wherever they lie: for collectives and the device's own operations.
  const std::shared_ptr<device::Storage>& value_plane() {
    lay_out();
    return values_;
  }
  const std::shared_ptr<device::Storage>& gradient_plane() {
    lay_out();
    return gradients_;
  }

  // What matrix products read: the values themselves, or in mixed precision their rounded copy.
  template <typename T, typename D = Cpu>
  Tensor<T, D> compute_values(int index) {
    if (dtype_ == compute_dtype_) return values<T, D>(index);
    return part<T, D>(compute_values_, index);
  }

  // A parameter's values on the host, wherever they lie: a copy.
  template <typename T>
  Tensor<T> read_values(int index) {
    require_dtype(dtype_, dtype_of<T>);
    const ParameterInfo& info = parameter(index);
    Tensor<T> values(info.shape);
    device_->read(static_cast<const T*>(values_->data()) + info.offset, values.data(), values.span().size_bytes());
    return values;
  }
  // The other way; the rounded copy stays as it is. The parameter then has values.
  template <typename T>
  void write_values(int index, const Tensor<T>& values) {
    require_dtype(dtype_, dtype_of<T>);
    const ParameterInfo& info = parameter(index);
    require(values.shape() == info.shape, "parameter {} has shape {} here, not {}", info.name, info.shape, values.shape());
    device_->write(static_cast<T*>(values_->data()) + info.offset, values.data(), values.span().size_bytes());
    has_values_[static_cast<std::size_t>(index)] = true;
  }

  // Mixed precision: renews the rounded copy. Whoever writes values calls it afterwards; optimizers do.
  void refresh_compute_copy(const Range& range);
  void refresh_compute_copy() { refresh_compute_copy({0, numel()}); }

  // Fills every parameter and every buffer of a module, "" for all, by its initializer. T is the store's element type.
  template <typename T>
  void initialize(std::uint64_t seed, std::string_view module = {});

  // Error{invalid_argument} where a parameter has never got values: it was not initialized, written or loaded, and is still all
  // zeros where its initializer makes something else. The first step asks.
  void require_values();

  // Moves values and gradients into memory of another resource on the same device, values kept. Tensors taken before keep the
  // old block.
  void relocate(const std::shared_ptr<device::MemoryResource>& resource);

  // What a checkpoint keeps: parameters and buffers, each name with the prefix before it.
  void add_to(State& state, const std::string& prefix = {});

  // Where those elements of a parameter that lie in `range` of the planes belong in the whole parameter; `data`: those of a
  // plane that holds the range alone.
  template <typename T>
  std::vector<StatePiece> pieces(int index, const Range& range, T* data) {
    const ParameterInfo& info = parameter(index);
    const Range here{std::max<std::int64_t>(range.begin - info.offset, 0), std::min(range.end - info.offset, info.numel)};
    std::vector<StatePiece> pieces;
    for (const auto& piece : info.placement.pieces(here)) {
      pieces.push_back(
          {.data = data + (info.offset + piece.here - range.begin), .elements = {piece.whole, piece.whole + piece.count}});
    }
    return pieces;
  }

  // Gradients of a step: a parameter's first contribution overwrites, later ones add, so nothing is zeroed.
  bool has_gradient(int index) const { return has_gradient_[static_cast<std::size_t>(index)]; }
  void set_has_gradient(int index) { has_gradient_[static_cast<std::size_t>(index)] = true; }
  void zero_gradient(int index);  // a gradient of zeros, for a parameter that this rank did not use
  void clear_gradients();         // the step is over: the next contribution overwrites, buffers stay as they are
  void begin_step();              // keeps the buffers; of a step that was begun and not ended, nothing stays

  // Nothing of this step may be added to a gradient that is final: it is on its way to other ranks.
  void set_gradient_final(int index) { gradient_is_final_[static_cast<std::size_t>(index)] = true; }
  void require_open_gradient(int index) const {
    if (gradient_is_final_[static_cast<std::size_t>(index)]) refuse_gradient(index);
  }

  // Optimizers made from here on update this part only. Null, as at first: the whole trainable range.
  void set_shard(std::shared_ptr<Shard> shard) { shard_ = std::move(shard); }
  const std::shared_ptr<Shard>& shard() const { return shard_; }

 private:
  void lay_out();
  template <typename T>
  void add_as(State& state, const std::string& prefix);
  std::shared_ptr<device::Storage> zeroed(std::int64_t count, DType dtype) const;
  static void require_dtype(DType held, DType wanted);
  [[noreturn]] void refuse_gradient(int index) const;

  template <typename D>
  void require_device() const {
    require(device_ == &plane_device<D>(), "the store's planes were asked for on another device than they lie on");
  }
  template <typename T, typename D>
  Tensor<T, D> plane(const std::shared_ptr<device::Storage>& storage, std::int64_t count) {
    lay_out();
    require_dtype(dtype_, dtype_of<T>);
    require_device<D>();
    return Tensor<T, D>({count}, storage);
  }
  template <typename T, typename D>
  Tensor<T, D> part(const std::shared_ptr<device::Storage>& storage, int index) {
    lay_out();
    require_dtype(&storage == &compute_values_ ? compute_dtype_ : dtype_, dtype_of<T>);
    require_device<D>();
    const ParameterInfo& info = parameters_[static_cast<std::size_t>(index)];
    return Tensor<T, D>(info.shape, storage, static_cast<std::size_t>(info.offset));
  }

  std::uint64_t serial_;
  DType dtype_;
  DType compute_dtype_;
  const PlaneDevice* device_;
  std::vector<ParameterInfo> parameters_;
  std::vector<int> layout_;
  std::vector<bool> has_gradient_;
  std::vector<bool> gradient_is_final_;
  std::vector<bool> has_values_;  // given by the store's own functions
  bool values_are_checked_ = false;
  std::int64_t trainable_numel_ = 0;
  std::int64_t numel_ = 0;
  bool laid_out_ = false;
  std::shared_ptr<device::Storage> values_;
  std::shared_ptr<device::Storage> gradients_;
  std::shared_ptr<device::Storage> compute_values_;  // null where values are of the compute type
  std::shared_ptr<Shard> shard_;
  BufferPlane buffers_;
  bool in_step_ = false;
};

}  // namespace trireme
