#include "trireme/nn/base/flow.hpp"

#include <array>
#include <iterator>
#include <span>
#include <string>

#include "trireme/core/bfloat16.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/float16.hpp"

namespace trireme::nn {
namespace {

constexpr std::int64_t num_dtypes = static_cast<std::int64_t>(DType::float64) + 1;

// Calls action(span of T) with the element type of the part; types that collectives do not have are passed as bytes.
template <typename Action>
auto with_elements(const FlowPart& part, const Action& action) {
  const auto as = [&]<typename T>() {
    return action(std::span(reinterpret_cast<T*>(part.data()), static_cast<std::size_t>(part.shape.numel())));
  };
  switch (part.dtype) {
    case DType::float32: return as.template operator()<float>();
    case DType::float64: return as.template operator()<double>();
    case DType::bfloat16: return as.template operator()<bfloat16>();
    case DType::float16: return as.template operator()<float16>();
    case DType::int32: return as.template operator()<std::int32_t>();
    case DType::int64: return as.template operator()<std::int64_t>();
    default: return action(std::span(reinterpret_cast<std::uint8_t*>(part.data()), part.bytes()));
  }
}

[[noreturn]] void refuse_layout() {
  throw Error({.code = ErrorCode::rank_mismatch,
               .message = "another rank sent something that is not the layout of a flow",
               .hint = "run the same program on all ranks"});
}

std::int64_t take(const std::vector<std::int64_t>& layout, std::size_t& place) {
  if (place >= layout.size()) refuse_layout();
  return layout[place++];
}

// Reads the part at this place, without memory. False if it is undefined.
bool read_part(const std::vector<std::int64_t>& layout, std::size_t& place, FlowPart& part) {
  const std::int64_t kind = take(layout, place);
  if (kind == detail::undefined_part) return false;
  if (kind != detail::defined_part) refuse_layout();
  const std::int64_t dtype = take(layout, place);
  const std::int64_t gradient = take(layout, place);
  const std::int64_t dims = take(layout, place);
  if (dtype < 0 || dtype >= num_dtypes || (gradient != 0 && gradient != 1) || dims < 0 || dims > Shape::max_dims) {
    refuse_layout();
  }
  std::vector<std::int64_t> extents;
  for (std::int64_t dim = 0; dim < dims; ++dim) extents.push_back(take(layout, place));
  part.dtype = static_cast<DType>(dtype);
  part.with_gradient = gradient == 1;
  part.shape = Shape(std::span<const std::int64_t>(extents));
  return true;
}

}  // namespace

namespace detail {

std::int64_t FlowUnpacker::number() { return take(packed_.layout, place_); }

const FlowPart* FlowUnpacker::next(DType dtype) {
  FlowPart said;
  if (!read_part(packed_.layout, place_, said)) return nullptr;
  if (said.dtype != dtype || part_ >= packed_.parts.size()) refuse_layout();
  return &packed_.parts[part_++];
}

std::size_t FlowUnpacker::count() {
  const std::int64_t kind = number();
  if (kind > vector_of) refuse_layout();
  return static_cast<std::size_t>(vector_of - kind);
}

}  // namespace detail

std::vector<FlowPart> allocate_parts(const std::vector<std::int64_t>& layout,
                                     const std::shared_ptr<device::MemoryResource>& memory) {
  std::vector<FlowPart> parts;
  for (std::size_t place = 0; place < layout.size();) {
    if (layout[place] <= detail::vector_of) {
      ++place;
      continue;
    }
    FlowPart part;
    if (!read_part(layout, place, part)) continue;
    parts.push_back(allocate_like(part, memory));
  }
  return parts;
}

FlowPart allocate_like(const FlowPart& part, const std::shared_ptr<device::MemoryResource>& memory) {
  return {.dtype = part.dtype,
          .shape = part.shape,
          .memory = std::make_shared<device::Storage>(memory, part.bytes()),
          .with_gradient = part.with_gradient};
}

void send_part(const Collectives& ranks, const FlowPart& part, int to, int tag, std::string_view name) {
  with_elements(part, [&]<typename T>(std::span<T> elements) { ranks.send(std::span<const T>(elements), to, tag, name); });
}

Pending receive_part(const Collectives& ranks, const FlowPart& part, int from, int tag, std::string_view name) {
  return with_elements(part, [&](auto elements) { return ranks.receive(elements, from, tag, name); });
}

void send_flow(const Collectives& ranks, const PackedFlow& flow, int to, std::string_view name) {
  const std::array<std::int64_t, 1> length{std::ssize(flow.layout)};
  ranks.send(std::span<const std::int64_t>(length), to, 0, name);
  ranks.send(std::span<const std::int64_t>(flow.layout), to, 0, name);
  for (const FlowPart& part : flow.parts) send_part(ranks, part, to, 0, name);
}

PackedFlow receive_flow(const Collectives& ranks, int from, const std::shared_ptr<device::MemoryResource>& memory,
                        std::string_view name) {
  std::array<std::int64_t, 1> length{};
  ranks.receive(std::span(length), from, 0, name).wait_on_host();
  PackedFlow flow{.layout = std::vector<std::int64_t>(static_cast<std::size_t>(length[0]))};
  ranks.receive(std::span(flow.layout), from, 0, name).wait_on_host();
  flow.parts = allocate_parts(flow.layout, memory);
  for (const FlowPart& part : flow.parts) receive_part(ranks, part, from, 0, name).wait_on_host();
  return flow;
}

PackedFlow broadcast_flow(const Collectives& ranks, const PackedFlow& flow, int root,
                          const std::shared_ptr<device::MemoryResource>& memory, std::string_view name) {
  PackedFlow all = ranks.rank() == root ? flow : PackedFlow();
  std::array<std::int64_t, 1> length{std::ssize(all.layout)};
  ranks.broadcast(std::span(length), root, name).wait_on_host();
  all.layout.resize(static_cast<std::size_t>(length[0]));
  ranks.broadcast(std::span(all.layout), root, name).wait_on_host();
  if (ranks.rank() != root) all.parts = allocate_parts(all.layout, memory);
  for (const FlowPart& part : all.parts) {
    with_elements(part, [&](auto elements) { ranks.broadcast(elements, root, name).wait_on_host(); });
  }
  return all;
}

}  // namespace trireme::nn
