#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trireme/autograd/model.hpp"
#include "trireme/autograd/owned_planes.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/optim/any_optimizer.hpp"
#include "trireme/optim/device_steps.hpp"
#include "trireme/optim/group_norms.hpp"
#include "trireme/optim/parameter_rules.hpp"
#include "trireme/precision/policy.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

// The information that an optimizer needs before it updates an element.
enum class Needs : std::uint8_t {
  nothing,           // can update any range
  parameter_norms,   // norms of each parameter: measure() is called for all pieces before update()
  whole_parameters,  // one parameter at a time, with sums over the ranks that update it: update_parameter() instead of update()
};

// Updates a model's parameters in one pass over the flat store, or over this rank's part of it. To write your own optimizer,
// derive from Optimizer: update() gets ranges of contiguous elements, each with the learning rate and other settings of its
// parameters.
//
//   class Momentum final : public optim::Optimizer<Float32> {
//    public:
//     explicit Momentum(Model& model) : Optimizer(model, {.learning_rate = 0.01}) {}
//     optim::Settings settings() const override { return settings_of("Momentum", {}); }
//
//    private:
//     void update(const Piece& piece) override {
//       float* momentum = piece.plane(momentum_);
//       for (std::size_t i = 0; i < piece.count; ++i) {
//         momentum[i] = 0.9F * momentum[i] + static_cast<float>(piece.gradient_scale) * piece.gradients[i];
//         piece.values[i] -= static_cast<float>(piece.learning_rate) * momentum[i];
//       }
//     }
//     int momentum_ = add_plane("momentum");
//   };
//
// An optimizer may be made before or after DataParallel. DataParallel decides which elements this rank updates, so the memory
// of the optimizer's planes is allocated only at the first step, or when a checkpoint lists the planes.
template <typename P, typename D = Cpu>
class Optimizer : public AnyOptimizer {
 public:
  using T = typename P::Master;

  // Throws if a rule is invalid or a group's pattern matches no parameter.
  Optimizer(Model& model, const ParameterRules& rules, Needs needs = Needs::nothing);

  double learning_rate() const final { return rules_.learning_rate; }
  void set_learning_rate(double learning_rate) final;
  bool step(const StepSummary& summary, const UpdateOptions& options = {}) final;
  void check(const StepSummary& summary) const final;
  StepSummary decidable(StepSummary summary) const final;
  void skip_step() final;
  std::int64_t skipped_steps() final;
  void add_to(State& state, const std::string& prefix = "optimizer.") final;

 protected:
  struct Piece {
    Range range;  // of the store
    T* values;
    const T* gradients;
    std::size_t count;
    std::span<void* const> planes;  // of the optimizer; each points `offset` elements before the piece: use plane()
    std::int64_t offset;
    ops::StepOnDevice on_device;  // pass it to GPU kernels; it holds the numbers of the step that the host does not know
    double learning_rate;
    double gradient_scale;  // multiply every gradient by it
    double weight_decay;
    double beta1;  // if the rules have betas
    double beta2;
    bool adapts;                  // ParameterGroup::adapts, for LAMB, LARS and others
    std::int64_t step;            // number of updates of these parameters, including this one: 1, 2, ...
    ops::UpdateSquares* squares;  // with Needs::parameter_norms, in the memory of D

    // The piece's elements in a plane that add_plane() returned; null for no_plane.
    T* plane(int plane) const {
      return plane == no_plane ? nullptr : static_cast<T*>(planes[static_cast<std::size_t>(plane)]) + offset;
    }
  };
  virtual void update(const Piece& piece) = 0;

  // A parameter that some rank used, with Needs::whole_parameters.
  struct Whole {
    int index;  // in the store
    const ParameterInfo& info;
    bool adapts;
    std::int64_t step;  // as in Piece
    ops::StepOnDevice on_device;
    // Calls action(piece) for the parts of the parameter that this rank updates, ascending. There is no call if only other
    // ranks update the parameter.
    std::function<void(const std::function<void(const Piece&)>& action)> visit;
  };
  // Called on all ranks that share the optimizer's work, for the same parameters in the same order.
  virtual void update_parameter(const Whole&) {}

  // All-reduces `values`, in the memory of D, over the ranks that share the optimizer's work. Collective.
  void sum_over_ranks(std::span<T> values) const {
    if (shard_) shard_->sum_over_ranks(values);
  }

  // With Needs::parameter_norms, a piece lies in one parameter, and all pieces are measured before the first update().
  // measure() adds to *squares the squares of the piece's values and the squares of the direction with which the values are
  // compared. In update(), *squares holds the sums over the whole parameter, from all ranks.
  virtual void measure(const Piece&) {}

  // Called on all ranks before the first update() of a step, for computations over several ranks. look(range, action) calls
  // action for the pieces of a range that update() will get. Not called with Needs::whole_parameters; update_parameter() can
  // then use sum_over_ranks().
  using Look = std::function<void(const Range& range, const std::function<void(const Piece&)>& action)>;
  virtual void prepare(const Look& /*look*/) {}

  // Adds state of the optimizer other than planes and counts to a checkpoint's state.
  virtual void add_more_to(State&, const std::string& /*prefix*/) {}

  // For an optimizer that swaps other values into the model: throws while the model has such values. Called before a step, and
  // before a checkpoint is saved or loaded.
  virtual void require_trained_values() const {}

  // Call it between steps. Calls change(piece) for the pieces of all trainable parameters, to rewrite their values. Gradients
  // and rates in the piece are meaningless. All ranks get the results. Collective.
  void rewrite_values(const std::function<void(const Piece&)>& change);

  // Adds a plane over the elements that this rank updates, for moments, and returns its number for Piece::plane. All elements
  // start as `value`. Checkpoints save the plane under this name, which must be unique within the optimizer. The plane is
  // removed with the optimizer.
  int add_plane(std::string name, double value = 0, Home home = Home::device);
  static constexpr int no_plane = -1;

  const ResolvedRule& rule_of(int parameter) const { return resolved_[static_cast<std::size_t>(parameter)]; }

  // Returns settings() of an optimizer that has these options besides the rules.
  Settings settings_of(const std::string& name, const Settings& options) const;

 private:
  static constexpr bool on_host = Tensor<T, D>::on_host;

  using Visit = std::function<void(Piece& piece, int parameter)>;  // parameter: the first parameter of the piece
  struct Scaling {                                                 // of gradients
    double scale = 1;
    bool done = false;  // by clip()
  };
  void visit_pieces(const Range& range, const StepSummary& summary, const Scaling& scaling, const Visit& visit) const;
  void cut_by_rules(const FlatStore::Piece& whole, const StepSummary& summary, const Scaling& scaling,
                    const Visit& visit) const;
  void update_whole_parameters(const std::vector<Range>& ranges, const StepSummary& summary, const Scaling& scaling);
  void change_pieces(const std::vector<Range>& ranges, const StepSummary& summary, const Scaling& scaling,
                     const std::function<void(const Piece&)>& change);
  void measure_parameters(const std::vector<Range>& ranges, const StepSummary& summary, const Scaling& scaling);
  std::vector<Range> own_ranges() const;
  void leave_out(const StepSummary& summary, const UpdateOptions& options);
  void update_parameters(const StepSummary& summary, const UpdateOptions& options);
  Scaling begin_updates(const StepSummary& summary, const UpdateOptions& options);
  bool clips_elements(const UpdateOptions& options) const;
  void clip(const std::vector<Range>& ranges, const StepSummary& summary, const Scaling& scaling, const UpdateOptions& options);
  bool same_updates(int first, int second) const;
  ops::StepOnDevice place_of(int parameter, const Scaling& scaling) const;

  void make_planes();

  Model& model_;
  FlatStore& store_;
  std::shared_ptr<Shard> shard_;  // set when planes get memory
  OwnedPlanes planes_;
  std::vector<int> visited_;  // values, gradients, own planes
  bool has_memory_ = false;
  ParameterRules rules_;
  Needs needs_;
  std::vector<ResolvedRule> resolved_;  // by parameter
  GroupNorms group_norms_;
  Tensor<ops::UpdateSquares, D> squares_;  // by parameter, with Needs::parameter_norms; the last entry is a dummy
  std::vector<std::int64_t> steps_;        // by parameter, if the store lies on the host
  std::optional<DeviceSteps> on_device_;   // if the store lies on a GPU: the GPU then decides whether to take steps
  std::int64_t skipped_steps_ = 0;
  std::int64_t skipped_in_a_row_ = 0;  // steps that were not finite
};

extern template class Optimizer<Float32, Cpu>;
extern template class Optimizer<MixedBfloat16, Cpu>;
extern template class Optimizer<MixedFloat16, Cpu>;
extern template class Optimizer<Float32, Cuda>;
extern template class Optimizer<MixedBfloat16, Cuda>;
extern template class Optimizer<MixedFloat16, Cuda>;

}  // namespace optim
}  // namespace trireme
