#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "trireme/autograd/buffer.hpp"
#include "trireme/autograd/model.hpp"
#include "trireme/autograd/parameter.hpp"
#include "trireme/autograd/tape.hpp"
#include "trireme/autograd/tensor_parallel/operations.hpp"
#include "trireme/core/export.hpp"
#include "trireme/nn/base/layer_names.hpp"
#include "trireme/nn/base/named_errors.hpp"
#include "trireme/precision/policy.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

struct InitializeOptions {
  std::optional<std::uint64_t> seed = {};  // instead of ModelContext::seed
};

namespace detail {
// The compiler's error shows this name if the class of a part of a model has no constructor and is an aggregate.
struct WriteUsingModuleModuleInTheClassOfThisPart {};
}  // namespace detail

// A part of a model with a dotted name. The root makes the Model. The root and all modules within it register parameters in the
// store of the Model.
//
//   struct Mlp : nn::Module<Float32> {
//     using Module::Module;
//     Linear hidden{*this, "hidden", {.in = 64, .out = 128}};
//     Linear output{*this, "output", {.in = 128, .out = 10}};
//     Value forward(const Value& x) const { return output.forward(relu(hidden.forward(x))); }
//   };
//   Mlp model;  // or Mlp(context); within another module Mlp mlp{*this, "mlp"};
//
// In a class that derives from Module<P, D>, layers of nn have short names: Linear is nn::Linear<P, D>, and so on. Write
// ::Linear there for a layer of your own with the same name. In a class template, write typename Module<P, D>::Linear or
// nn::Linear<P, D>.
//
// Several threads may evaluate one model at the same time, by forward passes without a Tape in evaluation mode, if the model
// lies on one rank. Anything that changes the model (initialize, loading, a step, train, eval, writes to values) needs
// exclusive access.
template <typename P, typename D = Cpu>
class Module {
 public:
  using Precision = P;
  using Device = D;
  using Value = Variable<typename P::Compute, D>;  // operands and results of matrix products
  using Stream = Variable<typename P::Master, D>;  // the residual stream; inputs of norms and losses

  using BatchNorm1d = nn::BatchNorm2d<P, D>;
  using BatchNorm2d = nn::BatchNorm2d<P, D>;
  using Carried = nn::Carried<P, D>;
  using CausalSelfAttention = nn::CausalSelfAttention<P, D>;
  using Conv1d = nn::Conv1d<P, D>;
  using Conv2d = nn::Conv2d<P, D>;
  using Conv3d = nn::Conv3d<P, D>;
  using ConvTranspose1d = nn::ConvTranspose1d<P, D>;
  using ConvTranspose2d = nn::ConvTranspose2d<P, D>;
  using Dropout = nn::Dropout<P, D>;
  using DropPath = nn::DropPath<P, D>;
  using Embedding = nn::Embedding<P, D>;
  using GatedMlp = nn::GatedMlp<P, D>;
  using GroupNorm = nn::GroupNorm<P, D>;
  using Gru = nn::Recurrent<P, ops::RecurrentCell::gru, D>;
  using InstanceNorm1d = nn::InstanceNorm2d<P, D>;
  using InstanceNorm2d = nn::InstanceNorm2d<P, D>;
  using LayerNorm = nn::LayerNorm<P, D>;
  using Linear = nn::Linear<P, D>;
  using Lstm = nn::Recurrent<P, ops::RecurrentCell::lstm, D>;
  using MixtureOfExperts = nn::MixtureOfExperts<P, D>;
  using MultiheadAttention = nn::MultiheadAttention<P, D>;
  using PixelShuffle = nn::PixelShuffle<P, D>;
  using PRelu = nn::PRelu<P, D>;
  using Residual = nn::Residual<P, D>;
  using RmsNorm = nn::RmsNorm<P, D>;
  using Sequential = nn::Sequential<P, D>;
  using SpectralNormConv2d = nn::SpectralNormConv2d<P, D>;
  using SpectralNormLinear = nn::SpectralNormLinear<P, D>;
  using TokenEmbedding = nn::TokenEmbedding<P, D>;
  using TokenLogits = nn::TokenLogits<P, D>;
  using TransformerBlock = nn::TransformerBlock<P, D>;
  using TransformerEncoderLayer = nn::TransformerEncoderLayer<P, D>;
  using TransformerMlp = nn::TransformerMlp<P, D>;
  using Upsample = nn::Upsample<P, D>;
  using WeightNormConv1d = nn::WeightNormConv1d<P, D>;
  using WeightNormLinear = nn::WeightNormLinear<P, D>;

  using T = typename P::Compute;
  using M = typename P::Master;
  static_assert(std::same_as<M, typename P::Gradient> && std::same_as<M, Accumulate<T>>,
                "gradients are kept in the master type, in which sums of the compute type are accumulated");

  explicit Module(const ModelContext& context = {})
      : model_(std::make_shared<Model>(context, dtype_of<M>, dtype_of<T>, plane_device<D>())) {}
  Module(const Module& parent, std::string_view name) : model_(parent.model_), name_(parent.dotted(name)) {}
  Module(const Module& other) : model_(other.model_) {
    static_assert(std::is_void_v<P>,
                  "a module can't be copied or moved, because it refers to parameters of its model: take it by reference, and "
                  "keep several modules of one type in an nn::ModuleList");
  }
  Module& operator=(const Module&) = delete;
  template <typename Parent>
  requires(std::derived_from<Parent, Module> && !std::same_as<Parent, Module>)
      Module(const Parent&, detail::WriteUsingModuleModuleInTheClassOfThisPart = {})
  = delete;

  const std::string& name() const { return name_; }  // empty for the root
  Model& model() const { return *model_; }           // the model of which this module is a part
  FlatStore& store() const { return model_->store(); }
  const ModelContext& context() const { return model_->context(); }

  // The root converts to its model: optim::AdamW<Float32> optimizer(net).
  operator Model&() const {  // NOLINT(google-explicit-constructor)
    require(name_.empty(), "{} is a module within a model, not the whole model: pass the root, or model()", name_);
    return *model_;
  }

  // The ranks over which this model's layers are split; null if this rank holds whole layers.
  const Collectives* tensor_axis() const { return context().tensor.get(); }
  // Whether each rank of the tensor axis has its own rows.
  bool sequence_parallel() const { return context().sequence_parallel && tensor_axis() != nullptr; }

  // Initializes every parameter and buffer of this module and of the modules within it. Values depend only on the seed and the
  // dotted names. Call it on the root for the whole model, or model.head.initialize() for a new head on loaded weights.
  void initialize(const InitializeOptions& options = {}) {
    store().template initialize<M>(options.seed.value_or(context().seed), name_);
  }

  // Sets training or evaluation mode, which batch norm and dropout use, for this module and the modules within it.
  void train(bool on = true) { model_->modes().set(name_, on); }
  void eval() { train(false); }
  // In a recomputed function, further runs see what the first run saw, as for frozen parameters.
  bool training() const {
    return Tape::once([this] { return model_->modes().is_on(name_); });
  }

 protected:
  ~Module() = default;

  Parameter<T, D, M> add_parameter(std::string_view name, const Shape& shape, const Initializer& initializer) {
    return add_parameter(name, Placement{.shape = shape}, initializer);
  }
  Parameter<T, D, M> add_parameter(std::string_view name, std::initializer_list<std::int64_t> dims,  // {}: one number
                                   const Initializer& initializer) {
    return add_parameter(name, Shape(dims), initializer);
  }
  Parameter<T, D, M> add_parameter(std::string_view name, const Placement& placement, const Initializer& initializer) {
    Parameter<T, D, M> parameter = add_adapter(name, placement, initializer);
    if (context().lora) parameter.freeze();
    return parameter;
  }
  // A parameter that stays trainable under LoRA, which freezes all other parameters.
  Parameter<T, D, M> add_adapter(std::string_view name, const Placement& placement, const Initializer& initializer) {
    return Parameter<T, D, M>(model_, store().add(dotted(name), placement, initializer));
  }

  // Uses a parameter that another module has registered. If a pipeline puts the two modules on different ranks, both ranks hold
  // the parameter, and its gradients are summed.
  Parameter<T, D, M> share(const Parameter<T, D, M>& parameter) const {
    require(parameter.is_of(*model_),
            "{} can only share parameters of its own model; this one is undefined or belongs to another model", name_);
    model_->share(parameter.number(), name_);
    return parameter;
  }

  // Runs the body of a layer's forward(). Errors about arguments get the layer's name in front: "encoder.layers.1.linear2:
  // linear: x ...".
  template <typename Work>
  decltype(auto) named(const Work& work) const {
    try {
      return work();
    } catch (const Error& error) {
      detail::rethrow_from(name_, error);
    }
  }

  // For layers that need all rows, and that every rank of a tensor axis computes completely. Throws in a sequence-parallel
  // model.
  void require_all_rows(std::string_view layer) const {
    require(!sequence_parallel(),
            "{}: {} needs all rows, but in a sequence-parallel model each rank has only its own: turn sequence_parallel off",
            name_, layer);
  }

  // A parameter that every rank of the tensor axis holds and, in a sequence-parallel model, uses for its own rows.
  Variable<M, D> shared(const Parameter<T, D, M>& parameter) const {
    const Variable<M, D> value = parameter.master();
    return sequence_parallel() && value.slot() != nullptr ? sum_gradient(value, *tensor_axis()) : value;
  }

  // Registers a buffer, which is saved and loaded with the parameters and has no gradient.
  Buffer<M, D> add_buffer(std::string_view name, const Shape& shape, double initial, const BufferOptions& options = {}) {
    return Buffer<M, D>(model_, store().add_buffer(dotted(name), shape, initial, options));
  }

 private:
  std::string dotted(std::string_view name) const {
    return name_.empty() ? std::string(name) : name_ + "." + std::string(name);
  }

  std::shared_ptr<Model> model_;
  std::string name_;
};

}  // namespace nn
}  // namespace trireme
