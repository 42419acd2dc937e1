#pragma once

#include "trireme/autograd/variable.hpp"

namespace trireme {

// Calls backward(pass) once; it also computes the gradients of weight and bias if they are needed.
template <typename Pass, typename A, typename D, typename Backward>
void contribute_to_weights(Pass& pass, const Gradient<A, D>& dweight, const Gradient<A, D>& dbias, const Backward& backward) {
  const auto with_bias = [&] {
    if (!dbias.needed()) return backward(pass);
    dbias.contribute([&](Tensor<A, D>& db, bool accumulate) {
      pass.dbias = db;
      pass.accumulate_dbias = accumulate;
      backward(pass);
    });
  };
  if (!dweight.needed()) return with_bias();
  dweight.contribute([&](Tensor<A, D>& dw, bool accumulate) {
    pass.dweight = dw;
    pass.accumulate_dweight = accumulate;
    with_bias();
  });
}

// The same with the gradient of x, which backward(pass) computes in any case.
template <typename Pass, typename X, typename A, typename D, typename Backward>
void contribute_to_all(Pass& pass, const Gradient<X, D>& dx, const Gradient<A, D>& dweight, const Gradient<A, D>& dbias,
                       const Backward& backward) {
  const auto run = [&](const Tensor<X, D>& out, bool accumulate) {
    pass.dx = out;
    pass.accumulate_dx = accumulate;
    contribute_to_weights(pass, dweight, dbias, backward);
  };
  if (!dx.needed()) return run(Tensor<X, D>(pass.dy.shape()), false);
  dx.contribute(run);
}

}  // namespace trireme
