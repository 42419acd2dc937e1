#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "trireme/autograd/record.hpp"
#include "trireme/autograd/tape.hpp"
#include "trireme/autograd/variable.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace detail {

// Collects the slots of a result: of a Variable, a vector or a tuple of Variables, or a struct with each(visit). Tensors have
// no slots.
class CollectSlots {
 public:
  explicit CollectSlots(std::vector<std::shared_ptr<GradientSlot>>& slots) : slots_(slots) {}

  template <typename T, typename D, typename G>
  void operator()(const Variable<T, D, G>& result) const {
    slots_.push_back(result.gradient().shared_slot());
  }
  template <typename T, typename D>
  void operator()(const Tensor<T, D>&) const {}
  template <typename X>
  void operator()(const std::vector<X>& results) const {
    for (const X& result : results) (*this)(result);
  }
  template <typename... X>
  void operator()(const std::tuple<X...>& results) const {
    std::apply([&](const auto&... result) { ((*this)(result), ...); }, results);
  }
  template <typename X>
  requires requires(X& result, const CollectSlots& collect) { result.each(collect); }
  void operator()(const X& result) const {
    X parts = result;  // each() of a flow is not const
    parts.each(*this);
  }

 private:
  std::vector<std::shared_ptr<GradientSlot>>& slots_;
};

template <typename R>
std::vector<std::shared_ptr<GradientSlot>> slots_of(const R& result) {
  std::vector<std::shared_ptr<GradientSlot>> slots;
  CollectSlots collect(slots);
  collect(result);
  return slots;
}

// Sums the versions of all tensors in an input. Inputs may have the same types as results.
class SumVersions {
 public:
  explicit SumVersions(std::uint32_t& sum) : sum_(sum) {}

  template <typename T, typename D, typename G>
  void operator()(const Variable<T, D, G>& input) const {
    (*this)(input.value());
  }
  template <typename T, typename D>
  void operator()(const Tensor<T, D>& input) const {
    if (input.defined()) sum_ += input.version();
  }
  template <typename X>
  void operator()(const std::vector<X>& inputs) const {
    for (const X& input : inputs) (*this)(input);
  }
  template <typename X>
  requires requires(X& input, const SumVersions& sum) { input.each(sum); }
  void operator()(const X& input) const {
    X parts = input;
    parts.each(*this);
  }

 private:
  std::uint32_t& sum_;
};

}  // namespace detail

// Computes function(inputs...) without keeping the tensors that its backward pass needs; the backward pass computes the
// function again. This is activation checkpointing (Chen et al. 2016, arXiv 1604.06174; torch.utils.checkpoint). The results,
// the gradients and the random numbers have the same bits as those of function(inputs...).
//
//   for (const Block& block : blocks) x = recompute([&block](const Variable<float>& y) { return block.forward(y); }, x);
//
// Memory: until the backward pass reaches a call, the call keeps only its inputs. Then the call runs the function again and
// keeps what one run of the function keeps. Time: one more forward pass, without the operations after the last operation that
// keeps a tensor. The results of these operations are undefined in the second run, so the function may pass them only to other
// operations.
//
// inputs: Variables, Tensors, vectors of these, or structs with each(visit) as flow.hpp describes. The function returns such a
// value or a tuple of Variables. The function may use parameters, captured Variables, dropout, add_loss() and recompute(), and
// must do the same in each run. Batch norm updates its running statistics once. In the second run modules are frozen, and in
// training or evaluation mode, as in the first run. Modules that the function uses must live until
// the backward pass. Without a tape, recompute() only calls the function.
//
// Throws Error if the function changes an input in place. backward() throws Error if an input was changed in place after the
// first run. It also throws Error if the second run uses other parameters, other values of parameters or other operations than
// the first run, or returns other results.
template <typename F, typename... X>
auto recompute(F function, const X&... inputs) {
  Tape* tape = Tape::current();
  if (tape == nullptr) return function(inputs...);
  auto version = [... inputs = inputs] {
    std::uint32_t sum = 0;
    (detail::SumVersions(sum)(inputs), ...);
    return sum;
  };
  const std::uint32_t before = version();
  Tape::FirstRun run(*tape);
  auto result = function(inputs...);
  require(version() == before, "recompute: the function changes an input in place: change a clone()");
  run.finish(
      detail::slots_of(result),
      [function = std::move(function), ... inputs = inputs] { return detail::slots_of(function(inputs...)); },
      std::move(version));
  return result;
}

}  // namespace trireme
