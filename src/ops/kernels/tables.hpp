#pragma once

#include <cstddef>
#include <cstdint>

#include "trireme/device/isa.hpp"
#include "trireme/ops/elementwise.hpp"
#include "trireme/ops/optimizer.hpp"

// The kernel files' interface: plain pointers and counts, one table for each instruction set. Kernels run on the calling
// thread; the functions of ops split the work.
namespace trireme::ops::kernels {

template <typename T>
struct Elementwise {
  void (*activation)(Activation kind, const T* x, T* y, std::int64_t count);
  void (*activation_backward)(Activation kind, const T* x, const T* dy, T* dx, std::int64_t count, bool accumulate);
  void (*add)(const T* a, const T* b, T* c, std::int64_t count);
  void (*multiply)(const T* a, const T* b, T* c, std::int64_t count, bool accumulate);
  void (*scale)(const T* a, T factor, T* c, std::int64_t count, bool accumulate);
  // Elements [begin, begin + count) of a tensor whose first element has the key's index.
  void (*dropout)(const T* x, double probability, const RandomKey& key, T* y, std::int64_t begin, std::int64_t count,
                  bool accumulate);
};

template <typename T>
struct Reduce {
  // columns[width] (+)= sum over rows of x; rows lie `stride` elements apart.
  void (*sum_rows)(const T* x, std::int64_t rows, std::int64_t width, std::int64_t stride, T* columns, bool accumulate);
  double (*sum)(const T* x, std::int64_t count);
  double (*sum_of_squares)(const T* x, std::int64_t count);
  double (*max_abs)(const T* x, std::int64_t count);
};

template <typename T>
struct Norm {
  struct Forward {
    const T* x;
    const T* residual;  // may be null
    const T* weight;    // may be null
    const T* bias;      // may be null
    T epsilon;
    T* x_sum;  // null without residual
    T* y;
    T* mean;
    T* rstd;
    std::int64_t width;
  };
  struct Backward {
    const T* x;
    const T* weight;  // may be null
    const T* mean;
    const T* rstd;
    const T* dy;
    T* dx;
    bool accumulate_dx;
    T* dweight;  // [width], added to; may be null
    T* dbias;    // likewise
    std::int64_t width;
  };
  void (*forward)(const Forward& pass, std::int64_t begin, std::int64_t end);    // rows
  void (*backward)(const Backward& pass, std::int64_t begin, std::int64_t end);  // rows
};

template <typename T>
struct Softmax {
  // Log of the sum of exponentials of each row.
  void (*log_sum_exp)(const T* x, std::int64_t rows, std::int64_t width, T* result);
  // y = scale * exp(x - log_sum_exp)
  void (*normalized)(const T* x, T log_sum_exp, T scale, T* y, std::int64_t width);
};

// One head of one sample. Rows of qkv lie qkv_stride elements apart, rows of out and dout out_stride.
template <typename T>
struct Attention {
  struct Head {
    std::int64_t time;
    std::int64_t size;
    std::int64_t qkv_stride;
    std::int64_t out_stride;
    const T* q;
    const T* k;
    const T* v;
    T scale;
    T* workspace;  // workspace_elements(time, size) elements, aligned to 64 bytes
  };
  std::int64_t (*workspace_elements)(std::int64_t time, std::int64_t size);
  void (*forward)(const Head& head, T* out, T* log_sum_exp);
  void (*backward)(const Head& head, const T* out, const T* log_sum_exp, const T* dout, T* dq, T* dk, T* dv);
};

template <typename T>
struct Optimizer {
  void (*adamw)(T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count, const AdamWStep& step);
  void (*sgd)(T* weight, const T* gradient, T* momentum, std::size_t count, const SgdStep& step);
};

struct DoubleMatmul {
  // c[m, n] (+)= a[m, k] b[k, n] with any strides.
  void (*run)(const double* a, std::int64_t a_row, std::int64_t a_column, const double* b, std::int64_t b_row,
              std::int64_t b_column, double* c, std::int64_t m, std::int64_t n, std::int64_t k, bool accumulate);
};

TRIREME_KERNEL_TABLE(Elementwise<float>, elementwise_f32)
TRIREME_KERNEL_TABLE(Elementwise<double>, elementwise_f64)
TRIREME_KERNEL_TABLE(Reduce<float>, reduce_f32)
TRIREME_KERNEL_TABLE(Reduce<double>, reduce_f64)
TRIREME_KERNEL_TABLE(Norm<float>, norm_f32)
TRIREME_KERNEL_TABLE(Norm<double>, norm_f64)
TRIREME_KERNEL_TABLE(Softmax<float>, softmax_f32)
TRIREME_KERNEL_TABLE(Softmax<double>, softmax_f64)
TRIREME_KERNEL_TABLE(Attention<float>, attention_f32)
TRIREME_KERNEL_TABLE(Attention<double>, attention_f64)
TRIREME_KERNEL_TABLE(Optimizer<float>, optimizer_f32)
TRIREME_KERNEL_TABLE(Optimizer<double>, optimizer_f64)
TRIREME_KERNEL_TABLE(DoubleMatmul, matmul_f64)

// The table for an element type.
template <typename T>
const Elementwise<T>& elementwise() {
  if constexpr (sizeof(T) == 8) {
    return elementwise_f64();
  } else {
    return elementwise_f32();
  }
}
template <typename T>
const Reduce<T>& reduce() {
  if constexpr (sizeof(T) == 8) {
    return reduce_f64();
  } else {
    return reduce_f32();
  }
}
template <typename T>
const Norm<T>& norm() {
  if constexpr (sizeof(T) == 8) {
    return norm_f64();
  } else {
    return norm_f32();
  }
}
template <typename T>
const Softmax<T>& softmax() {
  if constexpr (sizeof(T) == 8) {
    return softmax_f64();
  } else {
    return softmax_f32();
  }
}
template <typename T>
const Attention<T>& attention() {
  if constexpr (sizeof(T) == 8) {
    return attention_f64();
  } else {
    return attention_f32();
  }
}
template <typename T>
const Optimizer<T>& optimizer() {
  if constexpr (sizeof(T) == 8) {
    return optimizer_f64();
  } else {
    return optimizer_f32();
  }
}

}  // namespace trireme::ops::kernels
