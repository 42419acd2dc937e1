#pragma once

// The gate of operations. Use it to write your own operation. An operation is a struct with a name, a forward() that computes
// the results from the operands, and a backward() that computes gradients. Its other members are settings, which describe()
// names for observers.
//
//   struct Square {
//     static constexpr std::string_view name = "square";
//     void forward(const auto& x, auto& y) const { ops::multiply(x, x, y); }
//     void backward(const auto& dy, const auto& x, const auto& dx) const {
//       dx.contribute([&](auto& sum, bool accumulate) { ... });  // sum (+)= 2 x dy
//     }
//   };
//   Variable<float> square(const Variable<float>& x) { return record(Square{}, Result<float>{x.shape()}, kept(x)); }

#include <array>
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
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace detail {

// A result between the gate and the caller. gradient: set if the result is recorded.
template <typename T, typename D, Marks marks_ = Marks{}>
struct Made {
  static constexpr Marks marks = marks_;
  Tensor<T, D> value;
  Gradient<T, D> gradient = {};
};

template <Marks marks = Marks{}, typename T, typename D>
Made<T, D, marks> made(const Result<T, D>& result) {
  return {result.existing ? *result.existing : Tensor<T, D>(result.shape)};
}
template <typename X, Marks marks>
auto made(const Marked<X, marks>& result) {
  return made<marks>(result.what);
}

// Calls use(made...) with one result, a tuple of results, or the results that a function returns.
template <typename R>
auto with_results(const R& results, const auto& use) {
  if constexpr (std::invocable<const R&>) {
    return with_results(results(), use);
  } else if constexpr (requires { std::tuple_size<R>::value; }) {
    return std::apply([&](const auto&... result) { return use(made(result)...); }, results);
  } else {
    return use(made(results));
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

// Calls before() of the observers, does the work of an operation, then calls after().
template <typename Work>
void observe(Pass pass, const OperationView& view, const Work& work) {
  call_before(pass, view);
  work();
  call_after(pass, view);
}

// The versions of the tensors that an operation keeps. The backward pass checks that the versions have not changed.
template <typename T, typename D>
std::uint32_t version_of(const Tensor<T, D>& kept) {
  return kept.version();
}
template <typename X>
std::uint32_t version_of(const std::vector<X>& kept) {
  std::uint32_t sum = 0;
  for (const X& each : kept) sum += version_of(each);
  return sum;
}
template <typename... Kept>
std::array<std::uint32_t, sizeof...(Kept)> versions_of(const std::tuple<Kept...>& kept) {
  return std::apply([](const auto&... each) { return std::array<std::uint32_t, sizeof...(Kept)>{version_of(each)...}; }, kept);
}
template <typename T, typename D>
Shape shape_of_kept(const Tensor<T, D>& kept) {
  return kept.shape();
}
template <typename X>
Shape shape_of_kept(const std::vector<X>& kept) {
  return kept.empty() ? Shape() : shape_of_kept(kept.front());
}
[[noreturn]] void throw_changed_in_place(std::string_view operation, const Shape& shape);

// The backward pass of an operation. `splits`: whether one of the operation's operands is a weight.
template <bool splits, typename O, typename Results, typename Kept, typename Gradients>
class OperationNode;

template <bool splits, typename O, typename... Results, typename... Kept, typename... Gradients>
class OperationNode<splits, O, std::tuple<Results...>, std::tuple<Kept...>, std::tuple<Gradients...>> final
    : public Tape::Node {
 public:
  // `results`, `kept` and `gradients` are tuples of references, or of values to be moved.
  OperationNode(O operation, std::uint64_t number, bool weights_wait, auto results, auto kept, auto gradients)
      : operation_(std::move(operation)),
        number_(number),
        results_(std::move(results)),
        kept_(std::move(kept)),
        versions_(versions_of(kept_)),
        gradients_(std::move(gradients)) {
    if constexpr (splits) weights_.wait = weights_wait;
  }

  void backward() override {
    GradientsOfResults of_results = take();
    if (!any_defined(of_results)) return;
    run([&] {
      if constexpr (!splits) {
        call(of_results, [this](auto&... all) { operation_.backward(all...); });
      } else if constexpr (completes_later) {
        auto complete = run_input_gradients(of_results);
        run_weight_gradients(of_results);
        complete();
      } else {
        run_weight_gradients(of_results);
        run_input_gradients(of_results);
      }
    });
  }

  bool input_gradients() override {
    if constexpr (splits) {
      if (weights_.wait) {
        GradientsOfResults of_results = take();
        if (!any_defined(of_results)) return false;
        run([&] {
          if constexpr (completes_later) {
            run_input_gradients(of_results)();
          } else {
            run_input_gradients(of_results);
          }
        });
        weights_.of_results = std::make_unique<GradientsOfResults>(std::move(of_results));
        return true;
      }
    }
    backward();
    return false;
  }
  void weight_gradients() override {
    if constexpr (splits) run([this] { run_weight_gradients(*weights_.of_results); });
  }

 private:
  using GradientsOfResults = std::tuple<Tensor<typename Results::value_type, typename Results::device_type>...>;

  GradientsOfResults take() {
    return std::apply([](const auto&... result) { return GradientsOfResults(result.slot()->take()...); }, results_);
  }
  static bool any_defined(const GradientsOfResults& gradients) {
    return std::apply([](const auto&... gradient) { return (gradient.defined() || ...); }, gradients);
  }
  auto call(GradientsOfResults& of_results, const auto& function) {
    return std::apply(function, std::tuple_cat(refer(of_results), refer(kept_), refer(gradients_)));
  }
  static auto refer(auto& tuple) {
    return std::apply([](auto&... elements) { return std::tie(elements...); }, tuple);
  }
  auto run_input_gradients(GradientsOfResults& of_results) {
    return call(of_results, [this](auto&... all) { return operation_.input_gradients(all...); });
  }
  void run_weight_gradients(GradientsOfResults& of_results) {
    call(of_results, [this](auto&... all) { operation_.weight_gradients(all...); });
  }
  [[noreturn, gnu::cold, gnu::noinline]] void refuse_changed() const {
    Shape shape;
    [&]<std::size_t... at>(std::index_sequence<at...>) {
      ((version_of(std::get<at>(kept_)) != versions_[at] ? void(shape = shape_of_kept(std::get<at>(kept_))) : void()), ...);
    }
    (std::index_sequence_for<Kept...>{});
    throw_changed_in_place(operation_.name, shape);
  }
  void run(const auto& work) {
    if (versions_of(kept_) != versions_) [[unlikely]]
      refuse_changed();
    if (gate.observed()) [[unlikely]] {
      observe(Pass::backward, view_of_operation(operation_, number_), work);
    } else {
      work();
    }
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

  struct Weights {
    bool wait = false;                               // in a split backward pass
    std::unique_ptr<GradientsOfResults> of_results;  // until weight_gradients() runs
  };
  struct NoWeights {};

  [[no_unique_address]] O operation_;
  [[no_unique_address]] std::conditional_t<splits, Weights, NoWeights> weights_;
  std::uint64_t number_;
  std::tuple<Results...> results_;
  std::tuple<Kept...> kept_;
  [[no_unique_address]] std::array<std::uint32_t, sizeof...(Kept)> versions_;
  std::tuple<Gradients...> gradients_;
};

template <typename O, typename... Results, typename... Operands>
[[gnu::cold, gnu::noinline]] void observe_forward(const O& operation, std::uint64_t number,
                                                  const std::tuple<Results&...>& results, const auto& forward,
                                                  const Given<Operands>&... given) {
  std::vector<Operand> operands;
  (add_views(given, operands), ...);
  std::vector<Operand> views;
  std::apply([&](const auto&... result) { (add_view(views, result.value), ...); }, results);
  OperationView view = view_of_operation(operation, number);
  view.operands = operands;
  view.results = views;
  observe(Pass::forward, view, forward);
}

// Returns the operation's number.
template <typename O, typename... Results, typename... Operands>
std::uint64_t run_forward(O& operation, const std::tuple<Results&...>& results, const Given<Operands>&... given) {
  const std::uint64_t number = ++gate.operations;
  const auto forward = [&] {
    std::apply([&](auto&... result) { operation.forward(given.value()..., result.value...); }, results);
  };
  if (gate.observed()) [[unlikely]] {
    observe_forward(operation, number, results, forward, given...);
  } else {
    forward();
  }
  return number;
}

// Whether the forward pass of an operation changes the operation or a variable of the caller. Further runs of a recomputed
// function then need this forward pass, even if nothing reads its results.
template <typename O, typename Results, typename... Operands>
inline constexpr bool keeps_state = true;
template <typename O, typename... Results, typename... Operands>
requires requires(const O& operation, const Given<Operands>&... given, Results&... result) {
  operation.forward(given.value()..., result.value...);
}
inline constexpr bool keeps_state<O, std::tuple<Results&...>, Operands...> = (!is_operand<Operands> || ...);

// The tape that records an operation, or null if no tape does, and whether the gradients of the operation's weights can be
// computed later.
struct Recording {
  Tape* tape = nullptr;
  bool weights_wait = false;
};

// Throws if an operand was recorded on another tape than the current one.
template <typename... Operands>
Recording recording_for(std::string_view operation, const Given<Operands>&... given) {
  Tape* tape = Tape::current();
  if (tape == nullptr) return {};
  bool needed = false;
  bool has_parameters = false;  // as weights
  bool has_computed = false;    // as weights: their gradients are needed immediately, for further gradients
  const auto look = [&]<typename X>(const Given<X>& operand) {
    operand.each_slot([&](const GradientSlot& slot) {
      require_on(operation, *tape, slot);
      needed = true;
      if constexpr (Given<X>::marks.weight) (slot.parameter().empty() ? has_computed : has_parameters) = true;
    });
  };
  (look(given), ...);
  if (!needed) return {};
  return {.tape = tape, .weights_wait = has_parameters && !has_computed};
}

// The kept value and the gradient of an operand, each as a tuple of one element or no element.
template <typename X>
auto kept_of(const Given<X>& given) {
  if constexpr (Given<X>::marks.kept) {
    return std::tuple<decltype(given.value())>(given.value());
  } else {
    return std::tuple<>();
  }
}
template <typename T, typename D, Marks marks>
auto kept_of(const Made<T, D, marks>& result) {
  if constexpr (marks.kept) {
    return std::tie(result.value);
  } else {
    return std::tuple<>();
  }
}
template <typename X>
auto gradient_of(const Given<X>& given) {
  if constexpr (Given<X>::has_gradient) {
    return std::tuple<decltype(given.gradient())>(given.gradient());
  } else {
    return std::tuple<>();
  }
}

// The results that are not internal.
template <typename... Results>
auto returned_of(const std::tuple<Results&...>& results) {
  return std::apply(
      [](auto&... result) {
        return std::tuple_cat([&] {
          if constexpr (Results::marks.internal) {
            return std::tuple<>();
          } else {
            return std::tie(result);
          }
        }()...);
      },
      results);
}

// Puts an operation on the tape, with a gradient for each of the results that it returns.
template <bool splits, typename O, typename... Results, typename... Kept, typename... Gradients>
void add_node(const Recording& recording, O operation, std::uint64_t number, const std::tuple<Results&...>& returned,
              std::tuple<Kept...> kept, std::tuple<Gradients...> gradients) {
  static_assert(sizeof...(Results) > 0, "an operation without a result has no place on a tape");
  using Node = OperationNode<splits, O, std::tuple<decltype(Results::gradient)...>, std::tuple<std::remove_cvref_t<Kept>...>,
                             std::tuple<std::remove_cvref_t<Gradients>...>>;
  const auto of_results = std::apply(
      [&]<typename... T, typename... D, Marks... marks>(Made<T, D, marks>&... result) {
        ((result.gradient =
              Gradient<T, D>(std::make_shared<typename Gradient<T, D>::Slot>(*recording.tape, result.value.shape()))),
         ...);
        return std::tie(std::as_const(result.gradient)...);
      },
      returned);
  recording.tape->add(std::make_unique<Node>(std::move(operation), number, recording.weights_wait, of_results, std::move(kept),
                                             std::move(gradients)));
}

// The results as record() returns them: one variable, or a tuple of several.
template <typename T, typename D, Marks marks>
Variable<T, D> variable_of(Made<T, D, marks>& result) {
  return {std::move(result.value), std::move(result.gradient)};
}
template <typename... Results>
auto variables_of(const std::tuple<Results&...>& returned) {
  if constexpr (sizeof...(Results) == 1) {
    return variable_of(std::get<0>(returned));
  } else {
    return std::apply([](auto&... result) { return std::tuple(variable_of(result)...); }, returned);
  }
}

template <typename O, typename... Results, typename... Operands>
auto run(O operation, const std::tuple<Results&...>& results, const Given<Operands>&... given) {
  const Recording recording = recording_for(operation.name, given...);
  constexpr Tape::Kept keeps{.operands = (Given<Operands>::marks.kept || ...),
                             .results = (Results::marks.kept || ...) || keeps_state<O, std::tuple<Results&...>, Operands...>};
  const bool left_out = recording.tape != nullptr && recording.tape->in_run() && recording.tape->leaves_out(keeps);
  const std::uint64_t number = left_out ? ++gate.operations : run_forward(operation, results, given...);
  const auto returned = returned_of(results);
  if (recording.tape != nullptr) {
    (given.each_slot([](GradientSlot& slot) { slot.count_use(); }), ...);
    auto kept =
        std::apply([&](const auto&... result) { return std::tuple_cat(kept_of(given)..., kept_of(result)...); }, results);
    constexpr bool splits = (Given<Operands>::marks.weight || ...);
    add_node<splits>(recording, std::move(operation), number, returned, std::move(kept), std::tuple_cat(gradient_of(given)...));
  }
  return variables_of(returned);
}

template <typename Receive>
struct Watch {
  static constexpr std::string_view name = "watch";
  Receive receive;
  void forward(const auto&) const {}
  // Clones a gradient that shares its storage with others, so that the caller owns it.
  void backward(auto& gradient) { receive(gradient.shares_storage() ? gradient.clone() : std::move(gradient)); }
};

}  // namespace detail

// Runs an operation: checks that its operands are defined, allocates the results, calls forward(), and puts the operation on
// the current tape if an operand needs a gradient. Otherwise the results are constants and nothing is kept.
//
// Operands are Variables, Tensors (constants) and vectors of these, with their marks. `results` is one Result, a tuple of
// Results, or a function that returns one of these. For a tuple, record() returns a tuple of Variables. A function is called
// after the operands are checked.
//
//   forward(values of operands..., results...)
//   backward(gradients of results..., kept values..., gradients of operands...)
//
// Kept values are the operands marked kept, then the results marked kept. An internal result has no gradient. With several
// results, the gradient of a result is undefined if nothing contributed to it. If nothing contributed to any result, backward()
// is not called. Tensors have no gradient; the gradient of a constant Variable ignores contributions. backward() makes one
// contribution to each gradient.
//
// If an operand is marked as a weight, the functions input_gradients() and weight_gradients() replace backward(). Both take the
// arguments of backward(). weight_gradients() runs later if the backward pass is split (Tape::split_backward) and the weights
// are parameters; otherwise it runs before input_gradients(). An input_gradients() that starts a transfer returns a function
// that waits for the transfer; weight_gradients() then runs between these two steps.
template <typename O, typename R, typename... Operands>
auto record(O operation, const R& results, const Operands&... operands) {
  require_operands(operation.name, operands...);
  return detail::with_results(results, [&](auto&&... made) {
    return detail::run(std::move(operation), std::tie(made...), detail::Given<Operands>(operands)...);
  });
}

// Makes a Variable that is not a parameter but reports its gradient: the backward pass calls `on_gradient(tensor)` with a
// tensor that nothing else uses.
template <typename T, typename D, typename Receive>
Variable<T, D> watch(Tensor<T, D> value, Receive on_gradient) {
  detail::Watch<Receive> operation{std::move(on_gradient)};
  Tape* tape = Tape::current();
  require(tape != nullptr, "watch() needs a tape: open one first");
  require_operands(operation.name, value);
  detail::Made<T, D> result{std::move(value)};
  const auto results = std::tie(result);
  const std::uint64_t number = detail::run_forward(operation, results);
  detail::add_node<false>({.tape = tape}, std::move(operation), number, results, std::tuple<>(), std::tuple<>());
  return detail::variable_of(result);
}

}  // namespace trireme
