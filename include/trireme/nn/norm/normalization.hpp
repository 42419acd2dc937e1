#pragma once

#include "trireme/autograd/operations/norm.hpp"
#include "trireme/core/export.hpp"
#include "trireme/nn/base/module.hpp"

// Norms of images [batch, height, width, channels]. Norms of sequences are in nn/layers/layers.hpp.
namespace trireme TRIREME_EXPORT {
namespace nn {

struct BatchNormOptions {
  std::int64_t channels = 0;
  double momentum = 0.1;  // weight of a new batch in the running statistics
  double epsilon = 1e-5;
  bool affine = true;  // weight and bias [channels]
  Initializer weight_initializer = Initializer::constant(1);
};

// Normalises x [..., channels] over all rows. Training uses the statistics of the micro-batch, on all ranks together if
// DataParallel synchronises batch norm; evaluation uses the running statistics.
template <typename P, typename D = Cpu>
class BatchNorm2d : public Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  BatchNorm2d(const Module<P, D>& parent, std::string_view name, const BatchNormOptions& options)
      : Module<P, D>(parent, name), options_(options) {
    this->require_all_rows("batch norm");
    require(options.channels > 0, "{}: batch norm needs channels above 0, got {}", this->name(), options.channels);
    const Shape shape{options.channels};
    if (options.affine) {
      weight = this->add_parameter("weight", shape, options.weight_initializer);
      bias = this->add_parameter("bias", shape, Initializer::constant(0));
    }
    running_mean = this->add_buffer("running_mean", shape, 0);
    running_var = this->add_buffer("running_var", shape, 1);
  }

  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] { return batch_norm(x, weight.master(), bias.master(), running(), arguments()); });
  }
  // The next two functions return relu(forward(x)) and relu(forward(x) + residual), each in one pass over memory.
  Variable<T, D> forward_relu(const Variable<T, D>& x) const {
    return this->named([&] { return batch_norm_relu(x, weight.master(), bias.master(), running(), arguments()); });
  }
  Variable<T, D> forward_add_relu(const Variable<T, D>& x, const Variable<T, D>& residual) const {
    return this->named(
        [&] { return batch_norm_add_relu(x, residual, weight.master(), bias.master(), running(), arguments()); });
  }

  Parameter<T, D, M> weight;
  Parameter<T, D, M> bias;
  Buffer<M, D> running_mean;
  Buffer<M, D> running_var;

 private:
  RunningStatistics<M, D> running() const { return {.mean = running_mean.value(), .var = running_var.value()}; }
  BatchNormArguments arguments() const {
    return {.training = this->training(),
            .momentum = options_.momentum,
            .epsilon = options_.epsilon,
            .axis = this->context().batch};
  }

  BatchNormOptions options_;
};

// [batch, channels] or [batch, time, channels].
template <typename P, typename D = Cpu>
using BatchNorm1d = BatchNorm2d<P, D>;

struct GroupNormOptions {
  int groups = 1;
  std::int64_t channels = 0;
  double epsilon = 1e-5;
  bool affine = true;
};

// Divides the channels of x [batch, ..., channels] into `groups` equal parts, and normalises each part of each sample. The
// result does not depend on how a batch is divided.
template <typename P, typename D = Cpu>
class GroupNorm : public Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  GroupNorm(const Module<P, D>& parent, std::string_view name, const GroupNormOptions& options)
      : Module<P, D>(parent, name), options_(options) {
    this->require_all_rows("group norm");
    require(options.groups > 0 && options.channels > 0 && options.channels % options.groups == 0,
            "{}: group norm needs channels that the groups divide, got {} channels and {} groups", this->name(),
            options.channels, options.groups);
    if (!options.affine) return;
    weight = this->add_parameter("weight", {options.channels}, Initializer::constant(1));
    bias = this->add_parameter("bias", {options.channels}, Initializer::constant(0));
  }

  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] { return group_norm(x, weight.master(), bias.master(), options_.groups, options_.epsilon); });
  }

  Parameter<T, D, M> weight;
  Parameter<T, D, M> bias;

 private:
  GroupNormOptions options_;
};

struct InstanceNormOptions {
  std::int64_t channels = 0;
  double epsilon = 1e-5;
  bool affine = false;  // weight and bias [channels]
};

// Normalises each channel of each sample of x [batch, height, width, channels] over the channel's pixels (Ulyanov et al. 2016,
// arXiv 1607.08022). This is group norm with a group for each channel, as torch.nn.InstanceNorm2d without running statistics.
template <typename P, typename D = Cpu>
class InstanceNorm2d : public GroupNorm<P, D> {
 public:
  InstanceNorm2d(const Module<P, D>& parent, std::string_view name, const InstanceNormOptions& options)
      : GroupNorm<P, D>(parent, name,
                        {.groups = static_cast<int>(options.channels),
                         .channels = options.channels,
                         .epsilon = options.epsilon,
                         .affine = options.affine}) {}
};

// [batch, time, channels].
template <typename P, typename D = Cpu>
using InstanceNorm1d = InstanceNorm2d<P, D>;

}  // namespace nn
}  // namespace trireme
