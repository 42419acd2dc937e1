#include "trireme/autograd/functions.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/array/transpose.hpp"
#include "trireme/ops/reduce/softmax.hpp"

namespace trireme {
namespace {

// function(x) over the last dim, applied to another one.
template <typename T, typename D, typename Function>
Variable<T, D> over_dim(const Variable<T, D>& x, int dim, const Function& function) {
  if (dim == -1 || dim == x.shape().size() - 1) return function(x);
  return transpose(function(transpose(x, dim, -1)), dim, -1);
}

struct Transpose {
  static constexpr std::string_view name = "transpose";
  int first;
  int second;
  void forward(const auto& x, auto& y) const { ops::transpose(x, first, second, y); }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& dy, const Gradient<T, D>& dx) const {
    const ops::Movement back = ops::transposed(dy.shape(), first, second);
    dx.contribute([&](Tensor<T, D>& out, bool accumulate) { ops::copy_strided(back.copies[0], dy, out, accumulate); });
  }
  void describe(Attributes& to) const { to["dims"] = std::vector<std::int64_t>{first, second}; }
};

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
Variable<T, D> transpose(const Variable<T, D>& x, int first, int second) {
  return record(
      Transpose{first, second}, [&] { return Result<T, D>{ops::transposed_shape(x.shape(), first, second)}; }, x);
}

template <typename T, typename D>
Variable<T, D> softmax(const Variable<T, D>& x, int dim) {
  return over_dim(x, dim, [](const Variable<T, D>& rows) { return record(Softmax{}, kept(Result<T, D>{rows.shape()}), rows); });
}

template <typename T, typename D>
Variable<T, D> log_softmax(const Variable<T, D>& x, int dim) {
  return over_dim(x, dim,
                  [](const Variable<T, D>& rows) { return record(LogSoftmax{}, kept(Result<T, D>{rows.shape()}), rows); });
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
