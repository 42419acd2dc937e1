#pragma once

// How operations enter the tape: for those who write their own.

#include <initializer_list>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "trireme/autograd/operands.hpp"
#include "trireme/autograd/variable.hpp"

namespace trireme {
namespace detail {

// Null when there is nothing to record. Counts the use of every input.
Tape* tape_for(std::string_view operation, std::initializer_list<GradientSlot*> inputs);

template <typename T, typename D, typename Backward>
class Operation final : public Tape::Node {
 public:
  Operation(Gradient<T, D> result, Backward backward) : result_(std::move(result)), backward_(std::move(backward)) {}

  void backward() override {
    Tensor<T, D> gradient = result_.slot()->take();
    if (gradient.defined()) backward_(std::move(gradient));
  }

 private:
  Gradient<T, D> result_;
  Backward backward_;
};

template <typename T, typename D, typename InputGradients, typename WeightGradients>
class SplitOperation final : public Tape::Node {
 public:
  SplitOperation(Gradient<T, D> result, bool has_weights, InputGradients inputs, WeightGradients weights)
      : result_(std::move(result)), has_weights_(has_weights), inputs_(std::move(inputs)), weights_(std::move(weights)) {}

  void backward() override {
    gradient_ = result_.slot()->take();
    if (!gradient_.defined()) return;
    if constexpr (completes_later) {
      auto complete = inputs_(std::as_const(gradient_));
      weights_(std::as_const(gradient_));
      complete();
    } else {
      weights_(std::as_const(gradient_));
      inputs_(std::as_const(gradient_));
    }
  }

  bool input_gradients() override {
    gradient_ = result_.slot()->take();
    if (!gradient_.defined()) return false;
    if constexpr (completes_later) {
      inputs_(std::as_const(gradient_))();
    } else {
      inputs_(std::as_const(gradient_));
    }
    return has_weights_;
  }
  void weight_gradients() override { weights_(std::as_const(gradient_)); }

 private:
  static constexpr bool completes_later = !std::is_void_v<std::invoke_result_t<InputGradients&, const Tensor<T, D>&>>;

  Gradient<T, D> result_;
  bool has_weights_;
  InputGradients inputs_;
  WeightGradients weights_;
  Tensor<T, D> gradient_;
};

template <typename T1, typename T2, typename D, typename Backward>
class PairOperation final : public Tape::Node {
 public:
  PairOperation(Gradient<T1, D> first, Gradient<T2, D> second, Backward backward)
      : first_(std::move(first)), second_(std::move(second)), backward_(std::move(backward)) {}

  void backward() override {
    Tensor<T1, D> first = first_.slot()->take();
    Tensor<T2, D> second = second_.slot()->take();
    if (first.defined() || second.defined()) backward_(std::move(first), std::move(second));
  }

 private:
  Gradient<T1, D> first_;
  Gradient<T2, D> second_;
  Backward backward_;
};

template <typename T, typename D>
Variable<T, D> recorded(Tape& tape, Tensor<T, D> value) {
  Gradient<T, D> gradient(std::make_shared<TensorSlot<T, D>>(tape, value.shape()));
  return Variable<T, D>(std::move(value), std::move(gradient));
}

}  // namespace detail

// Puts an operation on the current tape: `value` is its result, `inputs` the slots of its inputs (null for constants), and
// backward(dy) gets the complete gradient of the result and contributes to each listed input once. Without a tape, or with
// constants only, the result is a constant and `backward` is dropped.
//
//   Variable<T> square(const Variable<T>& x) {
//     require_operands("square", x);
//     Tensor<T> y(x.shape());
//     ops::multiply(x.value(), x.value(), y);
//     return record("square", y, {x.slot()}, [value = x.value(), dx = x.gradient()](const Tensor<T>& dy) { ... });
//   }
template <typename T, typename D, typename Backward>
Variable<T, D> record(std::string_view operation, Tensor<T, D> value, std::initializer_list<GradientSlot*> inputs,
                      Backward backward) {
  Tape* tape = detail::tape_for(operation, inputs);
  if (tape == nullptr) return Variable<T, D>(std::move(value));
  Variable<T, D> result = detail::recorded(*tape, std::move(value));
  tape->add(std::make_unique<detail::Operation<T, D, Backward>>(result.gradient(), std::move(backward)));
  return result;
}

// The same where the gradients of `weights` can wait while others need that of `inputs`: weight_gradients(dy) may run later
// than input_gradients(dy) (Tape::split_backward); otherwise it runs first. Where input_gradients(dy) starts a transfer it
// returns the function that waits for it: weight_gradients(dy) then runs in between.
template <typename T, typename D, typename InputGradients, typename WeightGradients>
Variable<T, D> record_split(std::string_view operation, Tensor<T, D> value, std::initializer_list<GradientSlot*> inputs,
                            std::initializer_list<GradientSlot*> weights, InputGradients input_gradients,
                            WeightGradients weight_gradients) {
  Tape* of_inputs = detail::tape_for(operation, inputs);
  Tape* of_weights = detail::tape_for(operation, weights);
  if (of_inputs == nullptr && of_weights == nullptr) return Variable<T, D>(std::move(value));
  Tape& tape = of_inputs != nullptr ? *of_inputs : *of_weights;
  Variable<T, D> result = detail::recorded(tape, std::move(value));
  tape.add(std::make_unique<detail::SplitOperation<T, D, InputGradients, WeightGradients>>(
      result.gradient(), of_weights != nullptr, std::move(input_gradients), std::move(weight_gradients)));
  return result;
}

// The same for two results; an undefined gradient reached backward(d_first, d_second) from neither consumer.
template <typename T1, typename T2, typename D, typename Backward>
std::pair<Variable<T1, D>, Variable<T2, D>> record_pair(std::string_view operation, Tensor<T1, D> first, Tensor<T2, D> second,
                                                        std::initializer_list<GradientSlot*> inputs, Backward backward) {
  Tape* tape = detail::tape_for(operation, inputs);
  if (tape == nullptr) return {Variable<T1, D>(std::move(first)), Variable<T2, D>(std::move(second))};
  std::pair results{detail::recorded(*tape, std::move(first)), detail::recorded(*tape, std::move(second))};
  tape->add(std::make_unique<detail::PairOperation<T1, T2, D, Backward>>(results.first.gradient(), results.second.gradient(),
                                                                         std::move(backward)));
  return results;
}

// A variable that is no parameter but wants its gradient: `on_gradient(tensor)` gets it during backward.
template <typename T, typename D, typename Receive>
Variable<T, D> watch(Tensor<T, D> value, Receive on_gradient) {
  Tape* tape = Tape::current();
  require(tape != nullptr, "watch() needs a tape: open one first");
  require_operands("watch", value);
  Variable<T, D> result = detail::recorded(*tape, std::move(value));
  tape->add(std::make_unique<detail::Operation<T, D, Receive>>(result.gradient(), std::move(on_gradient)));
  return result;
}

}  // namespace trireme
