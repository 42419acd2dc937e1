#include "convolution_floor.hpp"

#include <algorithm>
#include <unordered_map>

#include "measurement/random_memory.hpp"
#include "ops/base/onednn.hpp"
#include "ops/matmul/matmul_plan.hpp"

using Descriptor = dnnl::memory::desc;

struct ConvolutionFloor::Plans {
  struct Plan {
    dnnl::primitive primitive;
    std::unordered_map<int, dnnl::memory> arguments;
  };
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  RandomMemory random_memory{engine};
  std::vector<Plan> forward;
  std::vector<Plan> backward;

  void add(const Layer& layer, std::int64_t batch, dnnl::memory::data_type type, bool first) {
    const auto any = [](const dnnl::memory::dims& dims, dnnl::memory::data_type dtype) {
      return Descriptor(dims, dtype, dnnl::memory::format_tag::any);
    };
    const auto x = any({batch, layer.in, layer.side, layer.side}, type);
    const auto y = any({batch, layer.out, layer.out_side(), layer.out_side()}, type);
    const auto weight = any({layer.out, layer.in, layer.kernel, layer.kernel}, type);
    const auto dweight = any({layer.out, layer.in, layer.kernel, layer.kernel}, dnnl::memory::data_type::f32);
    const dnnl::memory::dims stride{layer.stride, layer.stride};
    const dnnl::memory::dims padding{layer.padding(), layer.padding()};
    const auto direct = dnnl::algorithm::convolution_direct;
    const auto description = trireme::ops::describe<dnnl::convolution_forward>({engine}, dnnl::prop_kind::forward_training,
                                                                               direct, x, weight, y, stride, padding, padding);
    forward.push_back({dnnl::convolution_forward(description),
                       {{DNNL_ARG_SRC, random_memory(description.src_desc())},
                        {DNNL_ARG_WEIGHTS, random_memory(description.weights_desc())},
                        {DNNL_ARG_DST, random_memory(description.dst_desc())}}});
    const auto of_weight = trireme::ops::describe_backward<dnnl::convolution_backward_weights>(
        {engine}, description, direct, x, dweight, y, stride, padding, padding);
    backward.push_back({dnnl::convolution_backward_weights(of_weight),
                        {{DNNL_ARG_SRC, random_memory(of_weight.src_desc())},
                         {DNNL_ARG_DIFF_DST, random_memory(of_weight.diff_dst_desc())},
                         {DNNL_ARG_DIFF_WEIGHTS, random_memory(of_weight.diff_weights_desc())}}});
    if (first) return;
    const auto of_data = trireme::ops::describe_backward<dnnl::convolution_backward_data>({engine}, description, direct, x,
                                                                                          weight, y, stride, padding, padding);
    backward.push_back({dnnl::convolution_backward_data(of_data),
                        {{DNNL_ARG_DIFF_DST, random_memory(of_data.diff_dst_desc())},
                         {DNNL_ARG_WEIGHTS, random_memory(of_data.weights_desc())},
                         {DNNL_ARG_DIFF_SRC, random_memory(of_data.diff_src_desc())}}});
  }
};

ConvolutionFloor::ConvolutionFloor(const std::vector<Layer>& layers, std::int64_t batch, trireme::DType dtype)
    : plans_(std::make_unique<Plans>()) {
  const auto type = trireme::ops::onednn_type(dtype);
  for (const Layer& layer : layers) plans_->add(layer, batch, type, &layer == &layers.front());
  std::ranges::reverse(plans_->backward);
}

std::unique_ptr<ConvolutionFloor> ConvolutionFloor::make(const std::vector<Layer>& layers, std::int64_t batch,
                                                         trireme::DType dtype) {
  if (!trireme::ops::has_matmul(dtype)) return nullptr;
  return std::make_unique<ConvolutionFloor>(layers, batch, dtype);
}

ConvolutionFloor::~ConvolutionFloor() = default;

void ConvolutionFloor::run() {
  for (auto& plan : plans_->forward) plan.primitive.execute(plans_->stream, plan.arguments);
  for (auto& plan : plans_->backward) plan.primitive.execute(plans_->stream, plan.arguments);
  plans_->stream.wait();
}

double convolution_operations(const std::vector<Layer>& layers, std::int64_t batch) {
  double operations = 0;
  for (const Layer& layer : layers) operations += (&layer == &layers.front() ? 2 : 3) * layer.operations(batch);
  return operations;
}
