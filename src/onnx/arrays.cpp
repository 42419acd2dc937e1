#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "onnx/builder.hpp"
#include "trireme/ops/array/movement.hpp"

// Operations that reorder, sort, select or reduce elements.
namespace trireme::onnx::detail {
namespace {

std::int64_t from_front(std::int64_t dim, std::size_t count) { return dim < 0 ? dim + static_cast<std::int64_t>(count) : dim; }

void permute(Builder& b) {
  Numbers order = b.numbers("dims");
  for (std::int64_t& dim : order) dim = from_front(dim, order.size());
  b.set_result(b.transpose(b.operand(0), order));
}

void transpose(Builder& b) {
  const std::size_t count = b.dims(0).size();
  const Numbers swapped = b.numbers("dims");
  Numbers order(count);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<std::size_t>(from_front(swapped[0], count))],
            order[static_cast<std::size_t>(from_front(swapped[1], count))]);
  b.set_result(b.transpose(b.operand(0), order));
}

void expand(Builder& b) { b.set_result(b.node("Expand", {b.operand(0), b.extents(b.result_dims())})); }

void repeat(Builder& b) {
  const Dims from = b.dims(0), times = b.dynamic_numbers("times");
  Dims to(times.size() - from.size(), 1);
  to.insert(to.end(), from.begin(), from.end());
  b.set_result(b.node("Tile", {b.reshape(b.operand(0), from, to), b.extents(times)}));
}

void flip(Builder& b) {
  const Numbers dims = b.numbers("dims"), back(dims.size(), -1);
  const Numbers ends(dims.size(), std::numeric_limits<std::int64_t>::min());
  b.set_result(b.node("Slice", {b.operand(0), b.numbers_of(back), b.numbers_of(ends), b.numbers_of(dims), b.numbers_of(back)}));
}

// A place on a dim of this extent. If it depends on the extent, it is counted from the end where possible, by a negative
// number.
Dim from_end(const Dim& place, const Dim& extent) {
  if (place.is_constant()) return place;
  if (place == extent) return Slice::to_end;
  const Dim behind(place.first - extent.first, place.second - extent.second);
  return behind.is_constant() && behind.first < 0 ? behind : place;
}

std::string sliced(Builder& b, const std::string& x, const Dim& begin, const Dim& end, const Dim& step, std::int64_t dim) {
  const Dim extent = b.dims(0)[static_cast<std::size_t>(from_front(dim, b.dims(0).size()))];
  const bool reaches_all =
      end.is_constant() && end.first != Slice::to_end && end.first >= std::max(extent.first, extent.second);
  if (reaches_all && !extent.is_constant()) {
    b.refuse(
        fmt::format("ends at {}, beyond the extents of the example, {} and {}: it would be a part of larger extents, which has "
                    "no form here",
                    end.first, extent.first, extent.second));
  }
  return b.node("Slice", {x, b.extents({from_end(begin, extent)}), b.extents({from_end(end, extent)}), b.numbers_of({dim}),
                          b.numbers_of({b.fixed(step)})});
}

// Slices one dim, or the first ones.
void slice(Builder& b) {
  const std::string x = b.operand(0);
  if (b.has_setting("slice")) {
    const Dims slice = b.dynamic_numbers("slice");
    return b.set_result(sliced(b, x, slice[0], slice[1], slice[2], b.numbers("dim")[0]));
  }
  const Dims slices = b.dynamic_numbers("slices");
  std::string y = x;
  for (std::size_t i = 0; i + 2 < slices.size(); i += 3) {
    if (slices[i] == Dim(0) && slices[i + 1] == Dim(Slice::to_end) && slices[i + 2] == Dim(1)) continue;
    y = sliced(b, y, slices[i], slices[i + 1], slices[i + 2], static_cast<std::int64_t>(i / 3));
  }
  b.set_result(y);
}

// x with a box of it replaced by `source`: concatenates what lies before, in and behind the box on each dim that it does not
// fill.
std::string replaced(Builder& b, const std::string& x, const std::string& source, const Dims& slices, std::size_t dim) {
  if (3 * dim == slices.size()) return source;
  const Dim begin = slices[3 * dim], end = slices[3 * dim + 1];
  if (begin == Dim(0) && end == Dim(Slice::to_end)) return replaced(b, x, source, slices, dim + 1);
  const auto axis = static_cast<std::int64_t>(dim);
  std::vector<std::string> parts;
  if (begin != Dim(0)) parts.push_back(sliced(b, x, 0, begin, 1, axis));
  parts.push_back(replaced(b, sliced(b, x, begin, end, 1, axis), source, slices, dim + 1));
  if (end != Dim(Slice::to_end) && end != b.dims(0)[dim]) parts.push_back(sliced(b, x, end, Slice::to_end, 1, axis));
  return parts.size() == 1 ? parts[0] : b.node("Concat", parts, {{"axis", axis}});
}

// Whether a box is empty, such as one that ends before it begins.
bool is_empty(Builder& b, const Dims& slices) {
  const auto passes = [&](std::int64_t Dim::*pass) {
    for (std::size_t i = 0; 3 * i < slices.size(); ++i) {
      if (std::min(slices[3 * i + 1].*pass, b.dims(0)[i].*pass) <= slices[3 * i].*pass) return true;
    }
    return false;
  };
  const bool first = passes(&Dim::first);
  if (first != passes(&Dim::second)) b.refuse("replaces a part that is empty for some sizes alone");
  return first;
}

void slice_scatter(Builder& b) {
  Dims slices;
  if (b.has_setting("slices")) {
    slices = b.dynamic_numbers("slices");
  } else {
    const auto place = static_cast<std::size_t>(from_front(b.numbers("dim")[0], b.dims(0).size()));
    for (std::size_t i = 0; i < place; ++i) slices.insert(slices.end(), {Dim(0), Dim(Slice::to_end), Dim(1)});
    const Dims last = b.dynamic_numbers("slice");
    slices.insert(slices.end(), last.begin(), last.end());
  }
  for (std::size_t i = 0; i + 2 < slices.size(); i += 3) {
    if (slices[i + 2] != Dim(1) || slices[i].first < 0 || slices[i + 1].first < 0) {
      b.refuse("replaces a part with steps, or counted from the end, which has no form here");
    }
  }
  if (is_empty(b, slices)) return b.set_result(b.operand(0));
  b.set_result(replaced(b, b.operand(0), b.operand(1), slices, 0));
}

// Finds the dim by its extent and the product of the extents before it, which are settings.
std::int64_t gathered_dim(Builder& b, bool shared) {
  const Dims dims = b.dims(0);
  Dim outer(1);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    Dims result = shared ? dims : b.dims(1);
    if (shared) result[i] = b.dims(1)[0];
    if (outer == b.dynamic_whole("outer") && dims[i] == b.dynamic_whole("rows") && result == b.result_dims()) {
      return static_cast<std::int64_t>(i);
    }
    outer = {outer.first * dims[i].first, outer.second * dims[i].second};
  }
  b.refuse("has no dim of these sizes");
}

template <bool shared>
void gather(Builder& b) {
  b.set_result(b.node(shared ? "Gather" : "GatherElements", {b.operand(0), b.operand(1)}, {{"axis", gathered_dim(b, shared)}}));
}

void join(Builder& b) {
  std::vector<std::string> parts;
  const bool stacks = b.result_dims().size() > b.dims(0).size();
  const std::int64_t dim = from_front(b.whole("dim"), b.result_dims().size());
  for (std::size_t i = 0; i < b.num_operands(); ++i) {
    parts.push_back(stacks ? b.node("Unsqueeze", {b.operand(i), b.numbers_of({dim})}) : b.operand(i));
  }
  b.set_result(b.node("Concat", parts, {{"axis", dim}}));
}

// Elements that shift beyond the last place come in again at the first.
void roll(Builder& b) {
  const Numbers shifts = b.numbers("shifts"), dims = b.numbers("dims");
  const Dims extents = b.dims(0);
  std::string x = b.operand(0);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t dim = from_front(dims[i], extents.size());
    const Dim extent = extents[static_cast<std::size_t>(dim)];
    if (!extent.is_constant()) b.refuse("rolls a dim of dynamic extent");
    const std::int64_t by = (shifts[i] % extent.first + extent.first) % extent.first;
    if (by == 0) continue;
    const auto part = [&](std::int64_t begin, std::int64_t end) { return sliced(b, x, begin, end, 1, dim); };
    x = b.node("Concat", {part(extent.first - by, extent.first), part(0, extent.first - by)}, {{"axis", dim}});
  }
  b.set_result(x);
}

template <bool upper>
void take_triangle(Builder& b) {
  b.set_result(b.node("Trilu", {b.operand(0), b.numbers_of({b.whole("diagonal")}, true)}, {{"upper", std::int64_t{upper}}}));
}

void take_sorted(Builder& b) {
  const std::int64_t dim = from_front(b.whole("dim"), b.dims(0).size());
  const Dim chosen = b.result_dims()[static_cast<std::size_t>(dim)];
  const auto sorted =
      b.nodes("TopK", {b.operand(0), b.extents({chosen})}, 2, {{"axis", dim}, {"largest", b.whole("descending")}});
  b.set_result(sorted[0], 0);
  b.set_result(sorted[1], 1);
}

void cumsum(Builder& b) { b.set_result(b.node("CumSum", {b.operand(0), b.numbers_of({b.whole("dim")}, true)})); }

void pad(Builder& b) {
  static const std::string modes[] = {"constant", "reflect", "edge"};
  const Numbers amounts = b.numbers("amounts");  // before and behind, from the last dim on
  const std::size_t count = b.dims(0).size();
  Numbers pads(2 * count);
  for (std::size_t i = 0; i + 1 < amounts.size(); i += 2) {
    pads[count - 1 - i / 2] = amounts[i];
    pads[2 * count - 1 - i / 2] = amounts[i + 1];
  }
  const std::string& mode = modes[b.numbers("mode")[0]];
  const double value = b.has_setting("value") ? b.real("value") : 0;
  b.set_result(b.node("Pad", {b.operand(0), b.numbers_of(pads), b.number(value)}, {{"mode", mode}}));
}

Numbers reduced_dims(const Builder& b) {
  Numbers dims = b.numbers("dims");
  if (dims.empty()) {
    dims.resize(b.dims(0).size());
    std::iota(dims.begin(), dims.end(), 0);
  }
  return dims;
}
std::int64_t keeps_dims(const Builder& b) { return b.result_dims().size() == b.dims(0).size() ? 1 : 0; }

template <OperatorName op>
void reduce(Builder& b) {
  const Numbers dims = reduced_dims(b);
  const std::int64_t keeps = keeps_dims(b);
  if (std::string_view(op.text) == "ReduceSum") {  // the only one whose dims are an operand in this version
    return b.set_result(b.node(op.text, {b.operand(0), b.numbers_of(dims)}, {{"keepdims", keeps}}));
  }
  b.set_result(b.node(op.text, {b.operand(0)}, {{"axes", dims}, {"keepdims", keeps}}));
}

// The mean square of x - mean(x), times count / (count - correction).
template <bool root>
void variance(Builder& b) {
  const Numbers dims = reduced_dims(b);
  Dim count(1);
  for (const std::int64_t dim : dims) {
    const Dim extent = b.dims(0)[static_cast<std::size_t>(from_front(dim, b.dims(0).size()))];
    count = {count.first * extent.first, count.second * extent.second};
  }
  if (!count.is_constant()) b.refuse("takes the variance of a dynamic number of elements");
  const std::string mean = b.node("ReduceMean", {b.operand(0)}, {{"axes", dims}, {"keepdims", std::int64_t{1}}});
  const std::string rest = b.node("Sub", {b.operand(0), mean});
  std::string y = b.node("ReduceMean", {b.node("Mul", {rest, rest})}, {{"axes", dims}, {"keepdims", keeps_dims(b)}});
  const double elements = static_cast<double>(count.first), counted = std::max(0.0, elements - b.real("correction"));
  if (counted != elements) y = b.node("Mul", {y, b.number(elements / counted)});
  b.set_result(root ? b.node("Sqrt", {y}) : y);
}

void norm(Builder& b) {
  const double p = b.real("p");
  std::string x = b.operand(0);
  if (std::isinf(p)) x = b.node("Abs", {x});
  const std::string_view op = p == 1 ? "ReduceL1" : p == 2 ? "ReduceL2" : "ReduceMax";
  b.set_result(b.node(op, {x}, {{"axes", reduced_dims(b)}, {"keepdims", keeps_dims(b)}}));
}

template <OperatorName extreme, OperatorName index>
void extreme_with_index(Builder& b) {
  const std::int64_t dim = b.whole("dim"), keeps = keeps_dims(b);
  b.set_result(b.node(extreme.text, {b.operand(0)}, {{"axes", Numbers{dim}}, {"keepdims", keeps}}));
  b.set_result(b.node(index.text, {b.operand(0)}, {{"axis", dim}, {"keepdims", keeps}}), 1);
}

}  // namespace

void add_arrays(Emitters& to) {
  to["permute"] = permute;
  to["transpose"] = transpose;
  to["expand"] = expand;
  to["repeat"] = repeat;
  to["flip"] = flip;
  for (const std::string_view name : {"slice", "narrow", "split", "chunk"}) to[name] = slice;
  to["slice_scatter"] = slice_scatter;
  to["index_select"] = gather<true>;
  to["gather"] = gather<false>;
  to["cat"] = join;
  to["stack"] = join;
  to["pad"] = pad;
  to["roll"] = roll;
  to["triu"] = take_triangle<true>;
  to["tril"] = take_triangle<false>;
  to["topk"] = take_sorted;
  to["sort"] = take_sorted;
  to["cumsum"] = cumsum;
  to["sum"] = reduce<"ReduceSum">;
  to["mean"] = reduce<"ReduceMean">;
  to["prod"] = reduce<"ReduceProd">;
  to["max"] = reduce<"ReduceMax">;
  to["min"] = reduce<"ReduceMin">;
  to["var"] = variance<false>;
  to["stddev"] = variance<true>;
  to["norm"] = norm;
  to["max_with_index"] = extreme_with_index<"ReduceMax", "ArgMax">;
  to["min_with_index"] = extreme_with_index<"ReduceMin", "ArgMin">;
  to["logsumexp"] = reduce<"ReduceLogSumExp">;
}

}  // namespace trireme::onnx::detail
