#include "trireme/autograd/operations/matmul.hpp"

#include <memory>
#include <utility>

#include "autograd/operations/linear_use.hpp"
#include "autograd/operations/shapes.hpp"
#include "precision/instantiate.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/matmul/batched_matmul.hpp"
#include "trireme/ops/matmul/linear_gelu.hpp"
#include "trireme/ops/matmul/matmul.hpp"
#include "trireme/ops/matmul/product_shapes.hpp"
#include "trireme/ops/reduce/reduce.hpp"

namespace trireme {

namespace {

struct Matmul {
  static constexpr std::string_view name = "matmul";
  ops::ProductShapes shapes = {};

  void forward(const auto& a, const auto& b, auto& c) const {
    auto product = c.reshape(shapes.batch);
    ops::batched_matmul(a.reshape(shapes.a), b.reshape(shapes.b), product);
  }
  template <typename T, typename D, typename G>
  void backward(const Tensor<T, D>& dc, const Tensor<T, D>& a, const Tensor<T, D>& b, const Gradient<T, D>& da,
                const Gradient<G, D>& db) const {
    da.contribute([&](Tensor<T, D>& out, bool accumulate) {
      ops::batched_matmul_backward<T, D>({.a = a.reshape(shapes.a),
                                          .b = b.reshape(shapes.b),
                                          .dc = dc.reshape(shapes.batch),
                                          .da = out.reshape(shapes.a),
                                          .accumulate_da = accumulate});
    });
    db.contribute([&](Tensor<G, D>& out, bool accumulate) {
      ops::batched_matmul_backward<T, D, G>({.a = a.reshape(shapes.a),
                                             .b = b.reshape(shapes.b),
                                             .dc = dc.reshape(shapes.batch),
                                             .db = out.reshape(shapes.b),
                                             .accumulate_db = accumulate});
    });
  }
};

// dweight += dy^T x, dbias += the sums of dy's columns.
void contribute_to_weights(const auto& dy, const auto& x, const auto& dweight, const auto& dbias) {
  dweight.contribute(
      [&](auto& out, bool accumulate) { ops::matmul(dy, x, out, {.transpose_a = true, .accumulate = accumulate}); });
  dbias.contribute([&](auto& out, bool accumulate) { ops::sum_rows(dy, out, accumulate); });
}

struct Linear {
  static constexpr std::string_view name = "linear";

  void forward(const auto& x, const auto& weight, const auto& bias, auto& y) const {
    ops::linear(x, weight, bias, y, linear_use());
  }
  void input_gradients(const auto& dy, const auto&, const auto& weight, const auto& dx, const auto&, const auto&) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::matmul(dy, weight, out, {.accumulate = accumulate}); });
  }
  void weight_gradients(const auto& dy, const auto& x, const auto&, const auto&, const auto& dweight, const auto& dbias) const {
    contribute_to_weights(dy, x, dweight, dbias);
  }
};

template <typename T, typename D>
struct LinearGeluLinear {
  using A = Accumulate<T>;
  static constexpr std::string_view name = "linear_gelu_linear";

  void forward(const Tensor<T, D>& x, const Tensor<T, D>& weight1, const Tensor<A, D>& bias1, const Tensor<T, D>& weight2,
               const Tensor<A, D>& bias2, Tensor<T, D>& y, Tensor<T, D>& gelu_input, Tensor<T, D>& middle) const {
    ops::linear_gelu(x, weight1, bias1, gelu_input, middle);
    ops::linear(middle, weight2, bias2, y, linear_use());
  }
  void input_gradients(const Tensor<T, D>& dy, const Tensor<T, D>&, const Tensor<T, D>& weight1, const Tensor<T, D>& weight2,
                       Tensor<T, D>& gelu_input, const Tensor<T, D>&, const Gradient<T, D>& dx, const auto&...) {
    dx.contribute([&](Tensor<T, D>& out, bool accumulate) {
      ops::matmul(between(dy, weight2, gelu_input), weight1, out, {.accumulate = accumulate});
    });
  }
  void weight_gradients(const Tensor<T, D>& dy, const Tensor<T, D>& x, const Tensor<T, D>&, const Tensor<T, D>& weight2,
                        Tensor<T, D>& gelu_input, Tensor<T, D>& middle, const Gradient<T, D>&, const Gradient<A, D>& dweight1,
                        const Gradient<A, D>& dbias1, const Gradient<A, D>& dweight2, const Gradient<A, D>& dbias2) {
    contribute_to_weights(dy, middle, dweight2, dbias2);
    middle = {};
    if (dweight1.needed() || dbias1.needed()) {
      contribute_to_weights(between(dy, weight2, gelu_input), x, dweight1, dbias1);
    }
  }

 private:
  // The gradient of gelu_input. The first call computes it and stores it in place of gelu_input.
  const Tensor<T, D>& between(const Tensor<T, D>& dy, const Tensor<T, D>& weight2, Tensor<T, D>& gelu_input) {
    if (!std::exchange(between_known_, true)) {
      Tensor<T, D> gradient(gelu_input.shape());
      ops::linear_gelu_backward(dy, weight2, gelu_input, gradient);
      gelu_input = std::move(gradient);
    }
    return gelu_input;
  }

  bool between_known_ = false;
};

}  // namespace

template <typename T, typename D, typename G>
requires(std::same_as<G, T> || std::same_as<G, Accumulate<T>>) Variable<T, D> matmul(const Variable<T, D>& a,
                                                                                     const Variable<T, D, G>& b) {
  require_operands(Matmul::name, a, b);
  const ops::ProductShapes shapes = ops::product_shapes(a.shape(), b.shape());
  return record(Matmul{shapes}, Result<T, D>{shapes.result}, kept(a), kept(b));
}

template <typename T, typename D>
Variable<T, D> linear(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                      const Variable<Accumulate<T>, D>& bias) {
  const auto result = [&] {
    require_product("linear", x.shape(), weight.shape());
    return Result<T, D>{with_last_dim(x.shape(), weight.shape()[0])};
  };
  return record(Linear{}, result, kept(x), kept(trireme::weight(weight)), trireme::weight(optional(bias)));
}

template <typename T, typename D>
Variable<T, D> linear_gelu_linear(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight1,
                                  const Variable<Accumulate<T>, D>& bias1, const Variable<T, D, Accumulate<T>>& weight2,
                                  const Variable<Accumulate<T>, D>& bias2) {
  const auto results = [&] {
    require_product("linear_gelu_linear", x.shape(), weight1.shape());
    const Shape middle = with_last_dim(x.shape(), weight1.shape()[0]);
    require_product("linear_gelu_linear", middle, weight2.shape());
    return std::tuple(Result<T, D>{with_last_dim(x.shape(), weight2.shape()[0])}, internal(Result<T, D>{middle}),
                      internal(Result<T, D>{middle}));
  };
  return record(LinearGeluLinear<T, D>(), results, kept(x), kept(weight(weight1)), weight(optional(bias1)),
                kept(weight(weight2)), weight(optional(bias2)));
}

#define TRIREME_OVERLOADS(T, D) template Variable<T, D> matmul(const Variable<T, D>&, const Variable<T, D>&);
TRIREME_EACH(FLOATS, TRIREME_OVERLOADS, TRIREME_DEVICE)
#undef TRIREME_OVERLOADS
TRIREME_INSTANTIATE(FLOATS, linear, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, linear_gelu_linear, TRIREME_DEVICE)
#define TRIREME_WITH_WEIGHTS(T, D) template Variable<T, D> matmul(const Variable<T, D>&, const Variable<T, D, float>&);
TRIREME_EACH(HALVES, TRIREME_WITH_WEIGHTS, TRIREME_DEVICE)
#undef TRIREME_WITH_WEIGHTS

}  // namespace trireme
