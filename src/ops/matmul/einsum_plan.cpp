#include "trireme/ops/matmul/einsum_plan.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "trireme/core/error.hpp"

namespace trireme::ops {
namespace {

struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

std::string without_spaces(std::string_view text) {
  std::string result;
  std::copy_if(text.begin(), text.end(), std::back_inserter(result), [](char c) { return c != ' '; });
  return result;
}

void require_letters(std::string_view equation, std::string_view letters, std::string_view where) {
  for (const char letter : letters) {
    const bool known = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    require(known, "einsum: '{}' in \"{}\" is not a letter: dims are named by letters, \"...\" is not supported", letter,
            equation);
    require(std::count(letters.begin(), letters.end(), letter) == 1,
            "einsum: {} occurs twice in {} of \"{}\": diagonals are not supported", letter, where, equation);
  }
}

Equation parsed(std::string_view equation) {
  const std::string text = without_spaces(equation);
  const auto arrow = text.find("->");
  Equation found{.operands = {}, .result = arrow == std::string::npos ? std::string() : text.substr(arrow + 2)};
  const std::string left = text.substr(0, arrow);
  for (std::size_t begin = 0; begin <= left.size();) {
    const std::size_t end = std::min(left.find(',', begin), left.size());
    found.operands.push_back(left.substr(begin, end - begin));
    begin = end + 1;
  }
  for (const std::string& operand : found.operands) require_letters(equation, operand, "an operand");
  if (arrow == std::string::npos) {
    std::map<char, int> times;
    for (const std::string& operand : found.operands) {
      for (const char letter : operand) ++times[letter];
    }
    for (const auto& [letter, count] : times) {
      if (count == 1) found.result += letter;
    }
  }
  require_letters(equation, found.result, "the result");
  return found;
}

using Extents = std::map<char, std::int64_t>;

Extents extents_of(std::string_view equation, const Equation& parts, const std::vector<Shape>& shapes) {
  require(parts.operands.size() == shapes.size(), "einsum: \"{}\" has {} operands, but {} were given", equation,
          parts.operands.size(), shapes.size());
  Extents extents;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::string& letters = parts.operands[i];
    require(std::ssize(letters) == shapes[i].size(), "einsum: operand {} of \"{}\" has the dims {}, but its shape is {}", i + 1,
            equation, letters, shapes[i]);
    for (int dim = 0; dim < shapes[i].size(); ++dim) {
      const char letter = letters[static_cast<std::size_t>(dim)];
      const auto [known, is_first] = extents.emplace(letter, shapes[i][dim]);
      require(is_first || known->second == shapes[i][dim], "einsum: {} of \"{}\" is {} in one operand and {} in the other",
              letter, equation, known->second, shapes[i][dim]);
    }
  }
  for (const char letter : parts.result) {
    require(extents.contains(letter), "einsum: {} is in the result of \"{}\", but in no operand", letter, equation);
  }
  return extents;
}

Shape shape_of(std::string_view letters, const Extents& extents) {
  std::vector<std::int64_t> dims;
  for (const char letter : letters) dims.push_back(extents.at(letter));
  return Shape(dims);
}

std::int64_t product_of(std::string_view letters, const Extents& extents) {
  std::int64_t product = 1;
  for (const char letter : letters) product *= extents.at(letter);
  return product;
}

// From dims in the order of `from` to the order of `to`.
Arrangement arrangement(const std::string& from, const std::string& to, const Shape& shape) {
  Arrangement result{.order = {}, .shape = shape};
  if (from == to) return result;
  for (const char letter : to) result.order.push_back(static_cast<int>(from.find(letter)));
  return result;
}

std::string letters_where(std::string_view letters, const auto& wanted) {
  std::string result;
  std::copy_if(letters.begin(), letters.end(), std::back_inserter(result), wanted);
  return result;
}

}  // namespace

EinsumPlan einsum_plan(std::string_view equation, const std::vector<Shape>& shapes) {
  const Equation parts = parsed(equation);
  const Extents extents = extents_of(equation, parts, shapes);
  const auto in = [](std::string_view letters) {
    return [letters](char letter) { return letters.find(letter) != std::string_view::npos; };
  };
  const bool two = shapes.size() == 2;
  require(two || shapes.size() == 1, "einsum: \"{}\" has {} operands, but one or two are supported", equation, shapes.size());
  const std::string& a = parts.operands[0];
  const std::string b = two ? parts.operands[1] : std::string();
  const auto is_kept = in(parts.result);
  const std::string batch = letters_where(a, [&](char letter) { return is_kept(letter) && in(b)(letter); });
  const std::string summed = letters_where(a, [&](char letter) { return !is_kept(letter) && in(b)(letter); });
  const std::string rows = letters_where(a, [&](char letter) { return is_kept(letter) && !in(b)(letter); });
  const std::string columns = letters_where(b, [&](char letter) { return is_kept(letter) && !in(a)(letter); });

  const auto matrix = [&](const std::string& first, const std::string& second) {
    const std::int64_t m = product_of(first, extents);
    const std::int64_t n = product_of(second, extents);
    return batch.empty() ? Shape{m, n} : Shape{product_of(batch, extents), m, n};
  };
  const auto operand = [&](const std::string& letters, const std::string& to, const Shape& result) {
    std::vector<int> alone;
    for (std::size_t dim = 0; dim < letters.size(); ++dim) {
      if (!in(to)(letters[dim])) alone.push_back(static_cast<int>(dim));
    }
    return EinsumOperand{Dims(alone), arrangement(letters_where(letters, in(to)), to, result)};
  };
  EinsumPlan plan;
  std::string product = rows;
  if (two) {
    plan.operands = {operand(a, batch + rows + summed, matrix(rows, summed)),
                     operand(b, batch + summed + columns, matrix(summed, columns))};
    product = batch + rows + columns;
  } else {
    plan.operands = {operand(a, rows, shape_of(rows, extents))};
  }
  plan.product = shape_of(product, extents);
  plan.arrangement = arrangement(product, parts.result, shape_of(parts.result, extents));
  return plan;
}

}  // namespace trireme::ops
