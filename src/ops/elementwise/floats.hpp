#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "ops/base/parallel.hpp"
#include "ops/elementwise/cast_kernels.hpp"
#include "trireme/core/dtype.hpp"
#include "trireme/ops/elementwise/cast.hpp"
#include "trireme/tensor/tensor.hpp"

// Kernels compute in float and double. Elements of bfloat16 and float16 are converted to float for them, in pieces that stay in
// the L1 cache.
namespace trireme::ops {

template <typename T>
inline constexpr bool is_half = !std::is_same_v<T, Accumulate<T>>;

inline void widen(const bfloat16* from, float* to, std::int64_t count) { cast_kernels().from_bfloat16(from, to, count); }
inline void widen(const float16* from, float* to, std::int64_t count) { cast_kernels().from_float16(from, to, count); }
inline void narrow(const float* from, bfloat16* to, std::int64_t count) { cast_kernels().to_bfloat16(from, to, count); }
inline void narrow(const float* from, float16* to, std::int64_t count) { cast_kernels().to_float16(from, to, count); }

inline constexpr std::int64_t piece_elements = 1024;

// Calls body(first, count) for the pieces of [begin, end); for float and double this is one piece.
template <typename T, typename Body>
void for_pieces(std::int64_t begin, std::int64_t end, const Body& body) {
  if constexpr (is_half<T>) {
    for (; begin < end; begin += piece_elements) body(begin, std::min(piece_elements, end - begin));
  } else {
    body(begin, end - begin);
  }
}

// The threads of this rank call body(first, count) for pieces of the elements.
template <typename T, typename Body>
void parallel_pieces(std::int64_t count, const Body& body) {
  parallel_elements(count, [&](std::int64_t begin, std::int64_t end) { for_pieces<T>(begin, end, body); });
}

// A piece to read: the caller's own elements, or floats of the same value.
template <typename T>
class Input {
 public:
  Input(const T* elements, std::int64_t) : data_(elements) {}
  const T* data() const { return data_; }

 private:
  const T* data_;
};
template <typename T>
requires is_half<T>
class Input<T> {
 public:
  Input(const T* elements, std::int64_t count) { widen(elements, floats_, count); }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  const float* data() const { return floats_; }

 private:
  float floats_[piece_elements];
};

// A piece to write. `keep` reads the old elements, for kernels that add to them. Floats are rounded at the end of the scope.
template <typename T>
class Output {
 public:
  Output(T* elements, std::int64_t, bool) : data_(elements) {}
  T* data() { return data_; }

 private:
  T* data_;
};
template <typename T>
requires is_half<T>
class Output<T> {
 public:
  Output(T* elements, std::int64_t count, bool keep) : elements_(elements), count_(count) {
    if (keep) widen(elements_, floats_, count_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() { narrow(floats_, elements_, count_); }
  float* data() { return floats_; }

 private:
  T* elements_;
  std::int64_t count_;
  float floats_[piece_elements];
};

// A whole tensor converted to float, for functions of float alone.
template <typename T>
Tensor<float, Cpu> as_floats(const Tensor<T, Cpu>& x) {
  Tensor<float, Cpu> floats(x.shape());
  cast(x, floats);
  return floats;
}

// A row of up to a given width: for half types its floats, one row at a time, for others the caller's own elements.
template <typename T>
class FloatRow {
 public:
  using A = Accumulate<T>;

  explicit FloatRow(std::int64_t width) : width_(width) {
    if constexpr (is_half<T>) floats_ = Tensor<A, Cpu>({width});
  }

  const A* read(const T* row) { return read(row, width_); }
  const A* read(const T* row, std::int64_t count) {
    if constexpr (is_half<T>) {
      widen(row, floats_.data(), count);
      return floats_.data();
    } else {
      return row;
    }
  }
  A* place(T* row) {  // to be filled before write(row)
    if constexpr (is_half<T>) {
      return floats_.data();
    } else {
      return row;
    }
  }
  void write(T* row) { write(row, width_); }
  void write(T* row, std::int64_t count) {
    if constexpr (is_half<T>) narrow(floats_.data(), row, count);
  }

 private:
  std::int64_t width_;
  Tensor<A, Cpu> floats_;
};

}  // namespace trireme::ops
