#include "trireme/autograd/flat_store.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>

#include "autograd/initial_values.hpp"
#include "trireme/autograd/module_switches.hpp"
#include "trireme/core/error.hpp"

namespace trireme {
namespace {

constexpr std::size_t segment_alignment = 64;             // bytes
constexpr std::int64_t least_drawn_by_threads = 1 << 13;  // random values for which starting threads pays

bool makes_zeros(const Initializer& initializer) {
  return initializer.a == 0 && (initializer.kind == Initializer::Kind::constant || initializer.b == 0);
}

std::uint64_t next_store_serial() {
  static std::atomic<std::uint64_t> serial{0};
  return ++serial;
}

}  // namespace

FlatStore::FlatStore(DType dtype, DType compute_dtype, const PlaneDevice& device)
    : serial_(next_store_serial()),
      dtype_(dtype),
      compute_dtype_(compute_dtype),
      device_(&device),
      planes_(std::make_shared<PlaneTable>(device)),
      buffers_(dtype, device) {
  add_plane("values", {.dtype = dtype, .extent = Extent::all});
  add_plane("gradients", {.dtype = dtype, .extent = Extent::trainable});
  if (compute_dtype != dtype) add_plane("compute copy", {.dtype = compute_dtype, .extent = Extent::all});
}

int FlatStore::add(std::string name, const Shape& shape, const Initializer& initializer) {
  return add(std::move(name), Placement{.shape = shape}, initializer);
}

int FlatStore::add(std::string name, const Placement& placement, const Initializer& initializer) {
  require(!laid_out_.made(), "parameter {} was added after the first use of the store's values", name);
  require_open_list(name);
  require(find(name) < 0 && buffers_.find(name) < 0, "two parameters or buffers are named {}", name);
  placement.check(name);
  const Shape shape = placement.local_shape();
  parameters_.push_back(
      {.name = std::move(name), .shape = shape, .placement = placement, .initializer = initializer, .numel = shape.numel()});
  return num_parameters() - 1;
}

int FlatStore::add_buffer(std::string name, const Shape& shape, double initial, const BufferOptions& options) {
  require_open_list(name);
  require(find(name) < 0 && buffers_.find(name) < 0, "two parameters or buffers are named {}", name);
  return buffers_.add(std::move(name), shape, initial, options);
}

void FlatStore::freeze(int number) {
  int index = number;
  if (is_distributed_) index = holders_[static_cast<std::size_t>(number)].index;
  if (index < 0) return;  // the ranks that hold it freeze it
  ParameterInfo& info = parameters_[static_cast<std::size_t>(index)];
  require(!laid_out_.made(), "parameter {} was frozen after the first use of the store's values", info.name);
  info.trainable = false;
}

void FlatStore::require_open_list(std::string_view name) const {
  require(!is_distributed_, "{} was added after the layers of its model were divided into stages: make it before layers()",
          name);
}

void FlatStore::distribute(int rank, std::span<const std::vector<int>> parameters, std::span<const std::vector<int>> buffers) {
  require(!is_distributed_, "the layers of a model are divided into stages once");
  require(!laid_out_.made(),
          "a value of a parameter, or its place in the store, was asked for before the layers were divided into stages: call "
          "layers() first");
  require(parameters.size() == parameters_.size() && buffers.size() == static_cast<std::size_t>(buffers_.size()),
          "distribute() was told of {} parameters and {} buffers, the store has {} and {}", parameters.size(), buffers.size(),
          parameters_.size(), buffers_.size());
  is_distributed_ = true;
  std::vector<ParameterInfo> here;
  for (std::size_t number = 0; number < parameters.size(); ++number) {
    ParameterInfo& info = parameters_[number];
    Holders& known =
        holders_.emplace_back(Holders{.name = info.name, .numel = info.placement.shape.numel(), .ranks = parameters[number]});
    if (std::ranges::find(known.ranks, rank) == known.ranks.end()) continue;
    known.index = static_cast<int>(here.size());
    if (known.ranks.size() > 1) info.tied_ranks = known.ranks;
    here.push_back(std::move(info));
  }
  parameters_ = std::move(here);
  std::vector<bool> kept;
  int next_buffer = 0;
  for (std::size_t number = 0; number < buffers.size(); ++number) {
    kept.push_back(std::ranges::find(buffers[number], rank) != buffers[number].end());
    const BufferInfo& info = buffers_.info(static_cast<int>(number));
    buffer_holders_.push_back(
        {.name = info.name, .numel = info.shape.numel(), .ranks = buffers[number], .index = kept.back() ? next_buffer++ : -1});
  }
  buffers_.keep_only(kept);
}

int FlatStore::index_in(const std::vector<Holders>& holders, int number) {
  const Holders& known = holders[static_cast<std::size_t>(number)];
  if (known.index < 0) {
    throw Error(
        {.code = ErrorCode::invalid_argument,
         .message = fmt::format("{} lies on rank {} of the pipeline, not here", known.name, fmt::join(known.ranks, ", ")),
         .name = known.name,
         .hint = "a layer that uses a parameter of another layer must call share(), and layers() must name all modules that a "
                 "layer calls"});
  }
  return known.index;
}

const ParameterInfo& FlatStore::registered(int number) const {
  require(!is_distributed_, "parameter {} was asked for by its number after the layers were divided into stages", number);
  return parameters_[static_cast<std::size_t>(number)];
}

std::vector<FlatStore::Tied> FlatStore::tied() const {
  std::vector<Tied> result;
  for (auto known = holders_.rbegin(); known != holders_.rend(); ++known) {
    if (known->ranks.size() > 1) result.push_back({known->name, known->ranks, known->index});
  }
  return result;
}

int FlatStore::index_of(int number) const { return is_distributed_ ? index_in(holders_, number) : number; }

int FlatStore::buffer_index_of(int number) const { return is_distributed_ ? index_in(buffer_holders_, number) : number; }

const ParameterInfo& FlatStore::parameter(int index) {
  lay_out();
  return parameters_[static_cast<std::size_t>(index)];
}

int FlatStore::find(std::string_view name) const {
  for (int index = 0; index < num_parameters(); ++index) {
    if (parameters_[static_cast<std::size_t>(index)].name == name) return index;
  }
  return -1;
}

std::span<const int> FlatStore::layout() {
  lay_out();
  return layout_;
}

std::int64_t FlatStore::trainable_numel() {
  lay_out();
  return trainable_numel_;
}

std::vector<std::string> FlatStore::all_names() const {
  std::vector<std::string> names;
  for (const Holders& parameter : holders_) names.push_back(parameter.name);
  if (is_distributed_) return names;
  for (const ParameterInfo& parameter : parameters_) names.push_back(parameter.name);
  return names;
}

std::int64_t FlatStore::num_elements() const {
  std::int64_t count = 0;
  for (const ParameterInfo& parameter : parameters_) count += parameter.placement.shape.numel();
  for (const Holders& parameter : holders_) count += parameter.index < 0 ? parameter.numel : 0;
  return count;
}

std::int64_t FlatStore::numel() {
  lay_out();
  return numel_;
}

void FlatStore::lay_out() {
  laid_out_.make_once([this] { set_places(); });
}

void FlatStore::set_places() {
  // In mixed precision a segment starts at whole cache lines of either plane.
  const auto step = static_cast<std::int64_t>(segment_alignment / std::min(size_of(dtype_), size_of(compute_dtype_)));
  layout_.clear();
  numel_ = 0;
  for (const bool trainable : {true, false}) {
    for (int index = num_parameters() - 1; index >= 0; --index) {
      ParameterInfo& info = parameters_[static_cast<std::size_t>(index)];
      if (info.trainable != trainable) continue;
      info.offset = numel_;
      std::int64_t end = 0;
      require(!__builtin_add_overflow(numel_, info.numel, &end) && !__builtin_add_overflow(end, step - 1, &end),
              "with parameter {} of shape {} the model has more than 2^63 elements", info.name, info.shape);
      numel_ = end / step * step;
      layout_.push_back(index);
    }
    if (trainable) trainable_numel_ = numel_;
  }
  has_gradient_.assign(parameters_.size(), false);
  gradient_is_final_.assign(parameters_.size(), false);
  versions_.assign(parameters_.size(), 0);
  has_values_.assign(parameters_.size(), false);
  is_found_ = std::vector<std::atomic<bool>>(parameters_.size());
  PlaneTable::bytes_of(numel_, dtype_);  // throws if the values have too many bytes
  std::vector<Range> parts;
  for (const ParameterInfo& info : parameters_) parts.push_back({info.offset, info.offset + info.numel});
  planes_->lay_out(numel_, trainable_numel_, std::move(parts));
}

void FlatStore::require_dtype(DType held, DType wanted) {
  require(held == wanted, "the store holds {} and was asked for {}", name_of(held), name_of(wanted));
}

void FlatStore::refresh_compute_copy() {
  refresh_compute_copy({0, numel()});
  for (std::uint64_t& version : versions_) ++version;
}

void FlatStore::refresh_compute_copy(const Range& range) {
  lay_out();
  if (compute_dtype_ == dtype_) return;
  device_->round(value_plane(), range, compute_dtype_, plane(compute_number()));
}

template <typename T>
void FlatStore::initialize(std::uint64_t seed, std::string_view module) {
  for (int index = 0; index < num_parameters(); ++index) {
    const ParameterInfo& info = parameter(index);
    if (!is_within(module, info.name)) continue;
    const Tensor<T> values(info.shape);
    const InitialValues draw(info.initializer, info.placement.shape, info.name, seed);
    const auto pieces = info.placement.pieces();
#pragma omp parallel if (info.numel >= least_drawn_by_threads)
    for (const auto& piece : pieces) {
#pragma omp for schedule(static) nowait
      for (std::int64_t i = 0; i < piece.count; ++i) values.data()[piece.here + i] = static_cast<T>(draw(piece.whole + i));
    }
    write_values(index, values);
  }
  buffers_.initialize(module);
  refresh_compute_copy();
}

template void FlatStore::initialize<float>(std::uint64_t, std::string_view);
template void FlatStore::initialize<double>(std::uint64_t, std::string_view);

bool FlatStore::has_values() const { return std::ranges::count(has_values_, true) > 0; }

bool FlatStore::lacks_values(int index) {
  const ParameterInfo& info = parameter(index);
  if (info.numel == 0 || has_values_[static_cast<std::size_t>(index)] || makes_zeros(info.initializer)) return false;
  std::vector<std::byte> bytes(static_cast<std::size_t>(info.numel) * size_of(dtype_));
  device_->read(static_cast<const std::byte*>(value_plane()->data()) + static_cast<std::size_t>(info.offset) * size_of(dtype_),
                bytes.data(), bytes.size());
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{}; });
}

void FlatStore::find_values(int index) {
  if (lacks_values(index)) require_all_values();
  is_found_[static_cast<std::size_t>(index)].store(true, std::memory_order_relaxed);
}

void FlatStore::require_values() {
  if (values_are_checked_) return;
  require_all_values();
  values_are_checked_ = true;
}

void FlatStore::require_all_values() {
  std::vector<std::string_view> lacking;
  for (int index = 0; index < num_parameters(); ++index) {
    if (lacks_values(index)) lacking.push_back(parameter(index).name);
  }
  require(
      lacking.empty(),
      "{} of the model's {} parameters, the first of them {}, have no values: call initialize(), load weights or a checkpoint "
      "before the first forward pass",
      lacking.size(), num_parameters(), lacking.empty() ? "" : lacking.front());
}

std::vector<StatePiece> FlatStore::pieces_of(int index, const Range& range, void* data, std::size_t element_bytes) {
  const ParameterInfo& info = parameter(index);
  const Range here{std::max<std::int64_t>(range.begin - info.offset, 0), std::min(range.end - info.offset, info.numel)};
  std::vector<StatePiece> pieces;
  for (const auto& piece : info.placement.pieces(here)) {
    const auto place = static_cast<std::size_t>(info.offset + piece.here - range.begin);
    pieces.push_back(
        {.data = static_cast<std::byte*>(data) + place * element_bytes, .elements = {piece.whole, piece.whole + piece.count}});
  }
  return pieces;
}

void* FlatStore::list_plane(State& state, int number) {
  const device::Storage& memory = *plane(number);
  state.before_use([planes = std::weak_ptr<PlaneTable>(planes_), number, place = memory.data(), name = planes_->name(number)] {
    const auto held = planes.lock();
    require(held != nullptr && held->lies_at(number, place),
            "a State refers to old memory of the plane {}: make the State after DataParallel, and a new one after a model or "
            "an optimizer ends",
            name);
  });
  return planes_->device_of(number).listed(state, memory.data(), memory.bytes());
}

StateTensor FlatStore::listed(std::string name, int number, void* place, int index) {
  const DType dtype = planes_->options(number).dtype;
  StateTensor tensor{.name = std::move(name), .dtype = dtype, .shape = parameter(index).placement.shape};
  auto* data = static_cast<std::byte*>(place);
  for (const Range& range : planes_->ranges(number)) {
    const auto pieces = pieces_of(index, range, data, size_of(dtype));
    tensor.pieces.insert(tensor.pieces.end(), pieces.begin(), pieces.end());
    data += static_cast<std::size_t>(range.count()) * size_of(dtype);
  }
  return tensor;
}

void FlatStore::add_to(State& state, const std::string& prefix) {
  void* values = list_plane(state, values_number);
  for (int index = 0; index < num_parameters(); ++index) {
    state.add(listed(prefix + parameter(index).name, values_number, values, index));
  }
  buffers_.add_to(state, prefix);
  state.after_load([this] {
    has_values_.assign(parameters_.size(), true);
    refresh_compute_copy();
  });
}

void FlatStore::relocate(const std::shared_ptr<device::MemoryResource>& resource) {
  require(resource->on_host() == on_host(), "a store {} was to be moved into memory of \"{}\"",
          on_host() ? "on the host" : "on a GPU", resource->name());
  lay_out();
  planes_->move(values_number, resource);
  planes_->move(gradients_number, resource);
  if (on_host()) device::release_cached_host_memory();  // otherwise a smaller plane would take the values' old memory
}

void FlatStore::zero_gradient(int index) {
  const ParameterInfo& info = parameter(index);
  auto* bytes = static_cast<std::byte*>(gradient_plane()->data());
  device_->zero(bytes + static_cast<std::size_t>(info.offset) * size_of(dtype_),
                static_cast<std::size_t>(info.numel) * size_of(dtype_));
  set_has_gradient(index);
}

void FlatStore::begin_micro_batch() {
  lay_out();
  has_gradient_.assign(parameters_.size(), false);
  gradient_is_final_.assign(parameters_.size(), false);
}

void FlatStore::clear_gradients() {
  begin_micro_batch();
  buffers_.end_step();
}

void FlatStore::begin_step() {
  clear_gradients();
  buffers_.keep();
}

void FlatStore::refuse_gradient(int index) const {
  throw Error(
      {.code = ErrorCode::invalid_argument,
       .message =
           "a gradient arrived too late: the parameter's gradient was already final in this step, and ranks may be reducing it",
       .name = parameters_[static_cast<std::size_t>(index)].name,
       .hint = "run backward() on every other tape of the step before that of its last micro-batch, and once on each"});
}

void FlatStore::refuse_changed_values(int index) const {
  throw Error({.code = ErrorCode::invalid_argument,
               .message =
                   "a parameter was updated between the forward pass that read it and its backward pass, whose gradients "
                   "would mix values of before and after",
               .name = parameters_[static_cast<std::size_t>(index)].name,
               .hint = "compute what the loss needs of this model after its optimizer's step"});
}

}  // namespace trireme
