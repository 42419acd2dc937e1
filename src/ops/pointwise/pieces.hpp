#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/elementwise/floats.hpp"
#include "ops/pointwise/pointwise_body.hpp"
#include "ops/pointwise/pointwise_kernels.hpp"

// A CPU goes through operands of several shapes in pieces. In a piece each operand is a run of neighbouring elements, or one
// repeated element. If the innermost dim is long, pieces end where it ends. If it is short, pieces cross its end, and operands
// that are neither whole nor single are gathered.
namespace trireme::ops {

inline constexpr std::int64_t long_inner = 256;

// Copies the operand's elements for `count` elements of the result, from its element `first` on.
template <typename T>
void copy_repeated(const Broadcast& plan, int operand, const T* data, std::int64_t first, std::int64_t count, T* to) {
  const auto last = static_cast<std::size_t>(plan.dims - 1);
  const auto& stride = plan.stride[static_cast<std::size_t>(operand)];
  const std::int64_t inner = plan.extent[last];
  std::array<std::int64_t, Broadcast::most_dims> index{};
  std::int64_t rest = first / inner;
  for (std::size_t dim = last; dim-- > 0; rest /= plan.extent[dim]) index[dim] = rest % plan.extent[dim];
  std::int64_t column = first % inner;
  const T* row = data + plan.offset(operand, first - column);
  while (count > 0) {
    const std::int64_t run = std::min(count, inner - column);
    const std::int64_t step = stride[last];
    for (std::int64_t i = 0; i < run; ++i) to[i] = row[step * (column + i)];
    to += run;
    count -= run;
    column = 0;
    for (std::size_t dim = last; dim-- > 0;) {  // the next row
      row += stride[dim];
      if (++index[dim] < plan.extent[dim]) break;
      row -= stride[dim] * plan.extent[dim];
      index[dim] = 0;
    }
  }
}

// Pieces of one operand, converted to the type that T is computed in.
template <typename T>
class OperandPieces {
 public:
  using A = Accumulate<T>;

  OperandPieces(const Broadcast& plan, int operand, const OperandArgument<T>& from)
      : plan_(plan), operand_(operand), from_(from), whole_(plan.is_whole(operand)), single_(plan.is_single(operand)) {
    const auto& stride = plan.stride[static_cast<std::size_t>(operand)];
    periodic_ = plan.dims == 2 && stride[0] == 0 && stride[1] == 1 && plan.inner() < long_inner;
    if (!periodic_ || from.data == nullptr) return;
    const std::int64_t inner = plan.inner();
    const std::int64_t all = piece_elements + inner;
    for (std::int64_t i = 0; i < inner; ++i) filled_[i] = from.at(i);
    for (std::int64_t done = inner; done < all; done *= 2) std::copy_n(filled_, std::min(done, all - done), filled_ + done);
  }
  OperandPieces(const OperandPieces&) = delete;
  OperandPieces& operator=(const OperandPieces&) = delete;

  // count is at most piece_elements, unless T needs no conversion and the piece is in one row of the innermost dim.
  ElementRun<A> piece(std::int64_t first, std::int64_t count) {
    if (from_.data == nullptr) return repeated(from_.number);
    if (whole_) return {widened_run(from_.data + first, count), false};
    if (single_) return repeated(from_.at(0));
    const std::int64_t inner = plan_.inner();
    if (periodic_) return {filled_ + first % inner, false};
    if (inner >= long_inner && first % inner + count <= inner) {
      const std::int64_t place = plan_.offset(operand_, first);
      const auto& stride = plan_.stride[static_cast<std::size_t>(operand_)];
      if (stride[static_cast<std::size_t>(plan_.dims - 1)] == 0) return repeated(from_.at(place));
      return {widened_run(from_.data + place, count), false};
    }
    copy_repeated(plan_, operand_, from_.data, first, count, gathered_);
    return {widened_run(gathered_, count), false};
  }

  // The same, but always as a run of `count` elements, at most piece_elements.
  const A* elements(std::int64_t first, std::int64_t count) {
    const ElementRun<A> run = piece(first, count);
    if (!run.repeated) return run.data;
    std::fill_n(filled_, count, *run.data);
    return filled_;
  }

 private:
  ElementRun<A> repeated(A element) {
    element_ = element;
    return {&element_, true};
  }
  const A* widened_run(const T* elements, std::int64_t count) {
    if constexpr (is_half<T>) {
      widen(elements, filled_, count);
      return filled_;
    } else {
      return elements;
    }
  }

  const Broadcast& plan_;
  int operand_;
  OperandArgument<T> from_;
  bool whole_;
  bool single_;
  bool periodic_ = false;  // a short row that repeats: filled_ has it so often that a piece can begin at any element
  A element_{};
  T gathered_[piece_elements];
  A filled_[piece_elements + long_inner];
};

// Calls body(first, count) for pieces of [begin, end), of at most `most` elements.
template <typename Body>
void for_broadcast_pieces(const Broadcast& plan, std::int64_t begin, std::int64_t end, std::int64_t most, const Body& body) {
  const std::int64_t inner = plan.inner();
  const bool by_rows = inner >= long_inner;
  while (begin < end) {
    std::int64_t count = std::min(end - begin, by_rows ? std::min(most, inner - begin % inner) : piece_elements);
    if (plan.dims == 1) count = std::min(end - begin, most);
    body(begin, count);
    begin += count;
  }
}

// The most elements of a piece: no limit if T needs no conversion.
template <typename T>
inline constexpr std::int64_t most_of_piece = is_half<T> ? piece_elements : INT64_MAX;

}  // namespace trireme::ops
