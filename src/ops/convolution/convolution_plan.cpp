#include "ops/convolution/convolution_plan.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ops/base/onednn.hpp"
#include "trireme/core/error.hpp"
#include "trireme/device/memory.hpp"

namespace trireme::ops {
namespace {

using Descriptor = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
enum class Pass : std::uint8_t { forward, data, weight };

// oneDNN's 1x1 convolution with a stride copies the pixels that it needs to memory of each thread. If there are fewer channels
// than a block of 8 or 16, the gradient of the weight writes past that memory: results are wrong at times, or the process dies
// (https://github.com/uxlfoundation/oneDNN/issues/6035, open in version 3; seen with 2.6.3). oneDNN's other implementations are
// correct.
bool breaks_1x1(const ConvolutionShape& s) {
  constexpr Extent2d one = 1;
  return s.kernel == one && s.stride != one && s.in / s.groups < 16;
}

// Images are not reordered: channels last.
Descriptor image(const ConvolutionShape& shape, const Extent2d& extent, std::int64_t channels) {
  return {{shape.batch, channels, extent.height, extent.width}, onednn_type(shape.operands), Tag::nhwc};
}
Descriptor weights(const ConvolutionShape& s, dnnl::memory::data_type type, bool any) {
  if (s.groups == 1) return {{s.out, s.in, s.kernel.height, s.kernel.width}, type, any ? Tag::any : Tag::oihw};
  return {{s.groups, s.out / s.groups, s.in / s.groups, s.kernel.height, s.kernel.width}, type, any ? Tag::any : Tag::goihw};
}

using Arguments = std::unordered_map<int, const void*>;

// A primitive and the memory objects of its operands, with reorders for operands that need another layout.
class ConvolutionPlan {
 public:
  ConvolutionPlan(Pass pass, const ConvolutionShape& shape, const dnnl::engine& engine) {
    const auto algorithm = dnnl::algorithm::convolution_direct;
    const auto x = image(shape, shape.x, shape.in);
    const auto y = image(shape, shape.y, shape.out);
    const auto weight = weights(shape, onednn_type(shape.operands), true);
    const auto dweight = weights(shape, dnnl::memory::data_type::f32, true);
    const auto bias = shape.bias ? Descriptor({shape.out}, dnnl::memory::data_type::f32, Tag::a) : Descriptor();
    const dnnl::memory::dims stride{shape.stride.height, shape.stride.width};
    const dnnl::memory::dims padding{shape.padding.height, shape.padding.width};
    const dnnl::memory::dims dilation{shape.dilation.height - 1, shape.dilation.width - 1};
    PrimitiveOptions options{.engine = engine};
    options.attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (breaks_1x1(shape)) options.leave_out = "1x1";
    const auto given_weight = weights(shape, onednn_type(shape.operands), false);
    const auto forward = describe<dnnl::convolution_forward>(options, dnnl::prop_kind::forward_training, algorithm, x, weight,
                                                             bias, y, stride, dilation, padding, padding);
    if (pass == Pass::forward) {
      make<dnnl::convolution_forward>(forward, engine);
      add(DNNL_ARG_SRC, x, forward.src_desc(), false, engine);
      add(DNNL_ARG_WEIGHTS, given_weight, forward.weights_desc(), false, engine);
      if (shape.bias) add(DNNL_ARG_BIAS, bias, bias, false, engine);
      add(DNNL_ARG_DST, y, forward.dst_desc(), true, engine);
    } else if (pass == Pass::data) {
      const auto backward = describe_backward<dnnl::convolution_backward_data>(options, forward, algorithm, x, weight, y,
                                                                               stride, dilation, padding, padding);
      make<dnnl::convolution_backward_data>(backward, engine);
      add(DNNL_ARG_DIFF_DST, y, backward.diff_dst_desc(), false, engine);
      add(DNNL_ARG_WEIGHTS, given_weight, backward.weights_desc(), false, engine);
      add(DNNL_ARG_DIFF_SRC, x, backward.diff_src_desc(), true, engine);
    } else {
      const auto backward = describe_backward<dnnl::convolution_backward_weights>(options, forward, algorithm, x, dweight, y,
                                                                                  stride, dilation, padding, padding);
      make<dnnl::convolution_backward_weights>(backward, engine);
      add(DNNL_ARG_SRC, x, backward.src_desc(), false, engine);
      add(DNNL_ARG_DIFF_DST, y, backward.diff_dst_desc(), false, engine);
      add(DNNL_ARG_DIFF_WEIGHTS, weights(shape, dnnl::memory::data_type::f32, false), backward.diff_weights_desc(), true,
          engine);
    }
  }

  std::size_t scratchpad_bytes() const { return scratchpad_bytes_; }
  std::size_t reordered_bytes() const { return reordered_bytes_; }

  void run(dnnl::stream& stream, const Arguments& pointers, void* scratchpad, void* reordered) {
    for (Operand& operand : operands_) {
      void* data = const_cast<void*>(pointers.at(operand.argument));  // oneDNN only reads the inputs
      operand.given.set_data_handle(data);
      operand.taken.set_data_handle(operand.reorder ? static_cast<std::byte*>(reordered) + operand.offset : data);
      if (operand.reorder && !operand.written) operand.reorder.execute(stream, operand.given, operand.taken);
    }
    arguments_.at(DNNL_ARG_SCRATCHPAD).set_data_handle(scratchpad);
    primitive_.execute(stream, arguments_);
    for (Operand& operand : operands_) {
      if (operand.reorder && operand.written) operand.reorder.execute(stream, operand.taken, operand.given);
    }
  }

 private:
  struct Operand {
    int argument;
    bool written;
    dnnl::memory given;
    dnnl::memory taken;
    dnnl::reorder reorder;  // empty if both layouts are the same
    std::size_t offset;     // of `taken` in the memory for reordered operands
  };

  template <typename Primitive, typename PrimitiveDescriptor>
  void make(const PrimitiveDescriptor& descriptor, const dnnl::engine& engine) {
    primitive_ = Primitive(descriptor);
    scratchpad_bytes_ = descriptor.scratchpad_desc().get_size();
    arguments_.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(descriptor.scratchpad_desc(), engine, nullptr));
  }

  void add(int argument, const Descriptor& given, const Descriptor& taken, bool written, const dnnl::engine& engine) {
    Operand operand{.argument = argument,
                    .written = written,
                    .given = dnnl::memory(given, engine, nullptr),
                    .taken = dnnl::memory(taken, engine, nullptr),
                    .reorder = {},
                    .offset = reordered_bytes_};
    if (given != taken) {
      operand.reorder = written ? dnnl::reorder(operand.taken, operand.given) : dnnl::reorder(operand.given, operand.taken);
      reordered_bytes_ += (taken.get_size() + device::alignment - 1) / device::alignment * device::alignment;
    }
    arguments_.emplace(argument, operand.taken);
    operands_.push_back(std::move(operand));
  }

  dnnl::primitive primitive_;
  std::vector<Operand> operands_;
  std::unordered_map<int, dnnl::memory> arguments_;
  std::size_t scratchpad_bytes_ = 0;
  std::size_t reordered_bytes_ = 0;
};

// Memory that grows to the size that the largest plan needs.
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

// The plans of one thread, which belongs to one rank.
class ConvolutionPlans {
 public:
  void run(Pass pass, const ConvolutionShape& shape, const Arguments& pointers) {
    ConvolutionPlan& plan = find(pass, shape);
    plan.run(stream_, pointers, scratchpad_.of(plan.scratchpad_bytes()), reordered_.of(plan.reordered_bytes()));
    stream_.wait();
  }

 private:
  ConvolutionPlan& find(Pass pass, const ConvolutionShape& shape) {
    const std::tuple key(pass, shape, onednn_threads());
    if (const auto found = plans_.find(key); found != plans_.end()) return found->second;
    if (plans_.size() == max_plans) plans_.clear();
    return plans_.emplace(key, ConvolutionPlan(pass, shape, engine_)).first->second;
  }

  static constexpr std::size_t max_plans = 1024;  // limits the memory if shapes change all the time

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::map<std::tuple<Pass, ConvolutionShape, int>, ConvolutionPlan> plans_;
  Workspace scratchpad_;
  Workspace reordered_;
};

void run(Pass pass, const ConvolutionShape& shape, const Arguments& pointers) {
  thread_local ConvolutionPlans plans;
  try {
    plans.run(pass, shape, pointers);
  } catch (const dnnl::error& failure) {
    throw Error({.code = ErrorCode::internal,
                 .message = fmt::format("a convolution of [{}, {}, {}, {}] to {} channels failed: {}", shape.batch,
                                        shape.x.height, shape.x.width, shape.in, shape.out, failure.what()),
                 .operation = "oneDNN convolution"});
  }
}

}  // namespace

void run_convolution(const ConvolutionShape& shape, const void* x, const void* weight, const float* bias, void* y) {
  Arguments pointers{{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DST, y}};
  if (shape.bias) pointers.emplace(DNNL_ARG_BIAS, bias);
  run(Pass::forward, shape, pointers);
}

void run_convolution_data(const ConvolutionShape& shape, const void* dy, const void* weight, void* dx) {
  run(Pass::data, shape, {{DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DIFF_SRC, dx}});
}

void run_convolution_weight(const ConvolutionShape& shape, const void* x, const void* dy, float* dweight) {
  run(Pass::weight, shape, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_WEIGHTS, dweight}});
}

}  // namespace trireme::ops
