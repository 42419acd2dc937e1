#pragma once

#include <cstdint>

#include "trireme/math/functors.hpp"
#include "trireme/ops/elementwise/elementwise_options.hpp"

// The elementwise operations as maps: map(i, x[i]...) is element i of the result.
namespace trireme::ops {

template <typename Visit>
TRIREME_HOST_DEVICE auto with_functor(Activation kind, Visit visit) {
  switch (kind) {
    case Activation::gelu_tanh: return visit(math::GeluTanh{});
    case Activation::gelu_erf: return visit(math::GeluErf{});
    case Activation::relu: return visit(math::Relu{});
    case Activation::silu: return visit(math::Silu{});
    case Activation::sigmoid: return visit(math::Sigmoid{});
    case Activation::tanh: break;
  }
  return visit(math::Tanh{});
}

template <typename Functor>
struct Value {
  Functor functor;
  template <typename A>
  TRIREME_HOST_DEVICE A operator()(std::int64_t, A x) const {
    return functor.value(x);
  }
};

template <typename Functor>
struct Derivative {
  Functor functor;
  template <typename A>
  TRIREME_HOST_DEVICE A operator()(std::int64_t, A x, A dy) const {
    return dy * functor.derivative(x);
  }
};

template <typename Functor>
struct Gated {
  Functor functor;
  template <typename A>
  TRIREME_HOST_DEVICE A operator()(std::int64_t, A gate, A x) const {
    return functor.value(gate) * x;
  }
};

template <typename Functor>
struct GateGradient {
  Functor functor;
  template <typename A>
  TRIREME_HOST_DEVICE A operator()(std::int64_t, A gate, A x, A dy) const {
    return dy * x * functor.derivative(gate);
  }
};

struct Same {
  template <typename A>
  TRIREME_HOST_DEVICE A operator()(std::int64_t, A x) const {
    return x;
  }
};

struct Sum {
  template <typename A>
  TRIREME_HOST_DEVICE A operator()(std::int64_t, A a, A b) const {
    return a + b;
  }
};

struct Difference {
  template <typename A>
  TRIREME_HOST_DEVICE A operator()(std::int64_t, A a, A b) const {
    return a - b;
  }
};

struct Product {
  template <typename A>
  TRIREME_HOST_DEVICE A operator()(std::int64_t, A a, A b) const {
    return a * b;
  }
};

struct Quotient {
  template <typename A>
  TRIREME_HOST_DEVICE A operator()(std::int64_t, A a, A b) const {
    return a / b;
  }
};

// dy times the derivative of a / b in b.
struct QuotientSlope {
  template <typename A>
  TRIREME_HOST_DEVICE A operator()(std::int64_t, A a, A b, A dy) const {
    return -dy * (a / b / b);
  }
};

template <typename A>
struct Shifted {
  A summand;
  TRIREME_HOST_DEVICE A operator()(std::int64_t, A a) const { return a + summand; }
};

template <typename A>
struct Scaled {
  A factor;
  TRIREME_HOST_DEVICE A operator()(std::int64_t, A a) const { return factor * a; }
};

}  // namespace trireme::ops
