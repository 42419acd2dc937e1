#pragma once

#include "trireme/autograd/variable.hpp"
#include "trireme/core/dims.hpp"
#include "trireme/core/export.hpp"

// The sums, means, maxima and norms of ops/reduce/reductions.hpp on Variables, over all dims unless you name some.
//
//   const Variable<float> loss = mean(multiply(error, error));
namespace trireme TRIREME_EXPORT {

template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> sum(const Variable<T, D>& x, const Dims& dims = {}, bool keep_dims = false);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> mean(const Variable<T, D>& x, const Dims& dims = {}, bool keep_dims = false);

// The gradient is correct even if elements are 0.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> prod(const Variable<T, D>& x, const Dims& dims = {}, bool keep_dims = false);

// All elements that are the largest, or the smallest, share the gradient equally, as for torch's amax. max_with_index() gives
// the whole gradient to the first such element.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> max(const Variable<T, D>& x, const Dims& dims = {}, bool keep_dims = false);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> min(const Variable<T, D>& x, const Dims& dims = {}, bool keep_dims = false);

template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> logsumexp(const Variable<T, D>& x, const Dims& dims = {}, bool keep_dims = false);

template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> var(const Variable<T, D>& x, const Dims& dims = {}, bool keep_dims = false,
                                  double correction = 1);

// The gradients of a deviation or norm of 0 are 0.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> stddev(const Variable<T, D>& x, const Dims& dims = {}, bool keep_dims = false,
                                     double correction = 1);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> norm(const Variable<T, D>& x, double p = 2, const Dims& dims = {}, bool keep_dims = false);

// Computes softmax over one dim. Any dim but the last costs two transposed copies.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> softmax(const Variable<T, D>& x, int dim = -1);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> log_softmax(const Variable<T, D>& x, int dim = -1);

}  // namespace trireme
