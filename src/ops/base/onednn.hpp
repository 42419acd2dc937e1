#pragma once

#include <dnnl_version.h>
#include <omp.h>

#include <dnnl.hpp>
#include <string_view>

#include "trireme/core/dtype.hpp"

namespace trireme::ops {

// The threads that oneDNN finds here, for which it plans: one of a team works alone.
inline int onednn_threads() { return omp_in_parallel() != 0 ? 1 : omp_get_max_threads(); }

// Of the operands that oneDNN gets: bfloat16, or float32.
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
  bool allow_empty = false;         // an empty descriptor where oneDNN lacks the primitive, instead of an exception
  std::string_view leave_out = {};  // no implementation whose name has this, where there is another one
};

// oneDNN's first choice for products of floats as they lie in memory, with AVX-512. Where rows are a multiple of 4 KiB apart
// they fall on few cache sets. The next one copies both matrices and is faster nearly everywhere
// (benchmarks/results/products_*).
inline constexpr std::string_view product_in_place = "brg";

// Goes on to the first implementation that is not left out, or to the last.
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
  const typename Primitive::desc wanted(arguments...);  // which next_impl() reads
  typename Primitive::primitive_desc found{wanted, options.attributes, options.engine, options.allow_empty};
#endif
  leave_out(options.leave_out, found);
  return found;
}

// Of a backward pass, which is planned for the descriptor of its forward pass.
template <typename Primitive, typename Forward, typename... Arguments>
typename Primitive::primitive_desc describe_backward(const PrimitiveOptions& options, const Forward& forward,
                                                     const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  typename Primitive::primitive_desc found{options.engine, arguments..., forward, options.attributes, options.allow_empty};
#else
  const typename Primitive::desc wanted(arguments...);  // which next_impl() reads
  typename Primitive::primitive_desc found{wanted, options.attributes, options.engine, forward, options.allow_empty};
#endif
  leave_out(options.leave_out, found);
  return found;
}

}  // namespace trireme::ops
