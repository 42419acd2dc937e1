#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/precision/policy.hpp"

namespace trireme::optim {

enum class Decay : std::uint8_t {
  all,       // weight decay on every parameter
  matrices,  // on those of two or more dims: not on biases and norms
};

struct StepOptions {
  double clip_norm = 0;  // largest L2 norm of all gradients together, as torch.nn.utils.clip_grad_norm_; 0: no limit
};

// Names and values of settings that all ranks must share.
using Settings = std::vector<std::pair<std::string, std::string>>;

// Updates a model's parameters in one pass over the flat store, or over the part of it that is this rank's. Derive from it for
// an optimizer of your own: update() gets runs of neighbouring elements, with everything that differs between parameters
// already decided. Make it after DataParallel, which decides what is this rank's part.
template <typename P, typename D = Cpu>
class Optimizer {
 public:
  using T = typename P::Master;

  Optimizer(FlatStore& store, double learning_rate, Decay decay = Decay::all);
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  double learning_rate() const { return learning_rate_; }
  void set_learning_rate(double learning_rate) { learning_rate_ = learning_rate; }

  // Updates every parameter that some rank used, as PyTorch does, and ends the step: the next gradient starts anew.
  // A step without any kept target changes nothing.
  void step(const StepSummary& summary, const StepOptions& options = {});

  // What the start-up check compares between ranks.
  virtual Settings settings() const = 0;

 protected:
  struct Run {
    T* values;
    const T* gradients;
    std::int64_t offset;  // of the first element in the optimizer's own planes
    std::size_t count;
    double learning_rate;
    double gradient_scale;  // multiply every gradient by it first
    bool decays;            // weight decay applies
    std::int64_t step;      // how often these parameters were updated, this time included: 1, 2, ...
  };
  virtual void update(const Run& run) = 0;

  // A plane of zeros over the elements that this rank updates, for moments.
  Tensor<T, D> make_plane() const { return Tensor<T, D>::zeros({shard_ ? shard_->numel() : store_.trainable_numel()}); }

 private:
  bool decays(const ParameterInfo& parameter) const { return decay_ == Decay::all || parameter.shape.size() >= 2; }
  void update_range(const Range& range, std::int64_t in_planes, const StepSummary& summary, double gradient_scale);

  FlatStore& store_;
  std::shared_ptr<Shard> shard_;
  double learning_rate_;
  Decay decay_;
  std::vector<std::int64_t> steps_;  // by parameter
};

extern template class Optimizer<Float32, Cpu>;
extern template class Optimizer<Float64, Cpu>;

}  // namespace trireme::optim
