#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "onnx/builder.hpp"
#include "trireme/core/error.hpp"

// Functions of Builder for constants, settings, extents and shapes.
namespace trireme::onnx::detail {
namespace {

template <typename T>
const T& setting(const TracedOperation& operation, std::string_view name) {
  const auto found = operation.attributes.find(std::string(name));
  const T* value = found == operation.attributes.end() ? nullptr : std::get_if<T>(&found->second);
  require(value != nullptr, "{} has no setting {} of this kind", operation.name, name);
  return *value;
}

template <typename T>
std::vector<std::byte> in_bytes(std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

bool Builder::has_setting(std::string_view name) const {
  const bool has = operation().attributes.contains(std::string(name));
  if (operation_of_second().attributes.contains(std::string(name)) != has) refuse_setting(name);
  return has;
}

void Builder::refuse_setting(std::string_view name) const {
  refuse(fmt::format("has a setting {} that follows from the inputs' sizes or elements", name));
}

template <typename T>
const T& Builder::same_setting(std::string_view name) const {
  const T &a = setting<T>(operation(), name), &b = setting<T>(operation_of_second(), name);
  const bool both_nan = a != a && b != b;
  if (a != b && !both_nan) refuse_setting(name);
  return a;
}

std::int64_t Builder::whole(std::string_view name) const { return same_setting<std::int64_t>(name); }
double Builder::real(std::string_view name) const { return same_setting<double>(name); }
std::string Builder::text(std::string_view name) const { return same_setting<std::string>(name); }
Numbers Builder::numbers(std::string_view name) const { return same_setting<Numbers>(name); }
Dim Builder::dynamic_whole(std::string_view name) const {
  return {setting<std::int64_t>(operation(), name), setting<std::int64_t>(operation_of_second(), name)};
}
std::int64_t Builder::fixed(const Dim& dim) const {
  if (!dim.is_constant()) refuse("has a dynamic extent where the graph needs a number");
  return dim.first;
}

Dims Builder::dynamic_numbers(std::string_view name) const {
  const Numbers &first = setting<Numbers>(operation(), name), &second = setting<Numbers>(operation_of_second(), name);
  require(first.size() == second.size(), "{}: {} differs in its size", operation().name, name);
  Dims both;
  for (std::size_t i = 0; i < first.size(); ++i) both.emplace_back(first[i], second[i]);
  return both;
}

std::string Builder::add_constant(Type type, const std::vector<std::int64_t>& dims, std::vector<std::byte> bytes) {
  const std::string key = fmt::format("constant {} {} {}", static_cast<int>(type), key_of({dims.begin(), dims.end()}),
                                      std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  return once(key, [&] {
    const auto size = static_cast<std::int64_t>(bytes.size());
    graph_.initializers.push_back(
        {.name = fresh("constant"), .type = type, .dims = dims, .bytes = std::move(bytes), .read = {}, .num_bytes = size});
    return graph_.initializers.back().name;
  });
}

std::string Builder::number(double value) {
  const auto rounded = static_cast<float>(value);
  return add_constant(Type::float32, {}, in_bytes(std::span(&rounded, 1)));
}

std::string Builder::floats(std::span<const float> values) {
  return add_constant(Type::float32, {std::ssize(values)}, in_bytes(values));
}

std::string Builder::numbers_of(const Numbers& values, bool scalar) {
  const Numbers dims = scalar ? Numbers{} : Numbers{std::ssize(values)};
  return add_constant(Type::int64, dims, in_bytes(std::span<const std::int64_t>(values)));
}

std::string Builder::extent_of_operand(const Dim& dim) {
  if (at_ == first_.operations.size()) return {};
  for (const Use& use : operation().operands) {
    if (use.value < 0) continue;
    const auto value = static_cast<std::size_t>(use.value);
    const TracedValue &first = first_.values[value], &second = second_.values[value];
    if (first.kind == TracedValue::Kind::constant) continue;
    for (int i = 0; i < first.shape.size(); ++i) {
      if (dim != Dim(first.shape[i], second.shape[i])) continue;
      return node("Shape", {name_of_value(use.value)}, {{"start", std::int64_t{i}}, {"end", std::int64_t{i} + 1}});
    }
  }
  return {};
}

// A dynamic extent is an input's, a multiple of a product of inputs' extents, or an operand's.
std::string Builder::extent_of_one(const Dim& dim) {
  return once("extent " + key_of({dim}), [&] {
    const std::size_t count = first_.dynamic.size();
    for (std::size_t chosen = 1; chosen < std::size_t{1} << count; ++chosen) {
      Dim product(1);
      std::vector<Dim> factors;
      for (std::size_t k = 0; k < count; ++k) {
        if ((chosen >> k & 1) == 0) continue;
        factors.emplace_back(first_.dynamic[k].second, second_.dynamic[k].second);
        product = {product.first * factors.back().first, product.second * factors.back().second};
      }
      if (dim.first % product.first != 0 || dim.second % product.second != 0) continue;
      const std::int64_t times = dim.first / product.first;
      if (times != dim.second / product.second || (times == 1 && factors.size() == 1)) continue;
      std::string name = extent_of_one(factors[0]);
      for (std::size_t k = 1; k < factors.size(); ++k) name = node("Mul", {name, extent_of_one(factors[k])});
      return times == 1 ? name : node("Mul", {name, numbers_of({times})});
    }
    const std::string of_operand = extent_of_operand(dim);
    if (!of_operand.empty()) return of_operand;
    refuse(fmt::format(
        "has an extent that is {} in one pass and {} in the other, which is none of its operands' and no multiple of "
        "the inputs' dynamic extents",
        dim.first, dim.second));
  });
}

std::string Builder::extents(const Dims& dims) {
  const bool is_constant = std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is_constant(); });
  if (is_constant) {
    Numbers numbers;
    for (const Dim& dim : dims) numbers.push_back(dim.first);
    return numbers_of(numbers);
  }
  return once("extents " + key_of(dims), [&] {
    std::vector<std::string> parts;
    for (const Dim& dim : dims) parts.push_back(dim.is_constant() ? numbers_of({dim.first}) : extent_of_one(dim));
    return parts.size() == 1 ? parts[0] : node("Concat", parts, {{"axis", std::int64_t{0}}});
  });
}

std::string Builder::extent(const Dim& dim) {
  if (dim.is_constant()) return numbers_of({dim.first}, true);
  return once("scalar extent " + key_of({dim}), [&] { return node("Squeeze", {extent_of_one(dim), numbers_of({0})}); });
}

std::string Builder::positions(const Dim& count, std::int64_t first) {
  return once(fmt::format("positions {} {}", first, key_of({count})), [&] {
    std::string end = extent(count);
    if (first != 0) end = node("Add", {end, numbers_of({first}, true)});
    return node("Range", {numbers_of({first}, true), end, numbers_of({1}, true)});
  });
}

std::string Builder::cast(const std::string& x, Type to) { return node("Cast", {x}, {{"to", to}}); }

// If x is a Transpose's result and `order` undoes it, returns its operand.
std::string Builder::transpose(const std::string& x, const Numbers& order) {
  const auto made_by = orders_.find(x);
  if (made_by != orders_.end()) {
    bool is_back = made_by->second.size() == order.size();
    for (std::size_t i = 0; is_back && i < order.size(); ++i) {
      is_back = made_by->second[static_cast<std::size_t>(order[i])] == static_cast<std::int64_t>(i);
    }
    if (is_back) return inner_[x];
  }
  std::string result = node("Transpose", {x}, {{"perm", order}});
  orders_[result] = order;
  inner_[result] = x;
  return result;
}

// In ONNX, 0 stands for the extent of x at this place, and -1 for the one extent that remains.
std::string Builder::reshape(const std::string& x, const Dims& from, const Dims& to) {
  if (from == to) return x;
  Numbers numbers;
  std::size_t left = 0;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const bool is_kept = !to[i].is_constant() && i < from.size() && from[i] == to[i];
    numbers.push_back(to[i].is_constant() ? to[i].first : is_kept ? 0 : -1);
    if (numbers.back() < 0) ++left;
  }
  return node("Reshape", {x, left < 2 ? numbers_of(numbers) : extents(to)});
}

}  // namespace trireme::onnx::detail
