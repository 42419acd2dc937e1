#include "products/operands.hpp"
#include "products/ways.hpp"
#include "trireme/ops/convolution/convolution.hpp"

using namespace trireme;

namespace {

Way library(const ConvolutionLayer& layer, LayerPass pass) {
  const ops::Conv2dOptions options{.stride = layer.stride, .padding = layer.padding(), .groups = layer.groups};
  Tensor<float> x = filled({layer.batch, layer.side, layer.side, layer.in});
  Tensor<float> y = filled({layer.batch, layer.out_side(), layer.out_side(), layer.out});
  Tensor<float> weight = filled({layer.out, layer.in / layer.groups, layer.kernel, layer.kernel});
  switch (pass) {
    case LayerPass::forward:
      return {.name = "library", .run = [=]() mutable { ops::conv2d(x, weight, Tensor<float>(), options, y); }};
    case LayerPass::data:
      return {.name = "library", .run = [=]() mutable { ops::conv2d_backward_data(y, weight, options, x, false); }};
    case LayerPass::weight: break;
  }
  return {.name = "library", .run = [=]() mutable { ops::conv2d_backward_weight(x, y, options, weight, false); }};
}

// A way without `run` where oneDNN lacks the algorithm.
Way onednn(const std::string& name, const ConvolutionLayer& layer, LayerPass pass, dnnl::algorithm algorithm,
           dnnl::memory::format_tag images) {
  const auto type = dnnl::memory::data_type::f32;
  const dnnl::memory::desc x({layer.batch, layer.in, layer.side, layer.side}, type, images);
  const dnnl::memory::desc y({layer.batch, layer.out, layer.out_side(), layer.out_side()}, type, images);
  dnnl::memory::dims weight_dims{layer.out / layer.groups, layer.in / layer.groups, layer.kernel, layer.kernel};
  if (layer.groups > 1) weight_dims.insert(weight_dims.begin(), layer.groups);
  const dnnl::memory::desc weight(weight_dims, type, dnnl::memory::format_tag::any);
  const dnnl::memory::dims stride{layer.stride, layer.stride};
  const dnnl::memory::dims padding{layer.padding(), layer.padding()};
  const ops::PrimitiveOptions options{.engine = Plan::engine(), .allow_empty = true};
  const auto forward = ops::describe<dnnl::convolution_forward>(options, dnnl::prop_kind::forward_training, algorithm, x,
                                                                weight, y, stride, padding, padding);
  std::shared_ptr<Plan> plan;
  const auto keep = [&](const dnnl::primitive& primitive, const std::unordered_map<int, dnnl::memory::desc>& operands) {
    plan = std::make_shared<Plan>(primitive, operands);
  };
  if (!forward) return {.name = name};
  switch (pass) {
    case LayerPass::forward:
      keep(
          dnnl::convolution_forward(forward),
          {{DNNL_ARG_SRC, forward.src_desc()}, {DNNL_ARG_WEIGHTS, forward.weights_desc()}, {DNNL_ARG_DST, forward.dst_desc()}});
      break;
    case LayerPass::data:
      if (const auto found = ops::describe_backward<dnnl::convolution_backward_data>(options, forward, algorithm, x, weight, y,
                                                                                     stride, padding, padding)) {
        keep(dnnl::convolution_backward_data(found), {{DNNL_ARG_DIFF_SRC, found.diff_src_desc()},
                                                      {DNNL_ARG_WEIGHTS, found.weights_desc()},
                                                      {DNNL_ARG_DIFF_DST, found.diff_dst_desc()}});
      }
      break;
    case LayerPass::weight:
      if (const auto found = ops::describe_backward<dnnl::convolution_backward_weights>(options, forward, algorithm, x, weight,
                                                                                        y, stride, padding, padding)) {
        keep(dnnl::convolution_backward_weights(found), {{DNNL_ARG_SRC, found.src_desc()},
                                                         {DNNL_ARG_DIFF_WEIGHTS, found.diff_weights_desc()},
                                                         {DNNL_ARG_DIFF_DST, found.diff_dst_desc()}});
      }
      break;
  }
  if (plan == nullptr) return {.name = name};
  return {.name = name, .run = [plan] { plan->run(); }};
}

}  // namespace

std::vector<Way> ways_of(const ConvolutionLayer& layer, LayerPass pass) {
  using Tag = dnnl::memory::format_tag;
  return {library(layer, pass), onednn("direct", layer, pass, dnnl::algorithm::convolution_direct, Tag::any),
          onednn("channels last", layer, pass, dnnl::algorithm::convolution_direct, Tag::nhwc),
          onednn("Winograd", layer, pass, dnnl::algorithm::convolution_winograd, Tag::any)};
}
