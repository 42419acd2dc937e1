#include "trireme/ops/elementwise.hpp"

#include "ops/kernels/tables.hpp"
#include "ops/parallel_for.hpp"

namespace trireme::ops {
namespace {

template <typename T>
void require_same_size(const char* operation, const Tensor<T>& a, const Tensor<T>& b) {
  require(a.numel() == b.numel(), "{}: shapes {} and {} do not have the same number of elements", operation, a.shape().str(),
          b.shape().str());
}

}  // namespace

template <typename T, typename D>
void activation(Activation kind, const Tensor<T, D>& x, Tensor<T, D>& y) {
  require_same_size("activation", x, y);
  parallel_for(x.numel(), elements_per_part, [&](std::int64_t begin, std::int64_t end) {
    kernels::elementwise<T>().activation(kind, x.data() + begin, y.data() + begin, end - begin);
  });
}

template <typename T, typename D>
void activation_backward(Activation kind, const Tensor<T, D>& x, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate) {
  require_same_size("activation_backward", x, dy);
  require_same_size("activation_backward", x, dx);
  parallel_for(x.numel(), elements_per_part, [&](std::int64_t begin, std::int64_t end) {
    kernels::elementwise<T>().activation_backward(kind, x.data() + begin, dy.data() + begin, dx.data() + begin, end - begin,
                                                  accumulate);
  });
}

template <typename T, typename D>
void add(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<T, D>& c) {
  require_same_size("add", a, b);
  require_same_size("add", a, c);
  parallel_for(a.numel(), elements_per_part, [&](std::int64_t begin, std::int64_t end) {
    kernels::elementwise<T>().add(a.data() + begin, b.data() + begin, c.data() + begin, end - begin);
  });
}

template <typename T, typename D>
void multiply(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<T, D>& c, bool accumulate) {
  require_same_size("multiply", a, b);
  require_same_size("multiply", a, c);
  parallel_for(a.numel(), elements_per_part, [&](std::int64_t begin, std::int64_t end) {
    kernels::elementwise<T>().multiply(a.data() + begin, b.data() + begin, c.data() + begin, end - begin, accumulate);
  });
}

template <typename T, typename D>
void scale(const Tensor<T, D>& a, T factor, Tensor<T, D>& c, bool accumulate) {
  require_same_size("scale", a, c);
  parallel_for(a.numel(), elements_per_part, [&](std::int64_t begin, std::int64_t end) {
    kernels::elementwise<T>().scale(a.data() + begin, factor, c.data() + begin, end - begin, accumulate);
  });
}

template <typename T, typename D>
void dropout(const Tensor<T, D>& x, double probability, const RandomKey& key, Tensor<T, D>& y, bool accumulate) {
  require_same_size("dropout", x, y);
  require(probability >= 0 && probability < 1, "dropout: the probability {} does not lie in [0, 1)", probability);
  parallel_for(x.numel(), elements_per_part, [&](std::int64_t begin, std::int64_t end) {
    kernels::elementwise<T>().dropout(x.data(), probability, key, y.data(), begin, end - begin, accumulate);
  });
}

#define TRIREME_INSTANTIATE(T)                                                                                        \
  template void activation(Activation, const Tensor<T, Cpu>&, Tensor<T, Cpu>&);                                       \
  template void activation_backward(Activation, const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&, bool); \
  template void add(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&);                                   \
  template void multiply(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&, bool);                        \
  template void scale(const Tensor<T, Cpu>&, T, Tensor<T, Cpu>&, bool);                                               \
  template void dropout(const Tensor<T, Cpu>&, double, const RandomKey&, Tensor<T, Cpu>&, bool)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);

}  // namespace trireme::ops
