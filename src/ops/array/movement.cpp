#include "trireme/ops/array/movement.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "ops/array/dims.hpp"
#include "trireme/core/error.hpp"
#include "trireme/ops/array/transpose.hpp"

namespace trireme::ops {
namespace {

std::vector<std::int64_t> as_setting(const std::vector<int>& dims) { return {dims.begin(), dims.end()}; }

// Marks the dims that are named. Throws if one is named twice.
std::array<bool, Shape::max_dims> named_dims(std::string_view op, const Shape& x, const std::vector<int>& dims) {
  std::array<bool, Shape::max_dims> named{};
  for (const int dim : dims) {
    bool& mark = named[static_cast<std::size_t>(dim_of(op, x, dim))];
    require(!mark, "{}: dim {} is named twice", op, dim);
    mark = true;
  }
  return named;
}

// A part of a dim that one copy moves.
struct DimPart {
  std::int64_t to = 0;
  std::int64_t extent = 0;
  std::int64_t from = 0;
  std::int64_t step = 1;  // in x
};

// A copy for each combination of one part of each dim. The first copy is that of all first parts.
std::vector<StridedCopy> copies_of(const Shape& x, const Shape& y, const std::vector<std::vector<DimPart>>& parts) {
  const DimStrides from = strides_of(x);
  const DimStrides to = strides_of(y);
  std::vector<StridedCopy> copies(1);
  for (std::size_t dim = 0; dim < parts.size(); ++dim) {
    std::vector<StridedCopy> longer;
    for (const DimPart& part : parts[dim]) {
      for (StridedCopy copy : copies) {
        copy.from += part.from * from[dim];
        copy.to += part.to * to[dim];
        copy.add({.extent = part.extent, .from = part.step * from[dim], .to = to[dim]});
        longer.push_back(copy);
      }
    }
    copies = std::move(longer);
  }
  return copies;
}

// The parts of a padded dim: first the elements of x, then the padding.
std::vector<DimPart> padded_parts(std::int64_t extent, std::int64_t before, std::int64_t after, PadMode mode) {
  const std::int64_t cut_before = std::max<std::int64_t>(-before, 0);
  const std::int64_t inside = extent - cut_before - std::max<std::int64_t>(-after, 0);
  std::vector<DimPart> parts{{.to = std::max<std::int64_t>(before, 0), .extent = inside, .from = cut_before}};
  if (mode == PadMode::constant) return parts;
  const std::int64_t step = mode == PadMode::reflect ? -1 : 0;
  if (before > 0) parts.push_back({.to = 0, .extent = before, .from = step == 0 ? 0 : before, .step = step});
  if (after > 0) parts.push_back({.to = before + extent, .extent = after, .from = extent - 1 + step, .step = step});
  return parts;
}

std::int64_t padded_extent(const Shape& x, int dim, std::int64_t before, std::int64_t after, PadMode mode) {
  const std::int64_t extent = x[dim];
  constexpr std::int64_t most = std::int64_t{1} << 53;
  require(std::max(before, after) <= most && std::min(before, after) >= -most, "pad: {} and {} are too many elements", before,
          after);
  switch (mode) {
    case PadMode::constant:
      require(extent + std::min<std::int64_t>(before, 0) + std::min<std::int64_t>(after, 0) >= 0,
              "pad: {} and {} take more from dim {} of x {} than it has", before, after, dim, x);
      break;
    case PadMode::reflect:
      require(before >= 0 && after >= 0 && ((before == 0 && after == 0) || std::max(before, after) < extent),
              "pad: dim {} of x {} can't be reflected by {} and {}: amounts lie in [0, {})", dim, x, before, after, extent);
      break;
    case PadMode::replicate:
      require(before >= 0 && after >= 0 && ((before == 0 && after == 0) || extent > 0),
              "pad: dim {} of x {} can't be replicated by {} and {}: amounts are 0 or more, of a dim that has elements", dim, x,
              before, after);
      break;
  }
  return extent + before + after;
}

}  // namespace

int dim_of(std::string_view op, const Shape& x, int dim) {
  const int place = dim < 0 ? dim + x.size() : dim;
  require(place >= 0 && place < x.size(), "{}: x {} has no dim {}", op, x, dim);
  return place;
}

Movement permuted(const Shape& x, const std::vector<int>& dims) {
  require(std::ssize(dims) == x.size(), "permute: x {} has {} dims, but {} are named", x, x.size(), dims.size());
  named_dims("permute", x, dims);
  DimExtents extents = extents_of(x);
  DimStrides from{};
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const int dim = dim_of("permute", x, dims[i]);
    extents[i] = x[dim];
    from[i] = strides_of(x)[static_cast<std::size_t>(dim)];
  }
  Movement movement{.name = "permute", .from = x, .to = shape_of(extents, x.size()), .copies = {{}}, .whole = 1};
  const DimStrides to = strides_of(movement.to);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    movement.copies[0].add({.extent = extents[i], .from = from[i], .to = to[i]});
  }
  movement.settings = {{"dims", as_setting(dims)}};
  return movement;
}

Movement transposed(const Shape& x, int first, int second) {
  std::vector<int> dims(static_cast<std::size_t>(x.size()));
  std::iota(dims.begin(), dims.end(), 0);
  std::swap(dims[static_cast<std::size_t>(dim_of("transpose", x, first))],
            dims[static_cast<std::size_t>(dim_of("transpose", x, second))]);
  Movement movement = permuted(x, dims);
  movement.name = "transpose";
  movement.settings = {{"dims", {first, second}}};
  return movement;
}

Shape transposed_shape(const Shape& shape, int first, int second) { return transposed(shape, first, second).to; }

Movement expanded(const Shape& x, const Shape& y) {
  require(y.size() >= x.size(), "expand: {} has fewer dims than x {}", y, x);
  Movement movement{.name = "expand", .from = x, .to = y, .copies = {{}}, .whole = 1};
  const DimStrides from = strides_of(x);
  const DimStrides to = strides_of(y);
  const int more = y.size() - x.size();
  for (int dim = 0; dim < y.size(); ++dim) {
    const std::int64_t extent = dim < more ? 1 : x[dim - more];
    require(extent == 1 || extent == y[dim], "expand: x {} can't become {}: only dims of one element are repeated", x, y);
    const bool repeats = extent != y[dim] || dim < more;
    movement.copies[0].add({.extent = y[dim],
                            .from = repeats ? 0 : from[static_cast<std::size_t>(dim - more)],
                            .to = to[static_cast<std::size_t>(dim)]});
  }
  movement.settings = {{"shape", {y.dims().begin(), y.dims().end()}}};
  return movement;
}

Movement repeated(const Shape& x, const std::vector<std::int64_t>& times) {
  require(std::ssize(times) >= x.size() && std::ssize(times) <= Shape::max_dims,
          "repeat: x {} needs a number for each of its dims, up to {}, but {} are given", x, Shape::max_dims, times.size());
  const auto size = static_cast<int>(times.size());
  const int more = size - x.size();
  DimExtents extents{};
  for (int dim = 0; dim < size; ++dim) {
    const std::int64_t number = times[static_cast<std::size_t>(dim)];
    require(number >= 0, "repeat: {} times is below 0", number);
    const bool fits = !__builtin_mul_overflow(number, dim < more ? 1 : x[dim - more], &extents[static_cast<std::size_t>(dim)]);
    require(fits, "repeat: x {} repeated {} times has more than 2^63 elements", x, number);
  }
  Movement movement{.name = "repeat", .from = x, .to = shape_of(extents, size), .copies = {{}}, .whole = 1};
  const DimStrides from = strides_of(x);
  const DimStrides to = strides_of(movement.to);
  for (int dim = 0; dim < size; ++dim) {
    const auto i = static_cast<std::size_t>(dim);
    const std::int64_t extent = dim < more ? 1 : x[dim - more];
    movement.copies[0].add({.extent = times[i], .from = 0, .to = extent * to[i]});
    if (dim >= more)
      movement.copies[0].add({.extent = extent, .from = from[static_cast<std::size_t>(dim - more)], .to = to[i]});
  }
  movement.settings = {{"times", times}};
  return movement;
}

Movement rolled(const Shape& x, const std::vector<std::int64_t>& shifts, const std::vector<int>& dims) {
  require(shifts.size() == dims.size(), "roll: {} shifts, but {} dims", shifts.size(), dims.size());
  DimExtents shift{};
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const int dim = dim_of("roll", x, dims[i]);
    std::int64_t& of_dim = shift[static_cast<std::size_t>(dim)];
    if (x[dim] > 0) of_dim = ((of_dim + shifts[i] % x[dim]) % x[dim] + x[dim]) % x[dim];
  }
  std::vector<std::vector<DimPart>> parts;
  for (int dim = 0; dim < x.size(); ++dim) {
    const std::int64_t by = shift[static_cast<std::size_t>(dim)];
    parts.push_back({{.to = by, .extent = x[dim] - by, .from = 0}});
    if (by > 0) parts.back().push_back({.to = 0, .extent = by, .from = x[dim] - by});
  }
  Movement movement{.name = "roll", .from = x, .to = x, .copies = copies_of(x, x, parts)};
  movement.whole = movement.copies.size();
  movement.settings = {{"shifts", shifts}, {"dims", as_setting(dims)}};
  return movement;
}

Movement flipped(const Shape& x, const std::vector<int>& dims) {
  const auto named = named_dims("flip", x, dims);
  std::vector<std::vector<DimPart>> parts;
  for (int dim = 0; dim < x.size(); ++dim) {
    const bool flips = named[static_cast<std::size_t>(dim)];
    parts.push_back({{.to = 0, .extent = x[dim], .from = flips ? x[dim] - 1 : 0, .step = flips ? -1 : 1}});
  }
  return {.name = "flip",
          .from = x,
          .to = x,
          .copies = copies_of(x, x, parts),
          .whole = 1,
          .settings = {{"dims", as_setting(dims)}}};
}

// Windows may overlap, so each copy takes one window, or one place of all windows: either way it reads no element twice.
Movement unfolded(const Shape& x, int dim, std::int64_t size, std::int64_t step) {
  const auto place = static_cast<std::size_t>(dim_of("unfold", x, dim));
  require(x.size() < Shape::max_dims, "unfold: x {} has {} dims, which is the most", x, Shape::max_dims);
  const std::int64_t extent = x[static_cast<int>(place)];
  require(size > 0 && size <= extent && step > 0, "unfold: windows of size {} and step {} do not fit dim {} of x {}", size,
          step, dim, x);
  const std::int64_t count = (extent - size) / step + 1;
  DimExtents extents = extents_of(x);
  extents[place] = count;
  extents[static_cast<std::size_t>(x.size())] = size;
  Movement movement{.name = "unfold", .from = x, .to = shape_of(extents, x.size() + 1)};
  const DimStrides from = strides_of(x), to = strides_of(movement.to);
  const bool by_window = count <= size;
  for (std::int64_t i = 0; i < (by_window ? count : size); ++i) {
    StridedCopy copy;
    copy.from = i * (by_window ? step : 1) * from[place];
    copy.to = by_window ? i * to[place] : i;
    for (std::size_t other = 0; other < static_cast<std::size_t>(x.size()); ++other) {
      if (other != place) {
        copy.add({.extent = extents[other], .from = from[other], .to = to[other]});
      } else if (by_window) {
        copy.add({.extent = size, .from = from[place], .to = 1});
      } else {
        copy.add({.extent = count, .from = step * from[place], .to = to[place]});
      }
    }
    movement.copies.push_back(copy);
  }
  if (step == size && count * size == extent) movement.whole = movement.copies.size();
  movement.settings = {{"dim", {dim}}, {"size", {size}}, {"step", {step}}};
  return movement;
}

Movement padded(const Shape& x, const std::vector<std::int64_t>& amounts, const PadOptions& options) {
  require(amounts.size() % 2 == 0 && std::ssize(amounts) <= 2 * x.size(),
          "pad: {} amounts for x {}: a pair for each dim, the last dim first", amounts.size(), x);
  DimExtents extents = extents_of(x);
  std::vector<std::vector<DimPart>> parts;
  bool cuts = false;
  for (int dim = 0; dim < x.size(); ++dim) {
    const auto pair = static_cast<std::size_t>(x.size() - 1 - dim);
    const std::int64_t before = 2 * pair < amounts.size() ? amounts[2 * pair] : 0;
    const std::int64_t after = 2 * pair < amounts.size() ? amounts[2 * pair + 1] : 0;
    extents[static_cast<std::size_t>(dim)] = padded_extent(x, dim, before, after, options.mode);
    parts.push_back(padded_parts(x[dim], before, after, options.mode));
    cuts = cuts || before < 0 || after < 0;
  }
  const Shape to = shape_of(extents, x.size());
  return {.name = "pad",
          .from = x,
          .to = to,
          .copies = copies_of(x, to, parts),
          .whole = cuts ? 0u : 1u,
          .fills = options.mode != PadMode::constant,
          .rest = options.value,
          .settings = {{"amounts", amounts}, {"mode", {static_cast<std::int64_t>(options.mode)}}}};
}

std::pair<std::int64_t, std::int64_t> slice_of(std::string_view op, std::int64_t extent, const Slice& slice) {
  require(slice.step > 0, "{}: step {} is below 1; flip() reverses a dim", op, slice.step);
  const auto place = [&](std::int64_t index) {
    return std::clamp<std::int64_t>(index < 0 ? index + extent : index, 0, extent);
  };
  const std::int64_t begin = place(slice.begin);
  const std::int64_t length = std::max<std::int64_t>(place(slice.end) - begin, 0);
  return {begin, length / slice.step + (length % slice.step != 0 ? 1 : 0)};
}

Movement sliced(std::string_view name, const Shape& x, const std::vector<Slice>& slices) {
  require(std::ssize(slices) <= x.size(), "{}: {} slices are more than the dims of x {}", name, slices.size(), x);
  DimExtents extents = extents_of(x);
  std::vector<std::vector<DimPart>> parts;
  Movement movement{.name = name, .from = x, .to = x};
  std::vector<std::int64_t> setting;  // begin, end and step of each
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.size()); ++i) {
    const Slice slice = i < slices.size() ? slices[i] : Slice{};
    const auto [first, count] = slice_of(name, extents[i], slice);
    parts.push_back({{.to = 0, .extent = count, .from = first, .step = slice.step}});
    extents[i] = count;
    if (i < slices.size()) setting.insert(setting.end(), {slice.begin, slice.end, slice.step});
  }
  movement.settings = {{"slices", std::move(setting)}};
  movement.to = shape_of(extents, x.size());
  movement.copies = copies_of(x, movement.to, parts);
  return movement;
}

Movement sliced(std::string_view name, const Shape& x, int dim, const Slice& slice) {
  const int place = dim_of(name, x, dim);
  slice_of(name, x[place], slice);
  std::vector<Slice> slices(static_cast<std::size_t>(place));
  slices.push_back(slice);
  Movement movement = sliced(name, x, slices);
  movement.settings = {{"dim", {dim}}, {"slice", {slice.begin, slice.end, slice.step}}};
  return movement;
}

void require_part(const Movement& part, const Shape& source) {
  require(source == part.to, "{}: source {} needs the shape {}", part.name, source, part.to);
}

Slice narrowed(const Shape& x, int dim, std::int64_t start, std::int64_t length) {
  const std::int64_t extent = x[dim_of("narrow", x, dim)];
  const std::int64_t begin = start < 0 ? start + extent : start;
  require(begin >= 0 && begin <= extent && length >= 0 && length <= extent - begin,
          "narrow: {} elements from {} on lie outside dim {} of x {}", length, start, dim, x);
  return {begin, begin + length};
}

std::vector<std::int64_t> split_sizes(std::int64_t extent, std::int64_t size) {
  require(size > 0 || (size == 0 && extent == 0), "split: the size is {}, but must be above 0 for a dim of {} elements", size,
          extent);
  if (extent == 0) return {0};
  std::vector<std::int64_t> sizes(static_cast<std::size_t>((extent - 1) / size), size);
  sizes.push_back(extent - size * std::ssize(sizes));
  return sizes;
}

std::vector<std::int64_t> chunk_sizes(std::int64_t extent, std::int64_t count) {
  require(count > 0, "chunk: there are {} parts, but must be at least 1", count);
  if (extent == 0) return std::vector<std::int64_t>(static_cast<std::size_t>(count), 0);
  return split_sizes(extent, (extent - 1) / count + 1);
}

void require_sizes(std::int64_t extent, const std::vector<std::int64_t>& sizes) {
  std::int64_t rest = extent;
  for (const std::int64_t size : sizes) {
    require(size >= 0, "split: a size is {}, but must not be below 0", size);
    require(size <= rest, "split: the sizes add up to more than the {} elements of the dim", extent);
    rest -= size;
  }
  require(rest == 0, "split: the sizes add up to {}, but the dim has {} elements", extent - rest, extent);
}

Shape squeezed_shape(const Shape& x) {
  std::vector<std::int64_t> dims(x.dims().begin(), x.dims().end());
  std::erase(dims, 1);
  return Shape(dims);
}

Shape squeezed_shape(const Shape& x, int dim) {
  const int place = dim_of("squeeze", x, dim);
  if (x[place] != 1) return x;
  std::vector<std::int64_t> dims(x.dims().begin(), x.dims().end());
  dims.erase(dims.begin() + place);
  return Shape(dims);
}

Shape unsqueezed_shape(const Shape& x, int dim) {
  const int place = dim < 0 ? dim + x.size() + 1 : dim;
  require(place >= 0 && place <= x.size(), "unsqueeze: x {} has no place {} for a dim", x, dim);
  require(x.size() < Shape::max_dims, "unsqueeze: x {} has {} dims, which is the most", x, Shape::max_dims);
  std::vector<std::int64_t> dims(x.dims().begin(), x.dims().end());
  dims.insert(dims.begin() + place, 1);
  return Shape(dims);
}

Shape flattened_shape(const Shape& x, int start_dim, int end_dim) {
  if (x.size() == 0) {
    require((start_dim == 0 || start_dim == -1) && (end_dim == 0 || end_dim == -1),
            "flatten: a scalar has no dims from {} to {}", start_dim, end_dim);
    return {1};
  }
  const int first = dim_of("flatten", x, start_dim);
  const int last = dim_of("flatten", x, end_dim);
  require(first <= last, "flatten: start_dim {} is after end_dim {} of x {}", start_dim, end_dim, x);
  std::vector<std::int64_t> dims(x.dims().begin(), x.dims().end());
  std::int64_t together = 1;
  for (int dim = first; dim <= last; ++dim) together *= x[dim];
  dims.erase(dims.begin() + first + 1, dims.begin() + last + 1);
  dims[static_cast<std::size_t>(first)] = together;
  return Shape(dims);
}

}  // namespace trireme::ops
