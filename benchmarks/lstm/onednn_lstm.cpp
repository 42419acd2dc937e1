#include "onednn_lstm.hpp"

#include <algorithm>
#include <random>
#include <unordered_map>

#include "ops/base/onednn.hpp"

using dnnl::memory;
using Tag = memory::format_tag;

struct OnednnLstm::State {
  explicit State(const LstmSizes& sizes)
      : t(sizes.time),
        n(sizes.batch),
        h(sizes.hidden),
        l(sizes.layers),
        forward_plan(plan_forward()),
        backward_plan(plan_backward()) {
    const auto& f = forward_plan;
    const auto& b = backward_plan;
    forward_arguments = {
        {DNNL_ARG_SRC_LAYER, random(f.src_layer_desc())},       {DNNL_ARG_SRC_ITER, random(f.src_iter_desc())},
        {DNNL_ARG_SRC_ITER_C, random(f.src_iter_c_desc())},     {DNNL_ARG_WEIGHTS_LAYER, random(f.weights_layer_desc())},
        {DNNL_ARG_WEIGHTS_ITER, random(f.weights_iter_desc())}, {DNNL_ARG_BIAS, random(f.bias_desc())},
        {DNNL_ARG_DST_LAYER, random(f.dst_layer_desc())},       {DNNL_ARG_DST_ITER, random(f.dst_iter_desc())},
        {DNNL_ARG_DST_ITER_C, random(f.dst_iter_c_desc())},     {DNNL_ARG_WORKSPACE, memory(f.workspace_desc(), engine)}};
    backward_arguments = forward_arguments;
    backward_arguments[DNNL_ARG_WEIGHTS_LAYER] = random(b.weights_layer_desc());
    backward_arguments[DNNL_ARG_WEIGHTS_ITER] = random(b.weights_iter_desc());
    backward_arguments.insert({{DNNL_ARG_DIFF_SRC_LAYER, random(b.diff_src_layer_desc())},
                               {DNNL_ARG_DIFF_SRC_ITER, random(b.diff_src_iter_desc())},
                               {DNNL_ARG_DIFF_SRC_ITER_C, random(b.diff_src_iter_c_desc())},
                               {DNNL_ARG_DIFF_WEIGHTS_LAYER, random(b.diff_weights_layer_desc())},
                               {DNNL_ARG_DIFF_WEIGHTS_ITER, random(b.diff_weights_iter_desc())},
                               {DNNL_ARG_DIFF_BIAS, random(b.diff_bias_desc())},
                               {DNNL_ARG_DIFF_DST_LAYER, random(b.diff_dst_layer_desc())},
                               {DNNL_ARG_DIFF_DST_ITER, random(b.diff_dst_iter_desc())},
                               {DNNL_ARG_DIFF_DST_ITER_C, random(b.diff_dst_iter_c_desc())}});
  }

  static memory::desc layout(const memory::dims& dims, Tag tag) { return {dims, memory::data_type::f32, tag}; }
  memory::desc sequence() const { return layout({t, n, h}, Tag::tnc); }
  memory::desc states() const { return layout({l, 1, n, h}, Tag::ldnc); }
  memory::desc weights(Tag tag) const { return layout({l, 1, h, 4, h}, tag); }
  memory::desc bias() const { return layout({l, 1, 4, h}, Tag::ldgo); }

  dnnl::lstm_forward::primitive_desc plan_forward() const {
    return trireme::ops::describe<dnnl::lstm_forward>(
        {engine}, dnnl::prop_kind::forward_training, dnnl::rnn_direction::unidirectional_left2right, sequence(), states(),
        states(), weights(Tag::any), weights(Tag::any), bias(), sequence(), states(), states());
  }
  dnnl::lstm_backward::primitive_desc plan_backward() const {
    return trireme::ops::describe_backward<dnnl::lstm_backward>(
        {engine}, forward_plan, dnnl::prop_kind::backward, dnnl::rnn_direction::unidirectional_left2right, sequence(), states(),
        states(), weights(Tag::any), weights(Tag::any), bias(), sequence(), states(), states(), sequence(), states(), states(),
        weights(Tag::any), weights(Tag::any), bias(), sequence(), states(), states());
  }

  memory random(const memory::desc& description) {
    memory result(description, engine);
    auto* values = static_cast<float*>(result.get_data_handle());
    std::generate_n(values, description.get_size() / sizeof(float), [this] { return distribution(generator); });
    return result;
  }

  // The weights change every step, so each pass reorders them into its layout.
  void set_weights(std::unordered_map<int, memory>& arguments) {
    for (const int argument : {DNNL_ARG_WEIGHTS_LAYER, DNNL_ARG_WEIGHTS_ITER}) {
      dnnl::reorder(stored_weights, arguments.at(argument)).execute(stream, stored_weights, arguments.at(argument));
    }
  }

  std::int64_t t, n, h, l;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::mt19937 generator{1};
  std::uniform_real_distribution<float> distribution{-0.04F, 0.04F};
  memory stored_weights = random(weights(Tag::ldgoi));
  dnnl::lstm_forward::primitive_desc forward_plan;
  dnnl::lstm_backward::primitive_desc backward_plan;
  dnnl::lstm_forward forward{forward_plan};
  dnnl::lstm_backward backward{backward_plan};
  std::unordered_map<int, memory> forward_arguments;
  std::unordered_map<int, memory> backward_arguments;
};

OnednnLstm::OnednnLstm(const LstmSizes& sizes) : state_(std::make_unique<State>(sizes)) {}
OnednnLstm::~OnednnLstm() = default;

void OnednnLstm::run() {
  state_->set_weights(state_->forward_arguments);
  state_->forward.execute(state_->stream, state_->forward_arguments);
  state_->set_weights(state_->backward_arguments);
  state_->backward.execute(state_->stream, state_->backward_arguments);
  state_->stream.wait();
}
