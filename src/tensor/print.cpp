#include "trireme/tensor/print.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <ostream>
#include <utility>
#include <vector>

#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/core/float8.hpp"

namespace trireme::detail {
namespace {

constexpr std::int64_t most_elements = 1000;
constexpr std::int64_t edge = 3;  // elements before and after "..."
constexpr std::size_t line_width = 80;
constexpr int most_digits = 8;  // after the point

// The indices of a dim that are shown; -1 stands for the omitted ones.
std::vector<std::int64_t> shown_indices(std::int64_t dim, bool abbreviated) {
  std::vector<std::int64_t> indices;
  for (std::int64_t index = 0; index < dim; ++index) {
    if (abbreviated && dim > 2 * edge && index == edge) {
      indices.push_back(-1);
      index = dim - edge;
    }
    indices.push_back(index);
  }
  return indices;
}

// The shortest decimal number that reads back as this element: the number of digits after the first one, and the power of ten.
struct Decimal {
  int digits = 0;
  int exponent = 0;
};

template <typename T>
Decimal shortest_decimal(T element) {
  char text[64];
  std::to_chars_result end{};
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    end = std::to_chars(text, text + sizeof(text), element, std::chars_format::scientific);
  } else {
    for (int digits = 0; digits <= most_digits; ++digits) {
      end = std::to_chars(text, text + sizeof(text), static_cast<float>(element), std::chars_format::scientific, digits);
      float read = 0;
      std::from_chars(text, end.ptr, read);
      if (static_cast<float>(T(read)) == static_cast<float>(element)) break;
    }
  }
  const std::string_view number(text, static_cast<std::size_t>(end.ptr - text));
  const auto point = number.find('.');
  const auto power = number.find('e');
  Decimal decimal;
  if (point != std::string_view::npos) decimal.digits = static_cast<int>(power - point - 1);
  const std::string_view exponent = number.substr(power + (number[power + 1] == '+' ? 2 : 1));
  std::from_chars(exponent.data(), exponent.data() + exponent.size(), decimal.exponent);
  return decimal;
}

// Formats elements with aligned points, as in [1. 2.5], or all with a power of ten.
template <typename T>
std::vector<std::string> texts_of_floats(const std::vector<T>& elements) {
  double largest = 0;
  double smallest = std::numeric_limits<double>::infinity();
  int digits = 0;
  for (const T element : elements) {
    const double magnitude = std::abs(static_cast<double>(element));
    if (!std::isfinite(magnitude) || magnitude == 0) continue;
    largest = std::max(largest, magnitude);
    smallest = std::min(smallest, magnitude);
    digits = std::max(digits, shortest_decimal(element).digits);
  }
  const bool scientific = largest >= 1e8 || (largest > 0 && (smallest < 1e-4 || largest / smallest > 1000));
  std::vector<std::string> texts;
  std::size_t widest_fraction = 0;
  for (const T element : elements) {
    const auto value = static_cast<double>(element);
    if (!std::isfinite(value)) {
      texts.push_back(fmt::format("{}", value));
    } else if (scientific) {
      texts.push_back(fmt::format("{:.{}e}", value, std::min(digits, most_digits)));
    } else {
      const Decimal decimal = value == 0 ? Decimal() : shortest_decimal(element);
      texts.push_back(fmt::format("{:#.{}f}", value, std::clamp(decimal.digits - decimal.exponent, 0, most_digits)));
      std::string& text = texts.back();
      while (text.back() == '0') text.pop_back();
      widest_fraction = std::max(widest_fraction, text.size() - text.find('.'));
    }
  }
  if (scientific) return texts;
  for (std::string& text : texts) {
    const auto point = text.find('.');
    if (point != std::string::npos) text.append(widest_fraction - (text.size() - point), ' ');
  }
  return texts;
}

template <typename T>
std::vector<std::string> texts_of(const std::vector<T>& elements) {
  if constexpr (std::is_integral_v<T>) {
    std::vector<std::string> texts;
    for (const T element : elements) texts.push_back(fmt::format("{}", element));
    return texts;
  } else {
    return texts_of_floats(elements);
  }
}

template <typename T>
std::vector<std::string> texts_at(const void* data, const std::vector<std::int64_t>& places) {
  std::vector<T> elements;
  for (const std::int64_t place : places) elements.push_back(static_cast<const T*>(data)[place]);
  return texts_of(elements);
}

std::vector<std::string> texts_at(DType dtype, const void* data, const std::vector<std::int64_t>& places) {
  switch (dtype) {
    case DType::boolean: return texts_at<bool>(data, places);
    case DType::uint8: return texts_at<std::uint8_t>(data, places);
    case DType::int8: return texts_at<std::int8_t>(data, places);
    case DType::uint16: return texts_at<std::uint16_t>(data, places);
    case DType::int16: return texts_at<std::int16_t>(data, places);
    case DType::uint32: return texts_at<std::uint32_t>(data, places);
    case DType::int32: return texts_at<std::int32_t>(data, places);
    case DType::uint64: return texts_at<std::uint64_t>(data, places);
    case DType::int64: return texts_at<std::int64_t>(data, places);
    case DType::float8_e4m3: return texts_at<float8_e4m3>(data, places);
    case DType::float8_e5m2: return texts_at<float8_e5m2>(data, places);
    case DType::float16: return texts_at<float16>(data, places);
    case DType::bfloat16: return texts_at<bfloat16>(data, places);
    case DType::float32: return texts_at<float>(data, places);
    case DType::float64: return texts_at<double>(data, places);
  }
  return {};
}

class Printer {
 public:
  explicit Printer(const TensorRef& tensor) : dims_(tensor.shape.dims()), abbreviated_(tensor.shape.numel() > most_elements) {
    if (tensor.shape.numel() == 0) return;
    collect(0, 0);
    texts_ = texts_at(tensor.dtype, tensor.data, places_);
    std::size_t widest = 0;
    for (const std::string& text : texts_) widest = std::max(widest, text.size());
    for (std::string& text : texts_) text.insert(0, widest - text.size(), ' ');
  }

  std::string text() {
    if (texts_.empty()) return "[]";
    if (dims_.empty()) return texts_.front();
    print(0);
    return std::move(text_);
  }

 private:
  // Collects the places of the elements that are shown, in the order in which print() uses their texts.
  void collect(std::size_t dim, std::int64_t place) {
    if (dim == dims_.size()) return places_.push_back(place);
    for (const std::int64_t index : shown_indices(dims_[dim], abbreviated_)) {
      if (index >= 0) collect(dim + 1, place * dims_[dim] + index);
    }
  }

  void print(std::size_t dim) {
    const std::size_t deeper = dims_.size() - dim - 1;  // dims inside this one
    text_ += '[';
    bool first = true;
    for (const std::int64_t index : shown_indices(dims_[dim], abbreviated_)) {
      if (deeper == 0) {
        print_element(dim, first, index < 0 ? "..." : texts_[next_++]);
      } else {
        if (!first) text_.append(deeper, '\n').append(dim + 1, ' ');
        if (index < 0) text_ += "...";
        if (index >= 0) print(dim + 1);
      }
      first = false;
    }
    text_ += ']';
  }

  void print_element(std::size_t dim, bool first, std::string_view element) {
    const std::size_t line = text_.size() - (text_.rfind('\n') + 1);  // rfind: npos + 1 is 0
    if (!first && line + 1 + element.size() > line_width) {
      text_.append(1, '\n').append(dim + 1, ' ');
    } else if (!first) {
      text_ += ' ';
    }
    text_ += element;
  }

  std::span<const std::int64_t> dims_;
  bool abbreviated_;
  std::vector<std::int64_t> places_;
  std::vector<std::string> texts_;
  std::size_t next_ = 0;
  std::string text_;
};

}  // namespace

std::string text_of(const TensorRef& tensor) {
  return fmt::format("{} ({}, shape {})", Printer(tensor).text(), name_of(tensor.dtype), tensor.shape);
}

void write_text(std::string_view text, std::ostream& out) { out << text; }

fmt::format_context::iterator write_text(std::string_view text, fmt::format_context& context) {
  return std::copy(text.begin(), text.end(), context.out());
}

}  // namespace trireme::detail
