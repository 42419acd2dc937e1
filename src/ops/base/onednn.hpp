#pragma once

#include <dnnl_version.h>
#include <omp.h>

#include <dnnl.hpp>
#include <string_view>

#include "trireme/core/dtype.hpp"

namespace trireme::ops {

// The number of threads that oneDNN plans for here. Inside a parallel region each thread works alone.
inline int onednn_threads() { return omp_in_parallel() != 0 ? 1 : omp_get_max_threads(); }

// The type of the operands that oneDNN gets: bfloat16 or float32.
inline dnnl::memory::data_type onednn_type(DType dtype) {
  return dtype == DType::bfloat16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

inline dnnl::memory::data_type type_of(const dnnl::memory::desc& layout) {
#if DNNL_VERSION_MAJOR >= 3
  return layout.get_data_type();
#else
  return layout.data_type();
#endif
}

struct PrimitiveOptions {
  const dnnl::engine& engine;
  dnnl::primitive_attr attributes = {};
  bool allow_empty = false;         // if oneDNN lacks the primitive: an empty descriptor instead of an exception
  std::string_view leave_out = {};  // skips implementations whose name contains this, if there is another one
};

// oneDNN's first choice with AVX-512 for products of floats reads the matrices in place: rows that are a multiple of 4 KiB
// apart fall on few cache sets. Its second choice copies both matrices and is faster in nearly all cases
// (benchmarks/results/products_*).
inline constexpr std::string_view product_in_place = "brg";

// Goes on to the first implementation whose name does not contain `part`, or to the last one.
template <typename Descriptor>
void leave_out(std::string_view part, Descriptor& found) {
  const auto is_left_out = [&] {
    return !part.empty() && found && std::string_view(found.impl_info_str()).find(part) != std::string_view::npos;
  };
  while (is_left_out() && found.next_impl()) {
  }
}

// The descriptor of a primitive: describe<dnnl::matmul>({engine}, a, b, c).
template <typename Primitive, typename... Arguments>
typename Primitive::primitive_desc describe(const PrimitiveOptions& options, const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  typename Primitive::primitive_desc found{options.engine, arguments..., options.attributes, options.allow_empty};
#else
  const typename Primitive::desc wanted(arguments...);  // next_impl() reads it
  typename Primitive::primitive_desc found{wanted, options.attributes, options.engine, options.allow_empty};
#endif
  leave_out(options.leave_out, found);
  return found;
}

// The descriptor of a backward pass, which needs that of its forward pass.
template <typename Primitive, typename Forward, typename... Arguments>
typename Primitive::primitive_desc describe_backward(const PrimitiveOptions& options, const Forward& forward,
                                                     const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  typename Primitive::primitive_desc found{options.engine, arguments..., forward, options.attributes, options.allow_empty};
#else
  const typename Primitive::desc wanted(arguments...);  // next_impl() reads it
  typename Primitive::primitive_desc found{wanted, options.attributes, options.engine, forward, options.allow_empty};
#endif
  leave_out(options.leave_out, found);
  return found;
}

}  // namespace trireme::ops
