#include "trireme/autograd/functions.hpp"

#include "trireme/autograd/pointwise.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/ops/elementwise/cast.hpp"

namespace trireme {
namespace {

struct Cast {
  static constexpr std::string_view name = "cast";
  void forward(const auto& x, auto& y) const { ops::cast(x, y); }
  void backward(const auto& dy, const auto& dx) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::cast(dy, out, accumulate); });
  }
};

struct Reshape {
  static constexpr std::string_view name = "reshape";
  void forward(const auto&, auto&) const {}
  void backward(auto& dy, const auto& dx) const { dx.give(std::move(dy)); }
};

// The arithmetic of operands of one shape; detail::binary_of() has that of others.
struct Add {
  static constexpr std::string_view name = "add";
  void forward(const auto& a, const auto& b, auto& y) const { ops::add(a, b, y); }
  void backward(const auto& dy, const auto& da, const auto& db) const {
    da.give(dy);
    db.give(dy);
  }
};

struct Subtract {
  static constexpr std::string_view name = "subtract";
  void forward(const auto& a, const auto& b, auto& y) const { ops::subtract(a, b, y); }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& dy, const auto& da, const auto& db) const {
    da.give(dy);
    db.contribute([&](auto& out, bool accumulate) { ops::scale(dy, Accumulate<T>{-1}, out, accumulate); });
  }
};

struct Multiply {
  static constexpr std::string_view name = "multiply";
  void forward(const auto& a, const auto& b, auto& y) const { ops::multiply(a, b, y); }
  void backward(const auto& dy, const auto& a, const auto& b, const auto& da, const auto& db) const {
    da.contribute([&](auto& out, bool accumulate) { ops::multiply(dy, b, out, accumulate); });
    db.contribute([&](auto& out, bool accumulate) { ops::multiply(dy, a, out, accumulate); });
  }
};

struct Divide {
  static constexpr std::string_view name = "divide";
  void forward(const auto& a, const auto& b, auto& y) const { ops::divide(a, b, y); }
  void backward(const auto& dy, const auto& a, const auto& b, const auto& da, const auto& db) const {
    da.contribute([&](auto& out, bool accumulate) { ops::divide(dy, b, out, accumulate); });
    db.contribute([&](auto& out, bool accumulate) { ops::divide_backward_divisor(a, b, dy, out, accumulate); });
  }
};

template <typename A>
struct Shift {
  static constexpr std::string_view name = "shift";
  A summand;
  void forward(const auto& x, auto& y) const { ops::shift(x, summand, y); }
  void backward(auto& dy, const auto& dx) const { dx.give(std::move(dy)); }
  void describe(Attributes& to) const { to["summand"] = static_cast<double>(summand); }
};

template <typename A>
struct Scale {
  static constexpr std::string_view name = "scale";
  A factor;
  void forward(const auto& x, auto& y) const { ops::scale(x, factor, y); }
  void backward(const auto& dy, const auto& dx) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::scale(dy, factor, out, accumulate); });
  }
  void describe(Attributes& to) const { to["factor"] = static_cast<double>(factor); }
};

std::string_view name_of(ops::Activation kind) {
  switch (kind) {
    case ops::Activation::gelu_tanh: return "gelu_tanh";
    case ops::Activation::gelu_erf: return "gelu_erf";
    case ops::Activation::relu: return "relu";
    case ops::Activation::silu: return "silu";
    case ops::Activation::sigmoid: return "sigmoid";
    case ops::Activation::tanh: return "tanh";
  }
  return {};
}

struct Activation {
  std::string_view name;
  ops::Activation kind;
  void forward(const auto& x, auto& y) const { ops::activation(kind, x, y); }
  void backward(const auto& dy, const auto& x, const auto& dx) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::activation_backward(kind, x, dy, out, accumulate); });
  }
};

std::string_view name_of_gated(ops::Activation kind) {
  switch (kind) {
    case ops::Activation::gelu_tanh: return "geglu_tanh";
    case ops::Activation::gelu_erf: return "geglu";
    case ops::Activation::relu: return "reglu";
    case ops::Activation::silu: return "swiglu";
    case ops::Activation::sigmoid: return "glu";
    case ops::Activation::tanh: return "tanh_glu";
  }
  return {};
}

struct GatedActivation {
  std::string_view name;
  ops::Activation kind;
  void forward(const auto& gate, const auto& x, auto& y) const { ops::gated_activation(kind, gate, x, y); }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& dy, const auto& gate, const auto& x, const auto& dgate, const auto& dx) const {
    Tensor<T, D> left_out;
    const auto write = [&](Tensor<T, D>& of_gate, bool adds_to_gate, Tensor<T, D>& of_x, bool adds) {
      ops::gated_activation_backward(kind, gate, x, dy, of_gate, adds_to_gate, of_x, adds);
    };
    if (!dgate.needed()) {
      dx.contribute([&](auto& of_x, bool adds) { write(left_out, false, of_x, adds); });
    } else if (!dx.needed()) {
      dgate.contribute([&](auto& of_gate, bool adds) { write(of_gate, adds, left_out, false); });
    } else {
      dgate.contribute([&](auto& of_gate, bool adds_to_gate) {
        dx.contribute([&](auto& of_x, bool adds) { write(of_gate, adds_to_gate, of_x, adds); });
      });
    }
  }
};

struct LeakyRelu {
  static constexpr std::string_view name = "leaky_relu";
  double slope;
  void forward(const auto& x, auto& y) const { ops::leaky_relu(x, slope, y); }
  void backward(const auto& dy, const auto& x, const auto& dx) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::leaky_relu_backward(x, slope, dy, out, accumulate); });
  }
  void describe(Attributes& to) const { to["slope"] = slope; }
};

struct Softplus {
  static constexpr std::string_view name = "softplus";
  ops::SoftplusOptions options;
  void forward(const auto& x, auto& y) const { ops::softplus(x, options, y); }
  void backward(const auto& dy, const auto& x, const auto& dx) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::softplus_backward(x, options, dy, out, accumulate); });
  }
  void describe(Attributes& to) const {
    to["beta"] = options.beta;
    to["threshold"] = options.threshold;
  }
};

struct Dropout {
  static constexpr std::string_view name = "dropout";
  double probability;
  ops::RandomKey key;
  void forward(const auto& x, auto& y) const { ops::dropout(x, probability, key, y); }
  void backward(const auto& dy, const auto& dx) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::dropout(dy, probability, key, out, accumulate); });
  }
  void describe(Attributes& to) const { to["probability"] = probability; }
};

}  // namespace

template <typename To, typename From, typename D>
Variable<To, D> cast(const Variable<From, D>& x) {
  if constexpr (std::same_as<To, From>) {
    require_operands(Cast::name, x);
    return x;
  } else {
    return record(Cast{}, Result<To, D>{x.shape()}, x);
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
  return record(
      Reshape{}, [&] { return Result<T, D>{.existing = x.value().reshape(shape)}; }, x);
}

template <typename T, typename D>
Variable<T, D> add(const Variable<T, D>& a, const Variable<T, D>& b) {
  if (a.shape() != b.shape()) return detail::binary_of(ops::Binary::add, a, b);
  return record(Add{}, Result<T, D>{a.shape()}, a, b);
}

template <typename T, typename D>
Variable<T, D> subtract(const Variable<T, D>& a, const Variable<T, D>& b) {
  if (a.shape() != b.shape()) return detail::binary_of(ops::Binary::subtract, a, b);
  return record(Subtract{}, Result<T, D>{a.shape()}, a, b);
}

template <typename T, typename D>
Variable<T, D> multiply(const Variable<T, D>& a, const Variable<T, D>& b) {
  if (a.shape() != b.shape()) return detail::binary_of(ops::Binary::multiply, a, b);
  return record(Multiply{}, Result<T, D>{a.shape()}, kept(a), kept(b));
}

template <typename T, typename D>
Variable<T, D> divide(const Variable<T, D>& a, const Variable<T, D>& b) {
  if (a.shape() != b.shape()) return detail::binary_of(ops::Binary::divide, a, b);
  return record(Divide{}, Result<T, D>{a.shape()}, kept(a), kept(b));
}

template <typename T, typename D>
Variable<T, D> shift(const Variable<T, D>& x, Accumulate<T> summand) {
  return record(Shift<Accumulate<T>>{summand}, Result<T, D>{x.shape()}, x);
}

template <typename T, typename D>
Variable<T, D> scale(const Variable<T, D>& x, Accumulate<T> factor) {
  return record(Scale<Accumulate<T>>{factor}, Result<T, D>{x.shape()}, x);
}

template <typename T, typename D>
Variable<T, D> activation(ops::Activation kind, const Variable<T, D>& x) {
  return record(Activation{name_of(kind), kind}, Result<T, D>{x.shape()}, kept(x));
}

template <typename T, typename D>
Variable<T, D> gated_activation(ops::Activation kind, const Variable<T, D>& gate, const Variable<T, D>& x) {
  const std::string_view name = name_of_gated(kind);
  require_operands(name, gate, x);
  require(gate.shape() == x.shape(), "{}: gate has shape {}, x {}", name, gate.shape(), x.shape());
  return record(GatedActivation{name, kind}, Result<T, D>{x.shape()}, kept(gate), kept(x));
}

template <typename T, typename D>
Variable<T, D> leaky_relu(const Variable<T, D>& x, double slope) {
  return record(LeakyRelu{slope}, Result<T, D>{x.shape()}, kept(x));
}

template <typename T, typename D>
Variable<T, D> softplus(const Variable<T, D>& x, const ops::SoftplusOptions& options) {
  return record(Softplus{options}, Result<T, D>{x.shape()}, kept(x));
}

template <typename T, typename D>
Variable<T, D> dropout(const Variable<T, D>& x, double probability, std::string_view stream, const DropoutRows& rows) {
  require_operands(Dropout::name, x);
  require(probability >= 0 && probability < 1, "a dropout probability lies in [0, 1), got {}", probability);
  Tape* tape = Tape::current();
  if (tape == nullptr || probability == 0) return x;
  const auto [at, of_stream, call] = tape->next_call("dropout", stream);
  require(x.shape().size() > 0, "dropout: x is a scalar, but needs dims [rows, ...]");
  const std::int64_t rows_here = x.shape()[0];
  const std::int64_t per_sample =
      rows.per_sample > 0 ? rows.per_sample : tape->rows_per_sample("dropout", rows.all > 0 ? rows.all : rows_here);
  const std::int64_t per_row = rows_here == 0 ? 0 : x.value().numel() / rows_here;
  const bool known = Tensor<T, D>::on_host || at.on_device == nullptr;
  const std::int64_t first_row = (known ? at.first_sample * per_sample : 0) + rows.first;
  const ops::RandomKey key{.seed = at.seed,
                           .stream = of_stream,
                           .call = call,
                           .step = known ? at.step : 0,
                           .first_index = static_cast<std::uint64_t>(first_row * per_row),
                           .on_device = known ? nullptr : at.on_device,
                           .per_sample = static_cast<std::uint64_t>(per_sample * per_row)};
  return record(Dropout{probability, key}, Result<T, D>{x.shape()}, x);
}

#define TRIREME_INSTANTIATE(T)                                                                                           \
  template Variable<T, TRIREME_DEVICE> reshape(const Variable<T, TRIREME_DEVICE>&, const Shape&);                        \
  template Variable<T, TRIREME_DEVICE> add(const Variable<T, TRIREME_DEVICE>&, const Variable<T, TRIREME_DEVICE>&);      \
  template Variable<T, TRIREME_DEVICE> subtract(const Variable<T, TRIREME_DEVICE>&, const Variable<T, TRIREME_DEVICE>&); \
  template Variable<T, TRIREME_DEVICE> multiply(const Variable<T, TRIREME_DEVICE>&, const Variable<T, TRIREME_DEVICE>&); \
  template Variable<T, TRIREME_DEVICE> divide(const Variable<T, TRIREME_DEVICE>&, const Variable<T, TRIREME_DEVICE>&);   \
  template Variable<T, TRIREME_DEVICE> shift(const Variable<T, TRIREME_DEVICE>&, Accumulate<T>);                         \
  template Variable<T, TRIREME_DEVICE> scale(const Variable<T, TRIREME_DEVICE>&, Accumulate<T>);                         \
  template Variable<T, TRIREME_DEVICE> activation(ops::Activation, const Variable<T, TRIREME_DEVICE>&);                  \
  template Variable<T, TRIREME_DEVICE> gated_activation(ops::Activation, const Variable<T, TRIREME_DEVICE>&,             \
                                                        const Variable<T, TRIREME_DEVICE>&);                             \
  template Variable<T, TRIREME_DEVICE> leaky_relu(const Variable<T, TRIREME_DEVICE>&, double);                           \
  template Variable<T, TRIREME_DEVICE> softplus(const Variable<T, TRIREME_DEVICE>&, const ops::SoftplusOptions&);        \
  template Variable<T, TRIREME_DEVICE> dropout(const Variable<T, TRIREME_DEVICE>&, double, std::string_view, const DropoutRows&)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
TRIREME_INSTANTIATE(bfloat16);
TRIREME_INSTANTIATE(float16);
#undef TRIREME_INSTANTIATE

}  // namespace trireme
