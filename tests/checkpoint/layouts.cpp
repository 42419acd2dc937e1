#include "checkpoint/layouts.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "trireme/core/philox.hpp"

namespace trireme::test {
namespace {

std::vector<Range> ranges_of(const Shape& shape, Spread spread, int rank, int ranks) {
  const std::int64_t numel = shape.numel();
  const auto part = [](std::int64_t count, int index, int of) { return Range{count * index / of, count * (index + 1) / of}; };
  const auto columns = [&](int index, int of) {
    std::vector<Range> ranges;
    const std::int64_t width = shape.back();
    const Range own = part(width, index, of);
    for (std::int64_t row = 0; row < shape.rows(); ++row) ranges.push_back({row * width + own.begin, row * width + own.end});
    return ranges;
  };
  switch (spread) {
    case Spread::replicated: return {{0, numel}};
    case Spread::rows: {
      const Range own = part(shape[0], rank, ranks);
      const std::int64_t width = numel / shape[0];
      return {{own.begin * width, own.end * width}};
    }
    case Spread::columns: return columns(rank, ranks);
    case Spread::pairs: return columns(rank / 2, (ranks + 1) / 2);
    case Spread::flat: {  // two ranges, as a sharded step has; the first rank holds nothing where there are others
      if (ranks == 1) return {{0, numel}};
      if (rank == 0) return {};
      const Range lower = part(numel / 2, rank - 1, ranks - 1);
      const Range upper = part(numel - numel / 2, rank - 1, ranks - 1);
      return {lower, {numel / 2 + upper.begin, numel / 2 + upper.end}};
    }
    case Spread::overlapping: {
      const Range own = part(numel, rank, ranks);
      const Range next = rank + 1 < ranks ? part(numel, rank + 1, ranks) : Range{numel, numel};
      return {{own.begin, own.end - own.count() / 3}, {own.end - own.count() / 3, own.end + next.count() / 2}};
    }
    case Spread::first_rank: return rank == 0 ? std::vector<Range>{{0, numel}} : std::vector<Range>{};
  }
  return {};
}

}  // namespace

SampleState::SampleState(int rank, int ranks, int layout, bool with_optional) : rank_(rank), ranks_(ranks) {
  constexpr std::array spreads{Spread::replicated, Spread::rows,       Spread::columns,    Spread::flat,
                               Spread::pairs,      Spread::first_rank, Spread::overlapping};
  const auto spread = [&](int index) { return spreads[static_cast<std::size_t>(index + layout) % spreads.size()]; };
  add("embedding", DType::float32, {37, 16}, spread(0));
  add("block.weight", DType::float32, {24, 40}, spread(1));
  add("block.bias", DType::float64, {24, 8}, spread(2));
  add("head", DType::bfloat16, {9, 12}, spread(3));
  add("counts", DType::int64, {16, 10}, spread(4));
  add("mask", DType::uint8, {13, 11}, spread(5));
  add("empty", DType::float32, {0, 4}, Spread::replicated);
  if (with_optional) add("error", DType::float32, {12}, Spread::replicated, true);
  state_.add("step", &steps_);
  state_.add("rate", &rate_);
  if (rank == 0) state_.add("text", &text_);
}

void SampleState::add(const std::string& name, DType dtype, const Shape& shape, Spread spread, bool optional) {
  StateTensor tensor{.name = name, .dtype = dtype, .shape = shape, .optional = optional};
  Held& held = held_[name];
  for (const Range& range : ranges_of(shape, spread, rank_, ranks_)) {
    held.pieces.emplace_back(static_cast<std::size_t>(range.count()) * size_of(dtype));
    tensor.pieces.push_back({.data = held.pieces.back().data(), .elements = range});
  }
  state_.add(std::move(tensor));
}

template <typename Visit>
void SampleState::visit(std::uint64_t seed, const Visit& visit) const {
  for (const StateTensor& tensor : state_.tensors()) {
    const std::size_t bytes = size_of(tensor.dtype);
    for (const StatePiece& piece : tensor.pieces) {
      for (std::int64_t index = 0; index < piece.elements.count(); ++index) {
        const auto words = philox(seed, hash_name(tensor.name), static_cast<std::uint64_t>(piece.elements.begin + index));
        visit(tensor.name, piece.elements.begin + index,
              static_cast<std::byte*>(piece.data) + static_cast<std::size_t>(index) * bytes, words.data(), bytes);
      }
    }
  }
}

void SampleState::fill(std::uint64_t seed) {
  visit(seed, [](const std::string&, std::int64_t, std::byte* at, const std::uint32_t* words, std::size_t bytes) {
    std::memcpy(at, words, bytes);
  });
  steps_ = static_cast<std::int64_t>(seed) * 1000;
  rate_ = 1.0 / static_cast<double>(seed + 3);
  text_ = fmt::format("run \"{}\"", seed);
}

std::string SampleState::difference(std::uint64_t seed) const {
  std::string found;
  visit(seed,
        [&](const std::string& name, std::int64_t element, const std::byte* at, const std::uint32_t* words, std::size_t bytes) {
          if (found.empty() && std::memcmp(at, words, bytes) != 0) found = fmt::format("{}, element {}", name, element);
        });
  SampleState other(rank_, ranks_, 0);
  other.fill(seed);
  if (found.empty() && (steps_ != other.steps_ || rate_ != other.rate_ || (rank_ == 0 && text_ != other.text_)))
    found = "values";
  return found;
}

}  // namespace trireme::test
