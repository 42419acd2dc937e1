#pragma once

// Operands and results of an operation at the gate (autograd/record.hpp), and their marks.

#include <initializer_list>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "trireme/autograd/observer.hpp"
#include "trireme/autograd/variable.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// A result of an operation. The gate allocates the result unless it exists already, as the result of a reshape does.
template <typename T, typename D = Cpu>
struct Result {
  Shape shape = {};
  std::optional<Tensor<T, D>> existing = {};
};

namespace detail {

struct Marks {
  bool kept = false;
  bool optional = false;
  bool weight = false;
  bool internal = false;
};

// Holds an operand by reference, a result by value.
template <typename What>
struct Stored {
  using type = const What&;
};
template <typename T, typename D>
struct Stored<Result<T, D>> {
  using type = Result<T, D>;
};

template <typename What, Marks marks_>
struct Marked {
  static constexpr Marks marks = marks_;
  typename Stored<What>::type what;
};

template <Marks marks, typename X>
auto marked(const X& x) {
  return Marked<X, marks>{x};
}
template <Marks marks, typename X, Marks others>
auto marked(const Marked<X, others>& x) {
  constexpr Marks both{.kept = marks.kept || others.kept,
                       .optional = marks.optional || others.optional,
                       .weight = marks.weight || others.weight,
                       .internal = marks.internal || others.internal};
  return Marked<X, both>{x.what};
}

template <typename X>
struct Written {
  X& value;
};

}  // namespace detail

// Marks of operands and results. They combine: kept(weight(w)).
auto kept(const auto& x) { return detail::marked<detail::Marks{.kept = true}>(x); }          // backward() reads it
auto optional(const auto& x) { return detail::marked<detail::Marks{.optional = true}>(x); }  // may be undefined
auto weight(const auto& x) { return detail::marked<detail::Marks{.weight = true}>(x); }  // its gradient may be computed later
auto internal(const auto& x) {
  return detail::marked<detail::Marks{.kept = true, .internal = true}>(x);
}  // a result that only backward() reads

// A variable of the caller that forward() fills besides the results. Pass it after the operands.
template <typename X>
detail::Written<X> written(X& x) {
  return {x};
}

namespace detail {

template <typename X>
struct IsVariable : std::false_type {};
template <typename T, typename D, typename G>
struct IsVariable<Variable<T, D, G>> : std::true_type {};

// An operand as the gate sees it.
template <typename X>
struct Given {
  static constexpr Marks marks = {};
  static constexpr bool has_gradient = IsVariable<X>::value;
  const X& x;

  explicit Given(const X& given) : x(given) {}
  bool present() const {
    if constexpr (has_gradient) return x.value().defined();
    if constexpr (!has_gradient) return x.defined();
  }
  decltype(auto) value() const {
    if constexpr (has_gradient) return (x.value());
    if constexpr (!has_gradient) return (x);
  }
  decltype(auto) gradient() const { return x.gradient(); }
  void each_slot(const auto& visit) const {
    if constexpr (has_gradient) {
      if (x.slot() != nullptr) visit(*x.slot());
    }
  }
};

template <typename X>
struct Given<std::vector<X>> {
  static constexpr Marks marks = {};
  static constexpr bool has_gradient = IsVariable<X>::value;
  const std::vector<X>& x;

  explicit Given(const std::vector<X>& given) : x(given) {}
  bool present() const {
    for (const X& each : x) {
      if (!Given<X>(each).present()) return false;
    }
    return true;
  }
  decltype(auto) value() const {
    if constexpr (has_gradient) {
      std::vector<std::remove_cvref_t<decltype(Given<X>(x.front()).value())>> values;
      for (const X& each : x) values.push_back(each.value());
      return values;
    } else {
      return (x);
    }
  }
  auto gradient() const {
    std::vector<std::remove_cvref_t<decltype(x.front().gradient())>> gradients;
    for (const X& each : x) gradients.push_back(each.gradient());
    return gradients;
  }
  void each_slot(const auto& visit) const {
    for (const X& each : x) Given<X>(each).each_slot(visit);
  }
};

template <typename X, Marks marks_>
struct Given<Marked<X, marks_>> : Given<X> {
  static constexpr Marks marks = marks_;
  explicit Given(const Marked<X, marks_>& given) : Given<X>(given.what) {}
  bool present() const { return marks.optional || Given<X>::present(); }
};

template <typename X>
struct Given<Written<X>> {
  static constexpr Marks marks = {};
  static constexpr bool has_gradient = false;
  X& x;

  explicit Given(const Written<X>& given) : x(given.value) {}
  bool present() const { return true; }
  X& value() const { return x; }
  void each_slot(const auto&) const {}
};

template <typename X>
inline constexpr bool is_operand = true;
template <typename X>
inline constexpr bool is_operand<Written<X>> = false;

// Appends an operand or a result to the list that an observer gets.
void add_view(std::vector<Operand>& to, std::shared_ptr<const device::Storage> storage, std::int64_t offset, const Shape& shape,
              DType dtype, const GradientSlot* slot);

template <typename T, typename D>
void add_view(std::vector<Operand>& to, const Tensor<T, D>& tensor, const GradientSlot* slot = nullptr) {
  add_view(to, tensor.storage(), tensor.offset_in_bytes(), tensor.shape(), dtype_of<T>, slot);
}
template <typename T, typename D, typename G>
void add_view(std::vector<Operand>& to, const Variable<T, D, G>& variable) {
  add_view(to, variable.value(), variable.slot());
}
template <typename X>
void add_views(const Given<Written<X>>&, std::vector<Operand>&) {}
template <typename X>
void add_views(const Given<X>& given, std::vector<Operand>& to) {
  if constexpr (requires { given.x.begin(); }) {
    for (const auto& each : given.x) add_view(to, each);
  } else {
    add_view(to, given.x);
  }
}

void require_on(std::string_view operation, const Tape& tape, const GradientSlot& slot);

[[noreturn]] void throw_undefined_operand(std::string_view operation, std::initializer_list<bool> given, int operands);

template <typename... Operands>
void require_present(std::string_view operation, const Given<Operands>&... given) {
  if (!(given.present() && ...)) [[unlikely]] {
    throw_undefined_operand(operation, {given.present()...}, (int{is_operand<Operands>} + ...));
  }
}

}  // namespace detail

// Throws if an operand is undefined: "distillation_loss: operand 2 of 2 is undefined". The gate checks this itself; call this
// function only if you read operands before the gate.
template <typename... Operands>
void require_operands(std::string_view function, const Operands&... operands) {
  detail::require_present(function, detail::Given<Operands>(operands)...);
}

}  // namespace trireme
