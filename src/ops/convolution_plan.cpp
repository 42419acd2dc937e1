#include "ops/convolution_plan.hpp"

#include <omp.h>

#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "ops/onednn.hpp"
#include "trireme/core/error.hpp"
#include "trireme/device/memory.hpp"

namespace trireme::ops {
namespace {

using Descriptor = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
enum class Pass : std::uint8_t { forward, data, weight };

// Images stay as they are, channels last; oneDNN chooses the layout of the weights.
Descriptor image(const ConvolutionShape& shape, const Extent2d& extent, std::int64_t channels) {
  return {{shape.batch, channels, extent.height, extent.width}, onednn_type(shape.operands), Tag::nhwc};
}
Descriptor weights(const ConvolutionShape& s, dnnl::memory::data_type type, bool any) {
  if (s.groups == 1) return {{s.out, s.in, s.kernel.height, s.kernel.width}, type, any ? Tag::any : Tag::oihw};
  return {{s.groups, s.out / s.groups, s.in / s.groups, s.kernel.height, s.kernel.width}, type, any ? Tag::any : Tag::goihw};
}

using Arguments = std::unordered_map<int, const void*>;

// A primitive, the reorder of its weights where that is needed, and their memory objects.
class ConvolutionPlan {
 public:
  ConvolutionPlan(Pass pass, const ConvolutionShape& shape, const dnnl::engine& engine) : pass_(pass) {
    const auto x = image(shape, shape.x, shape.in);
    const auto y = image(shape, shape.y, shape.out);
    const auto weight = weights(shape, onednn_type(shape.operands), true);
    const auto dweight = weights(shape, dnnl::memory::data_type::f32, true);
    const auto bias = shape.bias ? Descriptor({shape.out}, dnnl::memory::data_type::f32, Tag::a) : Descriptor();
    const dnnl::memory::dims stride{shape.stride.height, shape.stride.width};
    const dnnl::memory::dims padding{shape.padding.height, shape.padding.width};
    const dnnl::memory::dims dilation{shape.dilation.height - 1, shape.dilation.width - 1};
    const auto direct = dnnl::algorithm::convolution_direct;
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, direct, x, weight, bias, y, stride, dilation, padding, padding}, attributes,
        engine);
    if (pass == Pass::forward) {
      make<dnnl::convolution_forward>(forward, forward.weights_desc(), shape, engine);
      add(DNNL_ARG_SRC, x, engine);
      if (shape.bias) add(DNNL_ARG_BIAS, bias, engine);
      add(DNNL_ARG_DST, y, engine);
    } else if (pass == Pass::data) {
      const dnnl::convolution_backward_data::primitive_desc backward({direct, x, weight, y, stride, dilation, padding, padding},
                                                                     attributes, engine, forward);
      make<dnnl::convolution_backward_data>(backward, backward.weights_desc(), shape, engine);
      add(DNNL_ARG_DIFF_DST, y, engine);
      add(DNNL_ARG_DIFF_SRC, x, engine);
    } else {
      const dnnl::convolution_backward_weights::primitive_desc backward(
          {direct, x, dweight, y, stride, dilation, padding, padding}, attributes, engine, forward);
      make<dnnl::convolution_backward_weights>(backward, backward.diff_weights_desc(), shape, engine);
      add(DNNL_ARG_SRC, x, engine);
      add(DNNL_ARG_DIFF_DST, y, engine);
    }
  }

  std::size_t scratchpad_bytes() const { return scratchpad_bytes_; }
  std::size_t weight_bytes() const { return reorders_ ? weight_.get_desc().get_size() : 0; }

  // `pointers` by oneDNN's argument numbers, the weights of the parameter's layout apart.
  void run(dnnl::stream& stream, const Arguments& pointers, const void* weight, void* scratchpad, void* reordered) {
    for (const auto& [argument, pointer] : pointers) {
      arguments_.at(argument).set_data_handle(const_cast<void*>(pointer));  // oneDNN only reads the inputs
    }
    plain_weight_.set_data_handle(const_cast<void*>(weight));
    weight_.set_data_handle(reorders_ ? reordered : const_cast<void*>(weight));
    arguments_.at(DNNL_ARG_SCRATCHPAD).set_data_handle(scratchpad);
    if (reorders_ && pass_ != Pass::weight) reorder_.execute(stream, plain_weight_, weight_);
    primitive_.execute(stream, arguments_);
    if (reorders_ && pass_ == Pass::weight) reorder_.execute(stream, weight_, plain_weight_);
  }

 private:
  template <typename Primitive, typename PrimitiveDescriptor>
  void make(const PrimitiveDescriptor& descriptor, const Descriptor& weight, const ConvolutionShape& shape,
            const dnnl::engine& engine) {
    primitive_ = Primitive(descriptor);
    scratchpad_bytes_ = descriptor.scratchpad_desc().get_size();
    add(DNNL_ARG_SCRATCHPAD, descriptor.scratchpad_desc(), engine);
    const auto plain =
        weights(shape, pass_ == Pass::weight ? dnnl::memory::data_type::f32 : onednn_type(shape.operands), false);
    plain_weight_ = dnnl::memory(plain, engine, nullptr);
    weight_ = dnnl::memory(weight, engine, nullptr);
    reorders_ = weight != plain;
    if (reorders_) {
      reorder_ = pass_ == Pass::weight ? dnnl::reorder(weight_, plain_weight_) : dnnl::reorder(plain_weight_, weight_);
    }
    arguments_.emplace(pass_ == Pass::weight ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, weight_);
  }
  void add(int argument, const Descriptor& descriptor, const dnnl::engine& engine) {
    arguments_.emplace(argument, dnnl::memory(descriptor, engine, nullptr));
  }

  Pass pass_;
  dnnl::primitive primitive_;
  dnnl::reorder reorder_;
  bool reorders_ = false;
  std::size_t scratchpad_bytes_ = 0;
  dnnl::memory weight_;
  dnnl::memory plain_weight_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

// Memory that grows to what the largest plan needs.
class Workspace {
 public:
  void* of(std::size_t bytes) {
    if (bytes > 0 && (storage_ == nullptr || storage_->bytes() < bytes)) {
      storage_ = std::make_unique<device::Storage>(device::host_memory(), bytes);
    }
    return storage_ == nullptr ? nullptr : storage_->data();
  }

 private:
  std::unique_ptr<device::Storage> storage_;
};

// The plans of one thread, which is one rank.
class ConvolutionPlans {
 public:
  void run(Pass pass, const ConvolutionShape& shape, const Arguments& pointers, const void* weight) {
    ConvolutionPlan& plan = find(pass, shape);
    plan.run(stream_, pointers, weight, scratchpad_.of(plan.scratchpad_bytes()), reordered_.of(plan.weight_bytes()));
    stream_.wait();
  }

 private:
  ConvolutionPlan& find(Pass pass, const ConvolutionShape& shape) {
    const std::tuple key(pass, shape, omp_get_max_threads());  // oneDNN plans for the threads it finds
    if (const auto found = plans_.find(key); found != plans_.end()) return found->second;
    if (plans_.size() == max_plans) plans_.clear();
    return plans_.emplace(key, ConvolutionPlan(pass, shape, engine_)).first->second;
  }

  static constexpr std::size_t max_plans = 1024;  // shapes that change all the time must not pile up

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::map<std::tuple<Pass, ConvolutionShape, int>, ConvolutionPlan> plans_;
  Workspace scratchpad_;
  Workspace reordered_;
};

void run(Pass pass, const ConvolutionShape& shape, const Arguments& pointers, const void* weight) {
  thread_local ConvolutionPlans plans;
  try {
    plans.run(pass, shape, pointers, weight);
  } catch (const dnnl::error& failure) {
    throw Error({.code = ErrorCode::internal,
                 .message = fmt::format("a convolution of [{}, {}, {}, {}] to {} channels failed: {}", shape.batch,
                                        shape.x.height, shape.x.width, shape.in, shape.out, failure.what()),
                 .operation = "oneDNN convolution"});
  }
}

}  // namespace

void run_convolution(const ConvolutionShape& shape, const void* x, const void* weight, const float* bias, void* y) {
  Arguments pointers{{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}};
  if (shape.bias) pointers.emplace(DNNL_ARG_BIAS, bias);
  run(Pass::forward, shape, pointers, weight);
}

void run_convolution_data(const ConvolutionShape& shape, const void* dy, const void* weight, void* dx) {
  run(Pass::data, shape, {{DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_SRC, dx}}, weight);
}

void run_convolution_weight(const ConvolutionShape& shape, const void* x, const void* dy, float* dweight) {
  run(Pass::weight, shape, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_DST, dy}}, dweight);
}

}  // namespace trireme::ops
