#include "trireme/ops/reduce/softmax.hpp"

#include "precision/instantiate.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

namespace trireme {
namespace {

// Applies a function of the last dim to dim `dim`.
template <typename T, typename D, typename Function>
Variable<T, D> over_dim(const Variable<T, D>& x, int dim, const Function& function) {
  if (dim == -1 || dim == x.shape().size() - 1) return function(x);
  return transpose(function(transpose(x, dim, -1)), dim, -1);
}

struct Softmax {
  static constexpr std::string_view name = "softmax";
  void forward(const auto& x, auto& y) const { ops::softmax(x, y); }
  void backward(const auto& dy, const auto& y, const auto& dx) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::softmax_backward(y, dy, out, accumulate); });
  }
};

struct LogSoftmax {
  static constexpr std::string_view name = "log_softmax";
  void forward(const auto& x, auto& y) const { ops::log_softmax(x, y); }
  void backward(const auto& dy, const auto& y, const auto& dx) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::log_softmax_backward(y, dy, out, accumulate); });
  }
};

}  // namespace

template <typename T, typename D>
Variable<T, D> softmax(const Variable<T, D>& x, int dim) {
  return over_dim(x, dim, [](const Variable<T, D>& rows) { return record(Softmax{}, kept(Result<T, D>{rows.shape()}), rows); });
}

template <typename T, typename D>
Variable<T, D> log_softmax(const Variable<T, D>& x, int dim) {
  return over_dim(x, dim,
                  [](const Variable<T, D>& rows) { return record(LogSoftmax{}, kept(Result<T, D>{rows.shape()}), rows); });
}

#define TRIREME_OVERLOADS(T, D)                                \
  template Variable<T, D> softmax(const Variable<T, D>&, int); \
  template Variable<T, D> log_softmax(const Variable<T, D>&, int);
TRIREME_EACH(FLOATS, TRIREME_OVERLOADS, TRIREME_DEVICE)
#undef TRIREME_OVERLOADS

}  // namespace trireme
