#include "ops/matmul/matmul_plan.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "ops/base/onednn.hpp"
#include "trireme/core/error.hpp"
#include "trireme/device/isa.hpp"
#include "trireme/device/memory.hpp"

namespace trireme::ops {
namespace {

using Descriptor = dnnl::memory::desc;

Descriptor matrix(std::int64_t rows, std::int64_t columns, bool transposed, DType dtype) {
  const dnnl::memory::dims strides = transposed ? dnnl::memory::dims{1, rows} : dnnl::memory::dims{columns, 1};
  return {{rows, columns}, onednn_type(dtype), strides};
}

// A primitive and its memory objects; only the pointers change from call to call.
class MatmulPlan {
 public:
  MatmulPlan(const MatmulShape& shape, const dnnl::engine& engine)
      : MatmulPlan(make_descriptor(shape, engine), shape.bias, engine) {}

  std::size_t scratchpad_bytes() const { return scratchpad_bytes_; }
  Descriptor layout_of_b() const { return arguments_.at(DNNL_ARG_WEIGHTS).get_desc(); }

  void run(dnnl::stream& stream, const void* a, const void* b, const float* bias, void* c, void* scratchpad) {
    set(DNNL_ARG_SRC, a);
    set(DNNL_ARG_WEIGHTS, b);
    if (bias != nullptr) set(DNNL_ARG_BIAS, bias);
    set(DNNL_ARG_DST, c);
    arguments_.at(DNNL_ARG_SCRATCHPAD).set_data_handle(scratchpad);
    primitive_.execute(stream, arguments_);
  }

 private:
  static dnnl::matmul::primitive_desc make_descriptor(const MatmulShape& shape, const dnnl::engine& engine) {
    PrimitiveOptions options{.engine = engine};
    options.attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (shape.accumulate) {
      dnnl::post_ops add_to_old;
      add_to_old.append_sum(1.0f);
      options.attributes.set_post_ops(add_to_old);
    }
    if (shape.operands == DType::float32 && !shape.packed_b) options.leave_out = product_in_place;
    const auto a = matrix(shape.m, shape.k, shape.transpose_a, shape.operands);
    const auto b = shape.packed_b ? Descriptor({shape.k, shape.n}, onednn_type(shape.operands), dnnl::memory::format_tag::any)
                                  : matrix(shape.k, shape.n, shape.transpose_b, shape.operands);
    const auto c = matrix(shape.m, shape.n, false, shape.result);
    const auto bias = shape.bias ? matrix(1, shape.n, false, DType::float32) : Descriptor();
    return describe<dnnl::matmul>(options, a, b, bias, c);
  }

  MatmulPlan(const dnnl::matmul::primitive_desc& descriptor, bool bias, const dnnl::engine& engine)
      : primitive_(descriptor), scratchpad_bytes_(descriptor.scratchpad_desc().get_size()) {
    const auto add = [&](int argument, const Descriptor& description) {
      arguments_.emplace(argument, dnnl::memory(description, engine, nullptr));
    };
    add(DNNL_ARG_SRC, descriptor.src_desc());
    add(DNNL_ARG_WEIGHTS, descriptor.weights_desc());
    if (bias) add(DNNL_ARG_BIAS, descriptor.bias_desc());
    add(DNNL_ARG_DST, descriptor.dst_desc());
    add(DNNL_ARG_SCRATCHPAD, descriptor.scratchpad_desc());
  }

  // oneDNN has no const data pointers; it only reads the inputs.
  void set(int argument, const void* data) { arguments_.at(argument).set_data_handle(const_cast<void*>(data)); }

  dnnl::matmul primitive_;
  std::size_t scratchpad_bytes_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

// The plans of one thread, which belongs to one rank.
class MatmulPlans {
 public:
  void run(const MatmulShape& shape, const void* a, const void* b, const float* bias, void* c) {
    MatmulPlan& plan = find(shape);
    if (plan.scratchpad_bytes() > 0 && (scratchpad_ == nullptr || scratchpad_->bytes() < plan.scratchpad_bytes())) {
      scratchpad_ = std::make_unique<device::Storage>(device::host_memory(), plan.scratchpad_bytes());
    }
    plan.run(stream_, a, b, bias, c, scratchpad_ == nullptr ? nullptr : scratchpad_->data());
    stream_.wait();
  }

  Tensor<float> pack_b(const MatmulShape& shape, const float* b) {
    dnnl::memory plain(matrix(shape.k, shape.n, shape.transpose_b, shape.operands), engine_, const_cast<float*>(b));
    const Descriptor layout = find(shape).layout_of_b();
    Tensor<float> result({static_cast<std::int64_t>(layout.get_size() / sizeof(float))});
    dnnl::memory packed(layout, engine_, result.data());
    dnnl::reorder(plain, packed).execute(stream_, plain, packed);
    stream_.wait();
    return result;
  }

 private:
  MatmulPlan& find(const MatmulShape& shape) {
    const std::pair key(shape, onednn_threads());
    if (const auto found = plans_.find(key); found != plans_.end()) return found->second;
    if (plans_.size() == max_plans) plans_.clear();
    return plans_.emplace(key, MatmulPlan(shape, engine_)).first->second;
  }

  static constexpr std::size_t max_plans = 1024;  // limits the memory if shapes change all the time

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::map<std::pair<MatmulShape, int>, MatmulPlan> plans_;
  std::unique_ptr<device::Storage> scratchpad_;
};

template <typename Use>
auto with_plans(const MatmulShape& shape, Use use) {
  thread_local MatmulPlans plans;
  try {
    return use(plans);
  } catch (const dnnl::error& failure) {
    throw Error({.code = ErrorCode::internal,
                 .message = fmt::format("a product of [{}, {}] and [{}, {}] failed: {}", shape.m, shape.k, shape.k, shape.n,
                                        failure.what()),
                 .operation = "oneDNN matmul"});
  }
}

}  // namespace

bool has_matmul(DType operands) {
  if (operands == DType::float32) return true;
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  return operands == DType::bfloat16 && (isa & needed) == needed && device::current_isa() == device::Isa::avx512;
}

void run_matmul(const MatmulShape& shape, const void* a, const void* b, const float* bias, void* c) {
  with_plans(shape, [&](MatmulPlans& plans) { plans.run(shape, a, b, bias, c); });
}

Tensor<float> pack_b(const MatmulShape& shape, const float* b) {
  return with_plans(shape, [&](MatmulPlans& plans) { return plans.pack_b(shape, b); });
}

}  // namespace trireme::ops
