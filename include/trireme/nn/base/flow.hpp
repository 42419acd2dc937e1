#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "trireme/autograd/record.hpp"
#include "trireme/autograd/variable.hpp"
#include "trireme/core/collectives.hpp"
#include "trireme/core/export.hpp"
#include "trireme/device/memory.hpp"

// The flow of an nn::Staged model goes from layer to layer. It is a Variable, or a struct of Variables, Tensors and vectors of
// these, of any element types. Such a struct lists its members in each(), and may define settled():
//
//   struct EncoderDecoder {
//     Variable<float> encoder, decoder;
//     std::vector<Variable<float>> skips;
//     Tensor<std::int32_t> lengths;  // without a gradient
//     void each(auto&& visit) { visit(encoder), visit(decoder), visit(skips), visit(lengths); }
//     EncoderDecoder settled() const;  // optional: the flow, ready for another stage
//   };
//
// Members may be undefined, and shapes may change from one micro-batch to the next.
namespace trireme TRIREME_EXPORT {
namespace nn {

// A tensor of a flow, without static types.
struct FlowPart {
  DType dtype = DType::uint8;
  Shape shape = {};
  std::shared_ptr<device::Storage> memory = {};
  std::int64_t offset = 0;     // bytes from the beginning of `memory`
  bool with_gradient = false;  // the receiver sends a gradient back

  std::byte* data() const { return static_cast<std::byte*>(memory->data()) + offset; }
  std::size_t bytes() const { return static_cast<std::size_t>(shape.numel()) * size_of(dtype); }
};

// A flow to be sent: its defined tensors, and the numbers from which the receiver rebuilds the flow.
struct PackedFlow {
  std::vector<std::int64_t> layout = {};
  std::vector<FlowPart> parts = {};
};

// Functions that take the gradients of a packed flow: give[i] takes the gradient of the i-th part that has a gradient.
using GiveGradients = std::vector<std::function<void(const FlowPart&)>>;

// Allocates tensors of this layout in the order of PackedFlow::parts, without initialising them. Throws Error{rank_mismatch}
// if the numbers are not a valid layout.
std::vector<FlowPart> allocate_parts(const std::vector<std::int64_t>& layout,
                                     const std::shared_ptr<device::MemoryResource>& memory);

// Allocates a part of the same type and shape; its memory is not initialised.
FlowPart allocate_like(const FlowPart& part, const std::shared_ptr<device::MemoryResource>& memory);

// Sends a part to another rank as elements of its type.
void send_part(const Collectives& ranks, const FlowPart& part, int to, int tag, std::string_view name);
Pending receive_part(const Collectives& ranks, const FlowPart& part, int from, int tag, std::string_view name);

// Send a whole flow outside of steps, beginning with its layout. broadcast_flow reads `flow` on the root only; all ranks get
// the flow.
void send_flow(const Collectives& ranks, const PackedFlow& flow, int to, std::string_view name);
PackedFlow receive_flow(const Collectives& ranks, int from, const std::shared_ptr<device::MemoryResource>& memory,
                        std::string_view name);
PackedFlow broadcast_flow(const Collectives& ranks, const PackedFlow& flow, int root,
                          const std::shared_ptr<device::MemoryResource>& memory, std::string_view name);

namespace detail {

// First number of a layout's entry. A vector of n entries starts with vector_of - n; the entries follow.
inline constexpr std::int64_t undefined_part = 0;
inline constexpr std::int64_t defined_part = 1;  // followed by dtype, with_gradient, the number of dims and the dims
inline constexpr std::int64_t vector_of = -1;

template <typename T, typename D>
FlowPart part_of(const Tensor<T, D>& tensor, bool with_gradient = false) {
  return {.dtype = dtype_of<T>,
          .shape = tensor.shape(),
          .memory = std::const_pointer_cast<device::Storage>(tensor.storage()),
          .offset = tensor.offset_in_bytes(),
          .with_gradient = with_gradient};
}
template <typename T, typename D>
Tensor<T, D> tensor_of(const FlowPart& part) {
  return Tensor<T, D>(part.shape, part.memory, static_cast<std::size_t>(part.offset) / sizeof(T));
}

template <typename Flow>
struct IsPart : std::false_type {};
template <typename T, typename D>
struct IsPart<Tensor<T, D>> : std::true_type {};
template <typename T, typename D, typename G>
struct IsPart<Variable<T, D, G>> : std::true_type {};

template <typename Flow, typename Visit>
void visit_parts(Flow& flow, Visit&& visit) {
  if constexpr (IsPart<Flow>::value) {
    visit(flow);
  } else {
    static_assert(
        requires { flow.each(visit); },
        "layers pass each other a Variable, a Tensor, or a struct with each(visit) that visits these");
    flow.each(visit);
  }
}

class FlowPacker {
 public:
  FlowPacker(PackedFlow& packed, GiveGradients* give) : packed_(packed), give_(give) {}

  template <typename T, typename D, typename G>
  void operator()(Variable<T, D, G>& variable) {
    static_assert(std::is_same_v<T, G>, "weights do not go from layer to layer");
    const bool with_gradient = give_ != nullptr && variable.gradient().needed();
    if (!add(variable.value(), with_gradient) || !with_gradient) return;
    give_->push_back([gradient = variable.gradient()](const FlowPart& part) { gradient.give(tensor_of<T, D>(part)); });
  }
  template <typename T, typename D>
  void operator()(Tensor<T, D>& tensor) {
    add(tensor, false);
  }
  template <typename Part>
  void operator()(std::vector<Part>& parts) {
    packed_.layout.push_back(vector_of - static_cast<std::int64_t>(parts.size()));
    for (Part& part : parts) visit_parts(part, *this);
  }

 private:
  template <typename T, typename D>
  bool add(const Tensor<T, D>& tensor, bool with_gradient) {
    packed_.layout.push_back(tensor.defined() ? defined_part : undefined_part);
    if (!tensor.defined()) return false;
    const Shape& shape = tensor.shape();
    packed_.layout.insert(packed_.layout.end(),
                          {static_cast<std::int64_t>(dtype_of<T>), with_gradient ? 1 : 0, std::int64_t{shape.size()}});
    packed_.layout.insert(packed_.layout.end(), shape.dims().begin(), shape.dims().end());
    packed_.parts.push_back(part_of(tensor, with_gradient));
    return true;
  }

  PackedFlow& packed_;
  GiveGradients* give_;
};

class FlowUnpacker {
 public:
  FlowUnpacker(const PackedFlow& packed, std::vector<FlowPart>* gradients) : packed_(packed), gradients_(gradients) {}

  template <typename T, typename D, typename G>
  void operator()(Variable<T, D, G>& variable) {
    const FlowPart* part = next(dtype_of<T>);
    if (part == nullptr) {
      variable = {};
    } else if (gradients_ == nullptr || !part->with_gradient) {
      variable = Variable<T, D, G>(tensor_of<T, D>(*part));
    } else {
      const std::size_t place = gradients_->size();
      gradients_->emplace_back();
      variable = watch(tensor_of<T, D>(*part), [gradients = gradients_, place](const Tensor<T, D>& gradient) {
        (*gradients)[place] = part_of(gradient);
      });
    }
  }
  template <typename T, typename D>
  void operator()(Tensor<T, D>& tensor) {
    const FlowPart* part = next(dtype_of<T>);
    tensor = part == nullptr ? Tensor<T, D>() : tensor_of<T, D>(*part);
  }
  template <typename Part>
  void operator()(std::vector<Part>& parts) {
    parts = std::vector<Part>(count());
    for (Part& part : parts) visit_parts(part, *this);
  }

 private:
  const FlowPart* next(DType dtype);  // null: undefined
  std::size_t count();                // of a vector
  std::int64_t number();

  const PackedFlow& packed_;
  std::vector<FlowPart>* gradients_;
  std::size_t place_ = 0;  // in the layout
  std::size_t part_ = 0;
};

}  // namespace detail

// The flow as it is sent to another stage.
template <typename Flow>
Flow settled(const Flow& flow) {
  if constexpr (requires { flow.settled(); }) {
    return flow.settled();
  } else {
    return flow;
  }
}

// With `give`, parts with a gradient on the current tape are marked, and `give` gets one function for each of these parts.
// Without `give`, all parts are constants.
template <typename Flow>
PackedFlow pack(Flow flow, GiveGradients* give = nullptr) {
  PackedFlow packed;
  detail::visit_parts(flow, detail::FlowPacker(packed, give));
  return packed;
}

// With `gradients`, the current tape's backward pass writes the gradients of the parts marked with_gradient to this vector, in
// order. The vector must stay in place until the backward pass ends. The entry of a part that got no gradient has no memory.
template <typename Flow>
Flow unpack(const PackedFlow& packed, std::vector<FlowPart>* gradients = nullptr) {
  Flow flow{};
  detail::visit_parts(flow, detail::FlowUnpacker(packed, gradients));
  return flow;
}

}  // namespace nn
}  // namespace trireme
