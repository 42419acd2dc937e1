#pragma once

#include <initializer_list>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/autograd/tape.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/elementwise/elementwise.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {

namespace detail {

[[noreturn]] void throw_not_recorded();   // backward() on a constant
[[noreturn]] void throw_other_results();  // of a function that is recomputed

// The gradient of a recorded value, in a tensor of its own that the first contribution makes. ParameterSlot overrides the
// storage.
template <typename T, typename D>
class TensorSlot : public GradientSlot {
 public:
  TensorSlot(Tape& tape, const Shape& shape) : GradientSlot(tape), shape_(shape) {}

  const Shape& shape() const { return shape_; }

  // The tensor to write a contribution to, and whether to add to the tensor's elements. Pass the tensor to close() afterwards.
  virtual std::pair<Tensor<T, D>, bool> open() {
    if (!sum_.defined()) return {Tensor<T, D>(shape_), false};
    Tensor<T, D> sum = take();
    if (sum.shares_storage()) sum = sum.clone();
    return {std::move(sum), true};
  }
  virtual void close(Tensor<T, D> sum) { sum_ = std::move(sum); }

  virtual void give(Tensor<T, D> contribution) {  // of the value's shape
    if (sum_.defined()) {
      auto [sum, accumulate] = open();
      ops::add(sum, contribution, sum);
      close(std::move(sum));
    } else {
      close(std::move(contribution));
    }
  }

  Tensor<T, D> take() { return std::exchange(sum_, {}); }  // undefined when nothing was contributed

  bool has_own_gradient() const override { return sum_.defined(); }
  void take_over(GradientSlot& first) override {
    auto* of_first = dynamic_cast<TensorSlot*>(&first);
    if (of_first == nullptr || of_first->shape() != shape_) throw_other_results();
    if (of_first != this && of_first->has_own_gradient()) give(of_first->take());
  }

 private:
  Shape shape_;
  Tensor<T, D> sum_;
};

// A contribution that is being written. Until this contribution is complete, other contributions to the same gradient wait in
// `kept`; they are added afterwards. This happens, for example, if one variable is both weight and bias of a norm.
class OpenContribution {
 public:
  explicit OpenContribution(const GradientSlot& slot);
  ~OpenContribution();
  OpenContribution(const OpenContribution&) = delete;
  OpenContribution& operator=(const OpenContribution&) = delete;

  static OpenContribution* to(const GradientSlot& slot);  // this thread's; null: none is being written

 private:
  const void* place_;
  OpenContribution* outer_;
};

template <typename T, typename D>
struct OpenContributionOf : OpenContribution {
  using OpenContribution::OpenContribution;
  std::vector<Tensor<T, D>> kept;
};

}  // namespace detail

// Sums the contributions to one variable's gradient. Copies of a Gradient refer to the same gradient. The gradient of a
// constant is empty and ignores contributions.
template <typename T, typename D = Cpu>
class Gradient {
 public:
  using value_type = T;
  using device_type = D;
  using Slot = detail::TensorSlot<T, D>;

  Gradient() = default;
  explicit Gradient(std::shared_ptr<Slot> slot) : slot_(std::move(slot)) {}

  bool needed() const { return slot_ != nullptr; }
  Slot* slot() const { return slot_.get(); }
  const std::shared_ptr<Slot>& shared_slot() const { return slot_; }

  // Calls write(tensor, accumulate), which must fill the tensor, or add to the tensor if `accumulate` is true. An operation
  // calls contribute() or give() exactly once for each input that it lists. write() may itself contribute to other gradients,
  // or to this gradient.
  template <typename Write>
  void contribute(Write&& write) const {
    if (!slot_) return;
    if (detail::OpenContribution::to(*slot_) != nullptr) {
      Tensor<T, D> contribution(slot_->shape());
      write(contribution, false);
      return give(std::move(contribution));
    }
    detail::OpenContributionOf<T, D> open(*slot_);
    auto [sum, accumulate] = slot_->open();
    write(sum, accumulate);
    slot_->close(std::move(sum));
    for (Tensor<T, D>& contribution : open.kept) slot_->give(std::move(contribution));
  }

  // Contributes a complete tensor with as many elements as the value. The tensor may be kept and shared: don't write to it
  // afterwards.
  void give(Tensor<T, D> contribution) const {
    if (!slot_) return;
    contribution = contribution.reshape(slot_->shape());
    if (auto* open = detail::OpenContribution::to(*slot_)) {
      static_cast<detail::OpenContributionOf<T, D>*>(open)->kept.push_back(std::move(contribution));
    } else {
      slot_->give(std::move(contribution));
    }
  }

 private:
  std::shared_ptr<Slot> slot_;
};

// A tensor and its place on the tape. G, the gradient's element type, differs from T only for weights in mixed precision: their
// gradients are float.
template <typename T, typename D = Cpu, typename G = T>
class Variable {
 public:
  Variable() = default;
  Variable(Tensor<T, D> value) : value_(std::move(value)) {}  // a constant
  Variable(Tensor<T, D> value, Gradient<G, D> gradient) : value_(std::move(value)), gradient_(std::move(gradient)) {}

  const Tensor<T, D>& value() const { return value_; }
  const Shape& shape() const { return value_.shape(); }
  const Gradient<G, D>& gradient() const { return gradient_; }
  GradientSlot* slot() const { return gradient_.slot(); }  // null for a constant

  Variable detach() const { return Variable(value_); }  // the same value as a constant: gradients end here

  // Runs the tape's backward pass from this Variable, with `upstream` as the gradient of every element. The tape can't be used
  // again.
  void backward(G upstream = G{1}) const { backward(Tensor<G, D>::full(value_.shape(), upstream)); }

  // Runs the tape's backward pass from this Variable, with `upstream` as the gradient. `upstream` has the shape of the value.
  void backward(Tensor<G, D> upstream) const {
    if (!gradient_.needed()) detail::throw_not_recorded();
    require(upstream.defined(), "backward() with a gradient that is undefined");
    require(upstream.shape() == value_.shape(), "backward() on a value of shape {} with a gradient of shape {}", value_.shape(),
            upstream.shape());
    Tape& tape = gradient_.slot()->tape();
    gradient_.give(std::move(upstream));
    tape.run_backward();
  }

 private:
  Tensor<T, D> value_;
  Gradient<G, D> gradient_;
};

}  // namespace trireme
