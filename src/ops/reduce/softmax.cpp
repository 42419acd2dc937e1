#include "ops/elementwise/floats.hpp"
#include "ops/reduce/softmax_kernels.hpp"
#include "ops/reduce/softmax_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

template <>
template <typename T>
void Softmax<Cpu>::forward(SoftmaxKind kind, std::int64_t rows, std::int64_t width, const T* x, T* y) {
  const auto& kernels = softmax_kernels().of<Accumulate<T>>();
  const auto kernel = kind == SoftmaxKind::softmax ? kernels.probabilities : kernels.log_probabilities;
  parallel_rows(rows, width, [&](std::int64_t begin, std::int64_t end) {
    FloatRow<T> from(width), to(width);
    for (std::int64_t place = begin * width; place < end * width; place += width) {
      kernel(from.read(x + place), to.place(y + place), width);
      to.write(y + place);
    }
  });
}

template <>
template <typename T>
void Softmax<Cpu>::backward(SoftmaxKind kind, std::int64_t rows, std::int64_t width, const T* y, const T* dy, T* dx,
                            bool accumulate) {
  const auto& kernels = softmax_kernels().of<Accumulate<T>>();
  const auto kernel = kind == SoftmaxKind::softmax ? kernels.softmax_backward : kernels.log_softmax_backward;
  parallel_rows(rows, width, [&](std::int64_t begin, std::int64_t end) {
    FloatRow<T> results(width), upstream(width), to(width);
    for (std::int64_t place = begin * width; place < end * width; place += width) {
      if (accumulate) to.read(dx + place);
      kernel(results.read(y + place), upstream.read(dy + place), to.place(dx + place), width, accumulate);
      to.write(dx + place);
    }
  });
}

TRIREME_INSTANTIATE(FLOATS, softmax, Cpu)
TRIREME_INSTANTIATE(FLOATS, softmax_backward, Cpu)
TRIREME_INSTANTIATE(FLOATS, log_softmax, Cpu)
TRIREME_INSTANTIATE(FLOATS, log_softmax_backward, Cpu)

}  // namespace trireme::ops

namespace trireme {

TRIREME_INSTANTIATE(FLOATS, softmax, Cpu)
TRIREME_INSTANTIATE(FLOATS, log_softmax, Cpu)

}  // namespace trireme
