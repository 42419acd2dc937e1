#include "trireme/autograd/buffer_plane.hpp"

#include <algorithm>
#include <utility>

#include "trireme/autograd/module_switches.hpp"
#include "trireme/core/error.hpp"

namespace trireme {
namespace {

// A buffer as an entry of a checkpoint, with this rank's part of it.
StateTensor listed_buffer(const std::string& prefix, const BufferInfo& buffer, DType dtype, void* data) {
  const std::int64_t numel = buffer.shape.numel();
  StateTensor tensor{.name = prefix + buffer.name,
                     .dtype = dtype,
                     .shape = buffer.shape,
                     .pieces = {{.data = data, .elements = {0, numel}}},
                     .optional = !buffer.options.in_weights};
  if (const auto& rows = buffer.options.rows) {
    std::vector<std::int64_t> dims(buffer.shape.dims().begin(), buffer.shape.dims().end());
    dims[0] = rows->batch_size;
    tensor.shape = Shape(dims);
    const std::int64_t first = rows->own.begin * (numel / rows->own.count());
    tensor.pieces[0].elements = {first, first + numel};
  }
  return tensor;
}

}  // namespace

int BufferPlane::add(std::string name, const Shape& shape, double initial, const BufferOptions& options) {
  require(!has_values_.made(), "buffer {} was added after the first use of the buffers' values", name);
  if (options.rows) {
    const Range& own = options.rows->own;
    const std::int64_t batch_size = options.rows->batch_size;
    require(own.begin >= 0 && own.begin < own.end && own.end <= batch_size && shape.size() > 0 && shape[0] == own.count(),
            "buffer {} of shape {} does not hold rows {} to {} of a batch of {}", name, shape, own.begin, own.end, batch_size);
    require(!options.in_weights,
            "buffer {} holds rows of the batch, which are not saved with the weights: set in_weights = false", name);
  }
  require(options.rows.has_value() == (options.reduction == BufferReduction::none),
          "buffer {}: use BufferReduction::none for buffers of rows of the batch, and only for these", name);
  buffers_.push_back({.name = std::move(name), .shape = shape, .initial = initial, .offset = numel_, .options = options});
  numel_ += shape.numel();
  return size() - 1;
}

void BufferPlane::keep_only(const std::vector<bool>& kept) {
  require(!has_values_.made(), "buffers were given to other ranks after the first use of their values");
  std::vector<BufferInfo> all = std::exchange(buffers_, {});
  numel_ = 0;
  for (std::size_t index = 0; index < all.size(); ++index) {
    if (!kept[index]) continue;
    all[index].offset = numel_;
    numel_ += all[index].shape.numel();
    buffers_.push_back(std::move(all[index]));
  }
}

int BufferPlane::find(std::string_view name) const {
  const auto found = std::ranges::find(buffers_, name, &BufferInfo::name);
  return found == buffers_.end() ? -1 : static_cast<int>(found - buffers_.begin());
}

std::vector<int> BufferPlane::in_weights() const {
  std::vector<int> indices;
  for (int index = 0; index < size(); ++index) {
    if (info(index).options.in_weights) indices.push_back(index);
  }
  return indices;
}

void BufferPlane::require_type(DType wanted) {
  require(dtype_ == wanted, "the store holds {} and was asked for buffers of {}", name_of(dtype_), name_of(wanted));
  make_values();
}

void BufferPlane::require_device(const PlaneDevice& wanted) const {
  require(device_ == &wanted, "the store's buffers lie on another device than the one asked for");
}

void BufferPlane::require_count(int index, std::int64_t count) const {
  require(count == info(index).shape.numel(), "buffer {} has {} elements, not {}", info(index).name, info(index).shape.numel(),
          count);
}

const std::shared_ptr<device::Storage>& BufferPlane::plane() {
  make_values();
  return values_;
}

void BufferPlane::add_to(State& state, const std::string& prefix) {
  if (size() == 0) return;
  auto* listed = static_cast<std::byte*>(device_->listed(state, plane()->data(), bytes()));
  for (const BufferInfo& buffer : buffers_) {
    state.add(listed_buffer(prefix, buffer, dtype_, listed + static_cast<std::size_t>(buffer.offset) * size_of(dtype_)));
  }
}

void BufferPlane::keep() {
  if (kept_ == nullptr) kept_ = std::make_shared<device::Storage>(device_->memory(), bytes(), device::Changes::uncounted);
  device_->copy(kept_->data(), plane()->data(), bytes());
  are_kept_ = true;
}

void BufferPlane::restore() {
  if (are_kept_) device_->copy(values_->data(), kept_->data(), bytes());
}

void BufferPlane::restore_if(const bool* condition) {
  if (are_kept_) device_->copy_if(condition, values_->data(), kept_->data(), bytes());
}

bool BufferPlane::make_values() {
  return has_values_.make_once([this] {
    values_ = std::make_shared<device::Storage>(device_->memory(), bytes(), device::Changes::uncounted);
    std::vector<Range> elements;
    for (const BufferInfo& buffer : buffers_) elements.push_back({buffer.offset, buffer.offset + buffer.shape.numel()});
    parts_ = PlaneParts(values_, elements, size_of(dtype_));
    dtype_ == DType::float64 ? fill<double>({}) : fill<float>({});
  });
}

void BufferPlane::initialize(std::string_view module) {
  if (make_values()) return;
  dtype_ == DType::float64 ? fill<double>(module) : fill<float>(module);
}

template <typename T>
void BufferPlane::fill(std::string_view module) {
  for (int index = 0; index < size(); ++index) {
    if (!is_within(module, info(index).name)) continue;
    write(index, Tensor<T>::full(info(index).shape, static_cast<T>(info(index).initial)).data());
  }
}

void BufferPlane::write(int index, const void* values) {
  const BufferInfo& buffer = info(index);
  auto* place = static_cast<std::byte*>(values_->data()) + static_cast<std::size_t>(buffer.offset) * size_of(dtype_);
  device_->write(place, values, static_cast<std::size_t>(buffer.shape.numel()) * size_of(dtype_));
}

}  // namespace trireme
