#pragma once

// The gate of operations, for those who write their own. An operation is a struct: a name, what it computes forward from the
// operands into the results, and how gradients go back. Its other members are settings, which describe() names for observers.
//
//   struct Square {
//     static constexpr std::string_view name = "square";
//     void forward(const auto& x, auto& y) const { ops::multiply(x, x, y); }
//     void backward(const auto& dy, const auto& x, const auto& dx) const {
//       dx.contribute([&](auto& sum, bool accumulate) { ... });  // sum (+)= 2 x dy
//     }
//   };
//   Variable<float> square(const Variable<float>& x) { return record(Square{}, Result<float>{x.shape()}, kept(x)); }

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "trireme/autograd/operands.hpp"
#include "trireme/autograd/variable.hpp"

namespace trireme {
namespace detail {

// Counts the use of a variable that gets a gradient; an error where it was recorded on another tape.
void count_use(std::string_view operation, const Tape& tape, GradientSlot& slot);

template <typename T, typename D>
Tensor<T, D> allocated(const Result<T, D>& result) {
  return result.existing.defined() ? result.existing : Tensor<T, D>(result.shape);
}
template <typename X, Marks marks>
auto allocated(const Marked<X, marks>& result) {
  return allocated(result.what);
}

template <typename R>
inline constexpr Marks marks_of_result = {};
template <typename X, Marks marks>
inline constexpr Marks marks_of_result<Marked<X, marks>> = marks;

// Results as a tuple, from one, a tuple, or a function of either.
template <typename R>
auto as_tuple(R results) {
  if constexpr (std::invocable<R&>) {
    return as_tuple(results());
  } else if constexpr (requires { std::tuple_size<R>::value; }) {
    return results;
  } else {
    return std::tuple<R>(std::move(results));
  }
}

template <typename O>
concept Describes = requires(const O& operation, Attributes& to) {
  operation.describe(to);
};

template <typename O>
OperationView view_of_operation(const O& operation, std::uint64_t number) {
  OperationView view;
  view.number = number;
  view.name = operation.name;
  if constexpr (requires { O::repeatable; }) view.repeatable = O::repeatable;
  if constexpr (Describes<O>) {
    view.operation = &operation;
    view.describe = [](const void* of, Attributes& to) { static_cast<const O*>(of)->describe(to); };
  }
  return view;
}

// The backward pass of an operation. `splits`: one of its operands is a weight.
template <bool splits, typename O, typename Results, typename Kept, typename Gradients>
class OperationNode;

template <bool splits, typename O, typename... Results, typename... Kept, typename... Gradients>
class OperationNode<splits, O, std::tuple<Results...>, std::tuple<Kept...>, std::tuple<Gradients...>> final
    : public Tape::Node {
 public:
  OperationNode(O operation, std::tuple<Results...> results, std::tuple<Kept...> kept, std::tuple<Gradients...> gradients,
                bool has_weights)
      : operation_(std::move(operation)),
        number_(gate.operations),
        has_weights_(has_weights),
        results_(std::move(results)),
        kept_(std::move(kept)),
        gradients_(std::move(gradients)) {}

  void backward() override {
    if (!take()) return;
    observed([this] {
      if constexpr (!splits) {
        call([this](auto&... all) { operation_.backward(all...); });
      } else if constexpr (completes_later) {
        auto complete = run_input_gradients();
        run_weight_gradients();
        complete();
      } else {
        run_weight_gradients();
        run_input_gradients();
      }
    });
  }

  bool input_gradients() override {
    if constexpr (!splits) {
      backward();
      return false;
    } else {
      if (!take()) return false;
      observed([this] {
        if constexpr (completes_later) {
          run_input_gradients()();
        } else {
          run_input_gradients();
        }
      });
      return has_weights_;
    }
  }
  void weight_gradients() override {
    if constexpr (splits) observed([this] { run_weight_gradients(); });
  }

 private:
  using GradientsOfResults = std::tuple<Tensor<typename Results::value_type, typename Results::device_type>...>;

  bool take() {  // whether any gradient arrived
    of_results_ = std::apply([](const auto&... result) { return GradientsOfResults(result.slot()->take()...); }, results_);
    return std::apply([](const auto&... gradient) { return (gradient.defined() || ...); }, of_results_);
  }
  auto call(const auto& function) {
    return std::apply(function, std::tuple_cat(refer(of_results_), refer(kept_), refer(gradients_)));
  }
  static auto refer(auto& tuple) {
    return std::apply([](auto&... elements) { return std::tie(elements...); }, tuple);
  }
  auto run_input_gradients() {
    return call([this](auto&... all) { return operation_.input_gradients(all...); });
  }
  void run_weight_gradients() {
    call([this](auto&... all) { operation_.weight_gradients(all...); });
  }
  void observed(const auto& work) {
    if (gate.observation == nullptr) [[likely]]
      return work();
    const OperationView view = view_of_operation(operation_, number_);
    gate.observation->before(Pass::backward, view);
    work();
    if (gate.observation != nullptr) gate.observation->after(Pass::backward, view);
  }

  static constexpr bool completes_later = [] {
    if constexpr (!splits) {
      return false;
    } else {
      using Completion = decltype(std::declval<O&>().input_gradients(
          std::declval<Tensor<typename Results::value_type, typename Results::device_type>&>()..., std::declval<Kept&>()...,
          std::declval<Gradients&>()...));
      return !std::is_void_v<Completion>;
    }
  }();

  O operation_;
  std::uint64_t number_;
  bool has_weights_;
  std::tuple<Results...> results_;
  std::tuple<Kept...> kept_;
  std::tuple<Gradients...> gradients_;
  GradientsOfResults of_results_;
};

template <typename Receive>
struct Watch {
  static constexpr std::string_view name = "watch";
  Receive receive;
  void backward(auto& gradient) { receive(std::move(gradient)); }
};

template <typename T, typename D>
Variable<T, D> recorded(Tape& tape, Tensor<T, D> value) {
  Gradient<T, D> gradient(std::make_shared<TensorSlot<T, D>>(tape, value.shape()));
  return Variable<T, D>(std::move(value), std::move(gradient));
}

template <typename O, typename Tensors, typename... Operands>
void run_forward(O& operation, Tensors& tensors, const Given<Operands>&... given) {
  const auto forward = [&] { std::apply([&](auto&... results) { operation.forward(given.value()..., results...); }, tensors); };
  ++gate.operations;
  if (gate.observation == nullptr) [[likely]]
    return forward();
  std::vector<Operand> operands;
  (add_views(given, operands), ...);
  const auto results = std::apply([](const auto&... tensor) { return std::vector<Operand>{view_of(tensor)...}; }, tensors);
  OperationView view = view_of_operation(operation, gate.operations);
  view.operands = operands;
  view.results = results;
  gate.observation->before(Pass::forward, view);
  forward();
  if (gate.observation != nullptr) gate.observation->after(Pass::forward, view);
}

// The tape that an operation is to be on; null: it is dropped. Counts the uses of its operands.
struct Recording {
  Tape* tape = nullptr;
  bool has_weights = false;
};
template <typename... Operands>
Recording recording_for(std::string_view operation, const Given<Operands>&... given) {
  Tape* tape = Tape::current();
  if (tape == nullptr) return {};
  Recording recording;
  const auto look = [&](const auto& operand, bool weight) {
    operand.each_slot([&](GradientSlot* slot) {
      if (slot == nullptr) return;
      count_use(operation, *tape, *slot);
      recording.tape = tape;
      recording.has_weights = recording.has_weights || weight;
    });
  };
  (look(given, Given<Operands>::marks.weight), ...);
  return recording;
}

// Tuples of one element, or of none where it is not wanted.
template <bool wanted, typename X>
auto element_if(const X& x) {
  if constexpr (wanted) {
    return std::tuple<X>(x);
  } else {
    return std::tuple<>();
  }
}
template <typename X>
auto kept_of(const Given<X>& given) {
  if constexpr (Given<X>::marks.kept) {
    return std::tuple(given.value());
  } else {
    return std::tuple<>();
  }
}
template <typename X>
auto gradient_of(const Given<X>& given) {
  if constexpr (Given<X>::has_gradient) {
    return std::tuple(given.gradient());
  } else {
    return std::tuple<>();
  }
}
template <Marks marks, typename T, typename D>
auto variable_of(Tape* tape, Tensor<T, D>& result) {
  if constexpr (marks.internal) {
    return std::tuple<>();
  } else {
    return std::tuple(tape == nullptr ? Variable<T, D>(std::move(result)) : recorded(*tape, std::move(result)));
  }
}

// What record() returns: the result, or a tuple of those that are not internal.
template <typename... Variables>
auto returned(std::tuple<Variables...> variables) {
  if constexpr (sizeof...(Variables) == 1) {
    return std::get<0>(std::move(variables));
  } else {
    return variables;
  }
}

template <typename O, typename... Results, typename... Operands>
auto run(O operation, const std::tuple<Results...>& results, const Given<Operands>&... given) {
  auto tensors = std::apply([](const auto&... result) { return std::tuple(allocated(result)...); }, results);
  run_forward(operation, tensors, given...);
  const Recording recording = recording_for(operation.name, given...);
  const auto variables_of_results = [&] {
    return std::apply(
        [&](auto&... result) { return std::tuple_cat(variable_of<marks_of_result<Results>>(recording.tape, result)...); },
        tensors);
  };
  if (recording.tape != nullptr) {
    auto kept = std::apply(
        [&](const auto&... result) {
          return std::tuple_cat(kept_of(given)..., element_if<marks_of_result<Results>.kept>(result)...);
        },
        tensors);
    auto variables = variables_of_results();
    auto gradients_of_results =
        std::apply([](const auto&... variable) { return std::tuple(variable.gradient()...); }, variables);
    auto gradients = std::tuple_cat(gradient_of(given)...);
    constexpr bool splits = (Given<Operands>::marks.weight || ...);
    using Node = OperationNode<splits, O, decltype(gradients_of_results), decltype(kept), decltype(gradients)>;
    recording.tape->add(std::make_unique<Node>(std::move(operation), std::move(gradients_of_results), std::move(kept),
                                               std::move(gradients), recording.has_weights));
    return returned(std::move(variables));
  }
  return returned(variables_of_results());
}

}  // namespace detail

// The gate: checks that all operands are defined, allocates the results, calls forward(), and puts the operation on the current
// tape where an operand needs a gradient. Without a tape, or with constants only, the results are constants and the operation
// is dropped.
//
// Operands are Variables, Tensors (constants) and vectors of these, with their marks; results one Result, or a tuple of them,
// or a function that returns these, called when the operands are checked. A tuple of results returns a tuple of Variables.
//   forward(values of operands..., results...)
//   backward(gradients of results..., what is kept..., gradients of operands...)
// What is kept: operands, then results, of those marked so. An internal result has no gradient; with several results a gradient
// is undefined where none arrived. A constant's gradient takes nothing, a Tensor has none. Each gradient is given one
// contribution.
//
// Where an operand is a weight, whose gradient can wait while others need those of inputs (Tape::split_backward),
// input_gradients() and weight_gradients() stand in place of backward() and get the same. Unless backward is split, that of the
// weights runs first; where input_gradients() starts a transfer it returns the function that waits for it, and
// weight_gradients() runs in between.
template <typename O, typename R, typename... Operands>
auto record(O operation, R results, const Operands&... operands) {
  require_operands(operation.name, operands...);
  return detail::run(std::move(operation), detail::as_tuple(std::move(results)), detail::Given<Operands>(operands)...);
}

// A variable that is no parameter but wants its gradient: `on_gradient(tensor)` gets it during backward.
template <typename T, typename D, typename Receive>
Variable<T, D> watch(Tensor<T, D> value, Receive on_gradient) {
  using Watch = detail::Watch<Receive>;
  Tape* tape = Tape::current();
  require(tape != nullptr, "watch() needs a tape: open one first");
  require_operands(Watch::name, value);
  Variable<T, D> result = detail::recorded(*tape, std::move(value));
  using Node = detail::OperationNode<false, Watch, std::tuple<Gradient<T, D>>, std::tuple<>, std::tuple<>>;
  tape->add(std::make_unique<Node>(Watch{std::move(on_gradient)}, std::tuple(result.gradient()), std::tuple<>(), std::tuple<>(),
                                   false));
  return result;
}

}  // namespace trireme
