#include "trireme/autograd/operations/elementwise.hpp"

#include "precision/instantiate.hpp"
#include "trireme/autograd/operations/pointwise.hpp"
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

// Arithmetic of operands of equal shape; detail::binary_of() broadcasts others.
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

struct Rotary {
  static constexpr std::string_view name = "rotary";
  ops::RotaryOptions options;

  void forward(const auto& x, const auto& document_starts, auto& y) const { ops::rotary(x, options, y, document_starts); }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& dy, const Tensor<std::int32_t, D>& document_starts, const Gradient<T, D>& dx) const {
    Tensor<T, D> contribution(dy.shape());
    ops::rotary_backward(dy, options, contribution, document_starts);
    dx.give(std::move(contribution));
  }
  void describe(Attributes& to) const {
    to["size"] = options.size;
    to["heads"] = options.heads;
    to["first_position"] = options.first_position;
    to["base"] = options.base;
    const ops::RotaryScaling& scaling = options.scaling;
    to["scaling"] = static_cast<std::int64_t>(scaling.kind);
    to["factor"] = scaling.factor;
    to["trained_positions"] = scaling.trained_positions;
    to["low_frequency"] = scaling.low_frequency;
    to["high_frequency"] = scaling.high_frequency;
    to["beta_fast"] = scaling.beta_fast;
    to["beta_slow"] = scaling.beta_slow;
    to["truncate"] = std::int64_t{scaling.truncate};
    to["attention_factor"] = scaling.attention_factor;
  }
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

#define TRIREME_CASTS(T, D) template Variable<Accumulate<T>, D> cast(const Variable<T, D>&);
TRIREME_EACH(FLOATS, TRIREME_CASTS, TRIREME_DEVICE)
#undef TRIREME_CASTS
#define TRIREME_ROUNDINGS(T, D) template Variable<T, D> cast(const Variable<float, D>&);
TRIREME_EACH(HALVES, TRIREME_ROUNDINGS, TRIREME_DEVICE)
#undef TRIREME_ROUNDINGS

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

template <typename T, typename D>
Variable<T, D> rotary(const Variable<T, D>& x, const ops::RotaryOptions& options,
                      const Tensor<std::int32_t, D>& document_starts) {
  return record(Rotary{options}, Result<T, D>{x.shape()}, x, kept(optional(document_starts)));
}

#define TRIREME_OVERLOADS(T, D)                                                   \
  template Variable<T, D> add(const Variable<T, D>&, const Variable<T, D>&);      \
  template Variable<T, D> subtract(const Variable<T, D>&, const Variable<T, D>&); \
  template Variable<T, D> multiply(const Variable<T, D>&, const Variable<T, D>&); \
  template Variable<T, D> divide(const Variable<T, D>&, const Variable<T, D>&);   \
  template Variable<T, D> scale(const Variable<T, D>&, Accumulate<T>);            \
  template Variable<T, D> activation(ops::Activation, const Variable<T, D>&);
TRIREME_EACH(FLOATS, TRIREME_OVERLOADS, TRIREME_DEVICE)
#undef TRIREME_OVERLOADS
TRIREME_INSTANTIATE(FLOATS, shift, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, gated_activation, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, leaky_relu, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, softplus, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, dropout, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, rotary, TRIREME_DEVICE)

}  // namespace trireme
