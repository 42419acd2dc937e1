#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/autograd/buffer_plane.hpp"
#include "trireme/autograd/initializer.hpp"
#include "trireme/autograd/placement.hpp"
#include "trireme/autograd/planes/plane_device.hpp"
#include "trireme/autograd/planes/plane_table.hpp"
#include "trireme/autograd/planes/shard.hpp"
#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/first_use.hpp"
#include "trireme/core/range.hpp"
#include "trireme/core/shape.hpp"
#include "trireme/core/state.hpp"
#include "trireme/device/memory.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {

// Describes one parameter of the store.
struct ParameterInfo {
  std::string name;     // dotted, unique in the store
  Shape shape;          // of the part that lies here
  Placement placement;  // of that part in the whole parameter
  Initializer initializer;
  bool trainable = true;  // a frozen parameter has no gradient and no optimizer state
  // The ranks of the pipeline axis that hold a tied parameter, ascending; the gradients of these ranks are summed. Empty: not
  // tied.
  std::vector<int> tied_ranks = {};
  std::int64_t offset = 0;  // of its first element in every plane
  std::int64_t numel = 0;
};

// All parameters of a model in one index space, in reverse registration order (the order in which the backward pass finishes
// their gradients). Frozen parameters come last. Planes over this space hold values, gradients and, in mixed precision, the
// values rounded to the type that layers compute with. Optimizers add their own planes. A bucket, a shard or an optimizer pass
// is a range of this space. Parameters start at 64-byte boundaries. In the gaps, values and gradients stay zero.
//
// Planes can move, so ask the store for a plane each time. Don't keep an address or a tensor of the plane beyond one layer or
// one visit of a piece.
//
// Several threads may read values at the same time, as forward passes without a Tape do; even the first use may be concurrent.
// A writer (initialize, write_values, loading, gradients, a step) needs exclusive access to the store.
class FlatStore {
 public:
  using Piece = PlaneTable::Piece;

  explicit FlatStore(DType dtype) : FlatStore(dtype, dtype) {}
  FlatStore(DType dtype, DType compute_dtype, const PlaneDevice& device = plane_device<Cpu>());
  FlatStore(FlatStore&&) = default;
  FlatStore& operator=(FlatStore&&) = default;

  std::uint64_t serial() const { return serial_; }  // unique among the stores of this process; above 0
  DType dtype() const { return dtype_; }            // of values and gradients
  DType compute_dtype() const { return compute_dtype_; }
  const PlaneDevice& device() const { return *device_; }  // where all planes lie
  bool on_host() const { return device_->memory()->on_host(); }

  // Registers a parameter and returns its number, which is also its index unless distribute() is called. Throws if the store is
  // already laid out, or the name is in use.
  int add(std::string name, const Shape& shape, const Initializer& initializer);
  int add(std::string name, const Placement& placement, const Initializer& initializer);  // of a part
  void freeze(int number);                                                                // before the store is laid out

  // Registers a buffer of the element type of values and returns its number. Buffers and parameters are numbered separately.
  int add_buffer(std::string name, const Shape& shape, double initial, const BufferOptions& options = {});
  BufferPlane& buffers() { return buffers_; }

  // Returns a parameter by its number, for use before distribute(). Its offset is not set yet.
  const ParameterInfo& registered(int number) const;

  // For a model of stages: call distribute() once, before the store is laid out. `parameters` and `buffers` list, for each
  // number, the ranks of the pipeline axis that hold the parameter or buffer, ascending. `rank` is this rank. Afterwards this
  // store has no parameters and buffers that only other ranks hold, and nothing more can be added.
  void distribute(int rank, std::span<const std::vector<int>> parameters, std::span<const std::vector<int>> buffers);
  int index_of(int number) const;  // Error{invalid_argument} with name and ranks if only other ranks hold the parameter
  int buffer_index_of(int number) const;
  bool is_distributed() const { return is_distributed_; }

  // Parameters that several ranks of the pipeline axis hold. All ranks get the same list, in the order of the layout.
  struct Tied {
    std::string name;
    std::vector<int> ranks;
    int index;  // in this store; below 0: only other ranks hold it
  };
  std::vector<Tied> tied() const;

  // The first use of values or gradients fixes the layout.
  int num_parameters() const { return static_cast<int>(parameters_.size()); }
  const ParameterInfo& parameter(int index);  // indices are in registration order
  int find(std::string_view name) const;      // -1 when there is none
  std::span<const int> layout();              // parameter indices by offset
  std::int64_t trainable_numel();             // elements of the gradient plane, gaps included
  std::int64_t numel();
  std::vector<std::string> all_names() const;  // of all parameters of the model, wherever they lie, in registration order
  std::int64_t num_elements() const;           // of all whole parameters of the model, wherever they lie, without gaps

  // Numbers of the store's own planes, for visit(). If there is no compute copy, compute_number() is values_number.
  static constexpr int values_number = 0;
  static constexpr int gradients_number = 1;
  int compute_number() const { return dtype_ == compute_dtype_ ? values_number : 2; }

  // Adds a plane over the parameters and returns its number. Its memory is allocated at the first use. Checkpoints find the
  // planes of optimizers by name, which must be unique among the planes of one owner (see OwnedPlanes). Owner 0 is the store.
  int add_plane(std::string name, const PlaneOptions& options, std::uint64_t owner = 0) {
    return planes_->add(std::move(name), options, owner);
  }
  void remove_plane(int plane) { planes_->remove(plane); }  // frees its memory; the number is not used again
  const std::shared_ptr<PlaneTable>& planes() { return planes_; }

  // Calls action(piece) for each contiguous piece of memory, in the order of `ranges`; empty ranges are skipped. Throws before
  // the first call if a range does not lie in all visited planes on this rank. A piece is a whole range, or at most 2^20
  // elements of a range if a plane on the host is copied to a GPU.
  template <typename Visit>
  void visit(std::span<const int> planes, std::span<const Range> ranges, const Visit& action) {
    lay_out();
    PlaneTable::Walk walk(*planes_, planes);
    for (const Range& range : ranges) walk.require_here(range);
    for (Range rest : ranges) {
      while (rest.count() > 0) {
        const Piece piece = walk.begin(rest);
        action(piece);
        walk.end(piece);
        rest.begin = piece.range.end;
      }
    }
  }

  // A plane as one block of memory on its device, for collectives and for operations of the device.
  const std::shared_ptr<device::Storage>& plane(int number) {
    lay_out();
    return planes_->memory(number);
  }
  const std::shared_ptr<device::Storage>& value_plane() { return plane(values_number); }
  const std::shared_ptr<device::Storage>& gradient_plane() { return plane(gradients_number); }

  // T and D must match the plane.
  template <typename T, typename D = Cpu>
  Tensor<T, D> elements(int plane) {  // all elements, in the order of the store
    const auto& memory = typed<T, D>(plane);
    return Tensor<T, D>({planes_->numel(plane)}, memory);
  }
  template <typename T, typename D = Cpu>
  Tensor<T, D> values() {
    return elements<T, D>(values_number);
  }
  template <typename T, typename D = Cpu>
  Tensor<T, D> values(int index) {
    return part<T, D>(values_number, index);
  }
  template <typename T, typename D = Cpu>
  Tensor<T, D> gradients() {
    return elements<T, D>(gradients_number);
  }
  template <typename T, typename D = Cpu>
  Tensor<T, D> gradient(int index) {
    return part<T, D>(gradients_number, index);
  }

  // The values that matrix products read: the values themselves, or in mixed precision their rounded copy.
  template <typename T, typename D = Cpu>
  Tensor<T, D> compute_values(int index) {
    return part<T, D>(compute_number(), index);
  }

  // Copies a parameter's values to the host, wherever they lie.
  template <typename T>
  Tensor<T> read_values(int index) {
    require_dtype(dtype_, dtype_of<T>);
    const ParameterInfo& info = parameter(index);
    Tensor<T> values(info.shape);
    device_->read(static_cast<const T*>(value_plane()->data()) + info.offset, values.data(), values.span().size_bytes());
    return values;
  }
  // Copies values from the host to a parameter, which then counts as initialized. Does not refresh the compute copy.
  template <typename T>
  void write_values(int index, const Tensor<T>& values) {
    require_dtype(dtype_, dtype_of<T>);
    const ParameterInfo& info = parameter(index);
    require(values.shape() == info.shape, "parameter {} has shape {} here, not {}", info.name, info.shape, values.shape());
    device_->write(static_cast<T*>(value_plane()->data()) + info.offset, values.data(), values.span().size_bytes());
    has_values_[static_cast<std::size_t>(index)] = true;
  }

  // In mixed precision, refreshes the compute copy. Call it after writing values, as optimizers do.
  void refresh_compute_copy(const Range& range);
  void refresh_compute_copy();  // of all parameters, and counts their values as changed

  // Initializes every parameter and every buffer of a module; "" is the whole model. T is the store's element type.
  template <typename T>
  void initialize(std::uint64_t seed, std::string_view module = {});

  bool has_values() const;  // whether any parameter was initialized, written or loaded

  // Throws Error{invalid_argument} if a parameter was never initialized, written or loaded and is still all zeros, unless its
  // initializer makes zeros. The first step calls this function.
  void require_values();
  void require_values(int index) {  // for one parameter that a forward pass is about to read
    const auto at = static_cast<std::size_t>(index);
    if (!has_values_[at] && !is_found_[at].load(std::memory_order_relaxed)) [[unlikely]]
      find_values(index);
  }

  // Moves the planes of values and gradients, with their elements, into memory of another resource on the same device. Tensors
  // taken before still refer to the old memory.
  void relocate(const std::shared_ptr<device::MemoryResource>& resource);

  // Adds parameters and buffers to a checkpoint's state, with the prefix before each name.
  void add_to(State& state, const std::string& prefix = {});

  // For planes of a checkpoint that add_to() does not add. list_plane() returns the address at which the state finds a plane.
  // listed() takes this address as `place` and returns the entry of one parameter. Using the state after the plane was moved or
  // removed is an error.
  void* list_plane(State& state, int plane);
  StateTensor listed(std::string name, int plane, void* place, int index);

  // For the elements of a parameter that lie in `range`, returns their places in the whole parameter. `data` points to a plane
  // that holds only this range.
  template <typename T>
  std::vector<StatePiece> pieces(int index, const Range& range, T* data) {
    return pieces_of(index, range, data, sizeof(T));
  }

  // In each step, the first contribution to a parameter's gradient overwrites the gradient, and later contributions are added.
  bool has_gradient(int index) const { return has_gradient_[static_cast<std::size_t>(index)]; }
  void set_has_gradient(int index) { has_gradient_[static_cast<std::size_t>(index)] = true; }
  void zero_gradient(int index);  // a gradient of zeros, for a parameter that this rank did not use
  void clear_gradients();         // ends the step: the next contribution overwrites; buffers do not change
  // Begins the next micro-batch of a step. The first contributions of this micro-batch overwrite the gradients so far, so copy
  // these gradients to another place before the call.
  void begin_micro_batch();
  void begin_step();  // keeps the buffers

  // Marks a gradient as final: it is being sent to other ranks. Adding to a final gradient in this step is an error.
  void set_gradient_final(int index) { gradient_is_final_[static_cast<std::size_t>(index)] = true; }
  void require_open_gradient(int index) const {
    if (gradient_is_final_[static_cast<std::size_t>(index)]) refuse_gradient(index);
  }

  // How often a parameter's values have changed. A backward pass is an error if the values changed after the forward pass.
  std::uint64_t version(int index) const { return versions_[static_cast<std::size_t>(index)]; }
  void count_change(int index) { ++versions_[static_cast<std::size_t>(index)]; }
  void require_version(int index, std::uint64_t version_read) const {
    if (version(index) != version_read) refuse_changed_values(index);
  }

  // Sets the part that optimizers update, from their first step on. Null, the default: the whole trainable range.
  void set_shard(std::shared_ptr<Shard> shard) { planes_->set_shard(std::move(shard)); }
  const std::shared_ptr<Shard>& shard() const { return planes_->shard(); }

 private:
  void lay_out();
  std::vector<StatePiece> pieces_of(int index, const Range& range, void* data, std::size_t element_bytes);
  static void require_dtype(DType held, DType wanted);
  void set_places();
  bool lacks_values(int index);
  void find_values(int index);
  void require_all_values();
  void require_open_list(std::string_view name) const;
  [[noreturn]] void refuse_gradient(int index) const;
  [[noreturn]] void refuse_changed_values(int index) const;

  template <typename T, typename D>
  const std::shared_ptr<device::Storage>& typed(int number) {
    const auto& memory = plane(number);
    require_dtype(planes_->options(number).dtype, dtype_of<T>);
    require(&planes_->device_of(number) == &plane_device<D>(),
            "the store's planes lie on another device than the one asked for");
    return memory;
  }
  template <typename T, typename D>
  Tensor<T, D> part(int number, int index) {
    const auto& memory = typed<T, D>(number);
    const ParameterInfo& info = parameters_[static_cast<std::size_t>(index)];
    const PlaneParts& parts = planes_->parts(number);
    if (parts.has(index)) return Tensor<T, D>(info.shape, parts[index]);
    return Tensor<T, D>(info.shape, memory, static_cast<std::size_t>(info.offset));  // throws: not in the plane
  }

  // The ranks that hold a parameter or buffer, by number, as given to distribute().
  struct Holders {
    std::string name;
    std::int64_t numel = 0;  // of the whole parameter or buffer
    std::vector<int> ranks = {};
    int index = -1;  // in this store; below 0: only other ranks hold it
  };
  static int index_in(const std::vector<Holders>& holders, int number);

  std::uint64_t serial_;
  DType dtype_;
  DType compute_dtype_;
  const PlaneDevice* device_;
  std::vector<ParameterInfo> parameters_;
  bool is_distributed_ = false;
  std::vector<Holders> holders_;  // of the parameters of all stages; empty before distribute()
  std::vector<Holders> buffer_holders_;
  std::vector<int> layout_;
  std::vector<bool> has_gradient_;
  std::vector<bool> gradient_is_final_;
  std::vector<std::uint64_t> versions_;
  std::vector<bool> has_values_;             // set by the store's own functions
  std::vector<std::atomic<bool>> is_found_;  // true: has values from elsewhere or needs none; set by readers
  bool values_are_checked_ = false;
  std::int64_t trainable_numel_ = 0;
  std::int64_t numel_ = 0;
  FirstUse laid_out_;
  std::shared_ptr<PlaneTable> planes_;  // owners of planes may outlive the store
  BufferPlane buffers_;
};

}  // namespace trireme
