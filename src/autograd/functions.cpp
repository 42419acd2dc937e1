#include "trireme/autograd/functions.hpp"

#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/ops/elementwise/cast.hpp"
#include "trireme/ops/elementwise/full.hpp"
#include "trireme/ops/reduce/reduce.hpp"

namespace trireme {

template <typename To, typename From, typename D>
Variable<To, D> cast(const Variable<From, D>& x) {
  require_operands("cast", x);
  if constexpr (std::same_as<To, From>) {
    return x;
  } else {
    Tensor<To, D> y(x.shape());
    ops::cast(x.value(), y);
    return record("cast", std::move(y), {x.slot()}, [dx = x.gradient()](const Tensor<To, D>& dy) {
      dx.contribute([&](Tensor<From, D>& out, bool accumulate) { ops::cast(dy, out, accumulate); });
    });
  }
}

template Variable<float, TRIREME_DEVICE> cast(const Variable<float, TRIREME_DEVICE>&);
template Variable<double, TRIREME_DEVICE> cast(const Variable<double, TRIREME_DEVICE>&);
template Variable<float, TRIREME_DEVICE> cast(const Variable<bfloat16, TRIREME_DEVICE>&);
template Variable<float, TRIREME_DEVICE> cast(const Variable<float16, TRIREME_DEVICE>&);
template Variable<bfloat16, TRIREME_DEVICE> cast(const Variable<float, TRIREME_DEVICE>&);
template Variable<float16, TRIREME_DEVICE> cast(const Variable<float, TRIREME_DEVICE>&);

template <typename T, typename D>
Variable<T, D> reshape(const Variable<T, D>& x, const Shape& shape) {
  require_operands("reshape", x);
  return record("reshape", x.value().reshape(shape), {x.slot()},
                [dx = x.gradient()](Tensor<T, D> dy) { dx.give(std::move(dy)); });
}

template <typename T, typename D>
Variable<T, D> add(const Variable<T, D>& a, const Variable<T, D>& b) {
  require_operands("add", a, b);
  Tensor<T, D> y(a.shape());
  ops::add(a.value(), b.value(), y);
  return record("add", std::move(y), {a.slot(), b.slot()}, [da = a.gradient(), db = b.gradient()](const Tensor<T, D>& dy) {
    da.give(dy);
    db.give(dy);
  });
}

template <typename T, typename D>
Variable<T, D> multiply(const Variable<T, D>& a, const Variable<T, D>& b) {
  require_operands("multiply", a, b);
  Tensor<T, D> y(a.shape());
  ops::multiply(a.value(), b.value(), y);
  return record("multiply", std::move(y), {a.slot(), b.slot()}, [a, b](const Tensor<T, D>& dy) {
    a.gradient().contribute([&](Tensor<T, D>& da, bool accumulate) { ops::multiply(dy, b.value(), da, accumulate); });
    b.gradient().contribute([&](Tensor<T, D>& db, bool accumulate) { ops::multiply(dy, a.value(), db, accumulate); });
  });
}

template <typename T, typename D>
Variable<T, D> scale(const Variable<T, D>& x, Accumulate<T> factor) {
  require_operands("scale", x);
  Tensor<T, D> y(x.shape());
  ops::scale(x.value(), factor, y);
  return record("scale", std::move(y), {x.slot()}, [factor, dx = x.gradient()](const Tensor<T, D>& dy) {
    dx.contribute([&](Tensor<T, D>& out, bool accumulate) { ops::scale(dy, factor, out, accumulate); });
  });
}

template <typename T, typename D>
Variable<T, D> sum(const Variable<T, D>& x) {
  require_operands("sum", x);
  return record(
      "sum", ops::full<T>({}, ops::sum(x.value())), {x.slot()},
      [shape = x.shape(), dx = x.gradient()](const Tensor<T, D>& dy) { dx.give(ops::full<T>(shape, Scalar<T, D>(dy))); });
}

template <typename T, typename D>
Variable<T, D> activation(ops::Activation kind, const Variable<T, D>& x) {
  require_operands("activation", x);
  Tensor<T, D> y(x.shape());
  ops::activation(kind, x.value(), y);
  return record("activation", std::move(y), {x.slot()}, [kind, value = x.value(), dx = x.gradient()](const Tensor<T, D>& dy) {
    dx.contribute([&](Tensor<T, D>& out, bool accumulate) { ops::activation_backward(kind, value, dy, out, accumulate); });
  });
}

template <typename T, typename D>
Variable<T, D> leaky_relu(const Variable<T, D>& x, double slope) {
  require_operands("leaky_relu", x);
  Tensor<T, D> y(x.shape());
  ops::leaky_relu(x.value(), slope, y);
  return record("leaky_relu", std::move(y), {x.slot()}, [slope, value = x.value(), dx = x.gradient()](const Tensor<T, D>& dy) {
    dx.contribute([&](Tensor<T, D>& out, bool accumulate) { ops::leaky_relu_backward(value, slope, dy, out, accumulate); });
  });
}

template <typename T, typename D>
Variable<T, D> softplus(const Variable<T, D>& x, const ops::SoftplusOptions& options) {
  require_operands("softplus", x);
  Tensor<T, D> y(x.shape());
  ops::softplus(x.value(), options, y);
  return record("softplus", std::move(y), {x.slot()}, [options, value = x.value(), dx = x.gradient()](const Tensor<T, D>& dy) {
    dx.contribute([&](Tensor<T, D>& out, bool accumulate) { ops::softplus_backward(value, options, dy, out, accumulate); });
  });
}

template <typename T, typename D>
Variable<T, D> dropout(const Variable<T, D>& x, double probability, std::string_view stream, const DropoutRows& rows) {
  require_operands("dropout", x);
  require(probability >= 0 && probability < 1, "a dropout probability lies in [0, 1), got {}", probability);
  Tape* tape = Tape::current();
  if (tape == nullptr || probability == 0) return x;
  const std::uint64_t of_stream = hash_name(stream);
  const auto [at, call] = tape->next_call("dropout", of_stream);
  const std::int64_t per_row = x.value().dim(0) == 0 ? 0 : x.value().numel() / x.value().dim(0);
  const bool known = Tensor<T, D>::on_host || at.on_device == nullptr;
  const std::int64_t first_row = (known ? at.first_sample * rows.per_sample : 0) + rows.first;
  const ops::RandomKey key{.seed = at.seed,
                           .stream = of_stream,
                           .call = call,
                           .step = known ? at.step : 0,
                           .first_index = static_cast<std::uint64_t>(first_row * per_row),
                           .on_device = known ? nullptr : at.on_device,
                           .per_sample = static_cast<std::uint64_t>(rows.per_sample * per_row)};
  Tensor<T, D> y(x.shape());
  ops::dropout(x.value(), probability, key, y);
  return record("dropout", std::move(y), {x.slot()}, [probability, key, dx = x.gradient()](const Tensor<T, D>& dy) {
    dx.contribute([&](Tensor<T, D>& out, bool accumulate) { ops::dropout(dy, probability, key, out, accumulate); });
  });
}

#define TRIREME_INSTANTIATE(T)                                                                                           \
  template Variable<T, TRIREME_DEVICE> reshape(const Variable<T, TRIREME_DEVICE>&, const Shape&);                        \
  template Variable<T, TRIREME_DEVICE> add(const Variable<T, TRIREME_DEVICE>&, const Variable<T, TRIREME_DEVICE>&);      \
  template Variable<T, TRIREME_DEVICE> multiply(const Variable<T, TRIREME_DEVICE>&, const Variable<T, TRIREME_DEVICE>&); \
  template Variable<T, TRIREME_DEVICE> scale(const Variable<T, TRIREME_DEVICE>&, Accumulate<T>);                         \
  template Variable<T, TRIREME_DEVICE> sum(const Variable<T, TRIREME_DEVICE>&);                                          \
  template Variable<T, TRIREME_DEVICE> activation(ops::Activation, const Variable<T, TRIREME_DEVICE>&);                  \
  template Variable<T, TRIREME_DEVICE> leaky_relu(const Variable<T, TRIREME_DEVICE>&, double);                           \
  template Variable<T, TRIREME_DEVICE> softplus(const Variable<T, TRIREME_DEVICE>&, const ops::SoftplusOptions&);        \
  template Variable<T, TRIREME_DEVICE> dropout(const Variable<T, TRIREME_DEVICE>&, double, std::string_view, const DropoutRows&)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
TRIREME_INSTANTIATE(bfloat16);
TRIREME_INSTANTIATE(float16);
#undef TRIREME_INSTANTIATE

}  // namespace trireme
