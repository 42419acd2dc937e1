#include "trireme/autograd/functions.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/elementwise/transpose.hpp"
#include "trireme/ops/reduce/softmax.hpp"

namespace trireme {
namespace {

// function(x) over the last dim, applied to another one.
template <typename T, typename D, typename Function>
Variable<T, D> over_dim(const Variable<T, D>& x, int dim, const Function& function) {
  if (dim == -1 || dim == x.shape().size() - 1) return function(x);
  return transpose(function(transpose(x, dim, -1)), dim, -1);
}

}  // namespace

template <typename T, typename D>
Variable<T, D> transpose(const Variable<T, D>& x, int first, int second) {
  require_operands("transpose", x);
  Tensor<T, D> y(ops::transposed_shape(x.shape(), first, second));
  ops::transpose(x.value(), first, second, y);
  return record("transpose", std::move(y), {x.slot()},
                [first, second, shape = x.shape(), dx = x.gradient()](const Tensor<T, D>& dy) {
                  Tensor<T, D> contribution(shape);
                  ops::transpose(dy, first, second, contribution);
                  dx.give(std::move(contribution));
                });
}

template <typename T, typename D>
Variable<T, D> softmax(const Variable<T, D>& x, int dim) {
  require_operands("softmax", x);
  return over_dim(x, dim, [](const Variable<T, D>& rows) {
    Tensor<T, D> y(rows.shape());
    ops::softmax(rows.value(), y);
    return record("softmax", y, {rows.slot()}, [y, dx = rows.gradient()](const Tensor<T, D>& dy) {
      dx.contribute([&](Tensor<T, D>& out, bool accumulate) { ops::softmax_backward(y, dy, out, accumulate); });
    });
  });
}

template <typename T, typename D>
Variable<T, D> log_softmax(const Variable<T, D>& x, int dim) {
  require_operands("log_softmax", x);
  return over_dim(x, dim, [](const Variable<T, D>& rows) {
    Tensor<T, D> y(rows.shape());
    ops::log_softmax(rows.value(), y);
    return record("log_softmax", y, {rows.slot()}, [y, dx = rows.gradient()](const Tensor<T, D>& dy) {
      dx.contribute([&](Tensor<T, D>& out, bool accumulate) { ops::log_softmax_backward(y, dy, out, accumulate); });
    });
  });
}

#define TRIREME_INSTANTIATE(T)                                                                  \
  template Variable<T, TRIREME_DEVICE> transpose(const Variable<T, TRIREME_DEVICE>&, int, int); \
  template Variable<T, TRIREME_DEVICE> softmax(const Variable<T, TRIREME_DEVICE>&, int);        \
  template Variable<T, TRIREME_DEVICE> log_softmax(const Variable<T, TRIREME_DEVICE>&, int)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
TRIREME_INSTANTIATE(bfloat16);
TRIREME_INSTANTIATE(float16);
#undef TRIREME_INSTANTIATE

}  // namespace trireme
