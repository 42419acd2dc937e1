#pragma once

#include "trireme/autograd/variable.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/pooling/pooling.hpp"

// Images are [batch, height, width, channels]; options and the sizes of results are as in ops/pooling/pooling.hpp.
namespace trireme TRIREME_EXPORT {

// x[batch, height, width, channels] -> [batch, y_height, y_width, channels].
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> max_pool2d(const Variable<T, D>& x, const ops::Pool2dOptions& options);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> avg_pool2d(const Variable<T, D>& x, const ops::AvgPool2dOptions& options);

// Pools to `output` pixels, whatever the size of x; 1 gives the average or the maximum of a whole image.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> adaptive_max_pool2d(const Variable<T, D>& x, const ops::Extent2d& output);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> adaptive_avg_pool2d(const Variable<T, D>& x, const ops::Extent2d& output);

}  // namespace trireme
