#include "ops/array/arranged_copy.hpp"

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "trireme/core/error.hpp"

namespace trireme::ops {
namespace {

using CopyDim = StridedCopy::Dim;

std::int64_t distance(std::int64_t stride) { return std::abs(stride); }

// Whether a step of `outer` is as long as all of `inner`, so that both can be merged into one dim.
bool follows(const CopyDim& outer, const CopyDim& inner) {
  return outer.from == inner.from * inner.extent && outer.to == inner.to * inner.extent && (outer.to == 0) == (inner.to == 0);
}

}  // namespace

void StridedCopy::add(const CopyDim& dim) {
  require(size < max_dims, "copy_strided: a box has at most {} dims", max_dims);
  require(dim.extent >= 0, "copy_strided: the extent of a dim is {}, but must not be below 0", dim.extent);
  dims[static_cast<std::size_t>(size++)] = dim;
}

StridedCopy StridedCopy::reversed() const {
  StridedCopy back = *this;
  std::swap(back.from, back.to);
  for (CopyDim& dim : back.dims) std::swap(dim.from, dim.to);
  return back;
}

ArrangedCopy arrange(const StridedCopy& box) {
  ArrangedCopy copy;
  copy.from = box.from;
  copy.to = box.to;
  std::array<CopyDim, StridedCopy::max_dims> dims{};
  int size = 0;
  for (int i = 0; i < box.size; ++i) {
    CopyDim dim = box.dims[static_cast<std::size_t>(i)];
    (dim.to == 0 ? copy.summed_count : copy.kept_count) *= dim.extent;
    if (dim.extent == 1) continue;
    if (dim.to < 0) {
      copy.from += (dim.extent - 1) * dim.from;
      copy.to += (dim.extent - 1) * dim.to;
      dim.from = -dim.from;
      dim.to = -dim.to;
    }
    dims[static_cast<std::size_t>(size++)] = dim;
  }
  std::stable_sort(dims.begin(), dims.begin() + size, [](const CopyDim& a, const CopyDim& b) {
    return std::tuple(a.to, distance(a.from)) > std::tuple(b.to, distance(b.from));
  });
  int count = 0;
  for (int i = 0; i < size; ++i) {
    const CopyDim& dim = dims[static_cast<std::size_t>(i)];
    if (count > 0 && follows(copy.dims[count - 1], dim)) {
      copy.dims[count - 1] = {.extent = copy.dims[count - 1].extent * dim.extent, .from = dim.from, .to = dim.to};
    } else {
      copy.dims[count++] = dim;
    }
  }
  copy.kept = static_cast<int>(std::count_if(copy.dims, copy.dims + count, [](const CopyDim& dim) { return dim.to != 0; }));
  copy.summed = count - copy.kept;
  return copy;
}

int take_words(ArrangedCopy& copy, int element_bytes, std::int64_t alignment) {
  if (copy.kept == 0) return element_bytes;
  CopyDim& last = copy.dims[copy.kept - 1];
  if (last.from != 1 || last.to != 1) return element_bytes;
  const auto fits = [&](std::int64_t elements) {
    return elements * element_bytes <= 16 && alignment % (elements * element_bytes) == 0 && last.extent % elements == 0 &&
           std::all_of(copy.dims, copy.dims + copy.kept - 1,
                       [&](const CopyDim& dim) { return dim.from % elements == 0 && dim.to % elements == 0; });
  };
  std::int64_t elements = 1;
  while (fits(2 * elements)) elements *= 2;
  if (elements == 1) return element_bytes;
  last.extent /= elements;
  copy.kept_count /= elements;
  for (int i = 0; i + 1 < copy.kept; ++i) {
    copy.dims[i].from /= elements;
    copy.dims[i].to /= elements;
  }
  if (last.extent == 1) --copy.kept;
  return element_bytes * static_cast<int>(elements);
}

int reading_dim(const ArrangedCopy& copy) {
  const int last = copy.kept - 1;
  int nearest = last;
  for (int i = last - 1; i >= 0; --i) {
    const std::int64_t from = distance(copy.dims[i].from);
    if (from != 0 && from < distance(copy.dims[nearest].from)) nearest = i;
  }
  return nearest == last ? -1 : nearest;
}

}  // namespace trireme::ops
