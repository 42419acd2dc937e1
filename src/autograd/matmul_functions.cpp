#include "trireme/autograd/functions.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/ops/batched_matmul.hpp"

namespace trireme {

template <typename T, typename D>
Variable<T, D> matmul(const Variable<T, D>& a, const Variable<T, D>& b) {
  Tensor<T, D> c(ops::batched_matmul_shape(a.shape(), b.shape()));
  ops::batched_matmul(a.value(), b.value(), c);
  return record("matmul", std::move(c), {a.slot(), b.slot()}, [a, b](const Tensor<T, D>& dc) {
    a.gradient().contribute([&](Tensor<T, D>& da, bool accumulate) {
      ops::batched_matmul_backward<T, D>({.a = a.value(), .b = b.value(), .dc = dc, .da = da, .accumulate_da = accumulate});
    });
    b.gradient().contribute([&](Tensor<T, D>& db, bool accumulate) {
      ops::batched_matmul_backward<T, D>({.a = a.value(), .b = b.value(), .dc = dc, .db = db, .accumulate_db = accumulate});
    });
  });
}

template Variable<float, Cpu> matmul(const Variable<float, Cpu>&, const Variable<float, Cpu>&);
template Variable<double, Cpu> matmul(const Variable<double, Cpu>&, const Variable<double, Cpu>&);

}  // namespace trireme
