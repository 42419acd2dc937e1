#pragma once

#include "ops/attention/attention_kernels.hpp"
#include "ops/base/tile.hpp"

// Shared by the forward and backward kernels of attention on a CPU: blocks of queries and keys, and their products.
namespace trireme::ops::TRIREME_ISA {
namespace {

TRIREME_HOST_DEVICE std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
TRIREME_HOST_DEVICE std::int64_t larger(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

constexpr std::int64_t query_block = 8 * tile_rows;
constexpr std::int64_t key_block = 384;  // a multiple of tile_rows and of tile_columns
static_assert(key_block % tile_rows == 0 && key_block % tile_columns<float> == 0 && key_block % tile_columns<double> == 0);

// Hands out pieces of a block of memory; without a block it only counts the elements.
template <typename T>
class Workspace {
 public:
  explicit Workspace(T* base) : base_(base) {}
  T* take(std::int64_t count) {
    T* piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (count + 15) / 16 * 16;
    return piece;
  }
  std::int64_t used() const { return used_; }

 private:
  T* base_;
  std::int64_t used_ = 0;
};

// Rows of a matrix that vectors can be read from: the caller's if a row is a whole number of vectors, else a copy padded with
// zeros.
template <typename T>
struct Rows {
  const T* data;
  std::int64_t stride;
};
template <typename T>
Rows<T> whole_vectors(const T* data, std::int64_t stride, std::int64_t time, std::int64_t size, T* copy) {
  const std::int64_t padded = round_up<T>(size);
  if (padded == size) return {data, stride};
  for (std::int64_t row = 0; row < time; ++row) {
    for (std::int64_t j = 0; j < size; ++j) copy[row * padded + j] = data[row * stride + j];
    for (std::int64_t j = size; j < padded; ++j) copy[row * padded + j] = 0;
  }
  return {copy, padded};
}

// Panels of tile_columns rows each, transposed: panel p holds, as [size][tile_columns], the rows from p * tile_columns on.
template <typename T>
constexpr std::int64_t num_panels(std::int64_t time) {
  return (time + tile_columns<T> - 1) / tile_columns<T>;
}
template <typename T>
void transpose_into_panels(const T* data, std::int64_t stride, std::int64_t time, std::int64_t size, T* panels) {
  for (std::int64_t first = 0; first < time; first += tile_columns<T>, panels += size * tile_columns<T>) {
    const std::int64_t rows = smaller(time - first, tile_columns<T>);
    for (std::int64_t j = 0; j < size; ++j) {
      for (std::int64_t row = 0; row < rows; ++row) panels[j * tile_columns<T> + row] = data[(first + row) * stride + j];
      for (std::int64_t row = rows; row < tile_columns<T>; ++row) panels[j * tile_columns<T> + row] = 0;
    }
  }
}

// The first key that each query sees, which does not decrease from query to query.
struct FirstKeys {
  const std::int32_t* given;  // [queries]; may be null
  std::int64_t window;        // above 0: a query sees only the last `window` keys up to its last one
  std::int64_t offset;        // query i sees keys up to i + offset

  template <typename T>
  static FirstKeys of(const AttentionHead<T>& head) {
    return {head.first_keys, head.window, head.keys - head.queries};
  }
  bool any() const { return given != nullptr || window > 0; }
  std::int64_t operator()(std::int64_t query) const {
    const std::int64_t first = given == nullptr ? 0 : given[query];
    return window > 0 ? larger(first, query + offset + 1 - window) : first;
  }
};

// A block of queries [query, query_end) and a block of keys [key, key_end). Query i sees the keys of the block from its first
// key up to i + offset.
struct Block {
  std::int64_t query;
  std::int64_t query_end;
  std::int64_t key;
  std::int64_t key_end;
  std::int64_t offset;
  FirstKeys first_keys;

  // The number of keys of this block up to the last one that `row` sees.
  std::int64_t seen(std::int64_t row) const { return larger(0, smaller(row + offset + 1, key_end) - key); }
  // The number of keys of this block before the first one that `row` sees, at most `seen`.
  std::int64_t passed(std::int64_t row, std::int64_t seen) const { return larger(0, smaller(first_keys(row) - key, seen)); }
  int rows_of_tile(std::int64_t tile) const { return static_cast<int>(smaller(query_end - tile, tile_rows)); }
};

// Query i sees keys up to i + offset.
template <typename T>
std::int64_t offset_of(const AttentionHead<T>& head) {
  return head.causal ? head.keys - head.queries : head.keys;
}

template <typename T>
void zero(T* data, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) data[i] = 0;
}

// Sets the scores of hidden keys among the first `count` keys, so that their probability is 0.
template <typename T>
void hide(const std::int32_t* hidden, std::int64_t count, T scale, T* scores) {
  const T never = static_cast<T>(scale < T(0) ? __builtin_inf() : -__builtin_inf());
  for (std::int64_t j = 0; hidden != nullptr && j < count; ++j) scores[j] = hidden[j] != 0 ? never : scores[j];
}

constexpr std::int64_t padding = 16;  // keeps rows of scores off the same cache sets
template <typename T>
constexpr std::int64_t score_stride(std::int64_t time) {
  const std::int64_t keys = smaller(num_panels<T>(time) * tile_columns<T>, key_block);
  return keys + padding;
}

// scores[row - query][j] = a[row] . panels[key + j], for the keys that each tile of rows sees.
template <typename T>
void products_with_panels(const Block& block, Rows<T> a, const T* panels, std::int64_t size, T* scores, std::int64_t stride) {
  for (std::int64_t j = 0; j < block.key_end - block.key; j += tile_columns<T>) {
    const T* panel = panels + (block.key + j) * size;
    for (std::int64_t tile = block.query; tile < block.query_end; tile += tile_rows) {
      const int rows = block.rows_of_tile(tile);
      const std::int64_t columns = smaller(block.seen(tile + rows - 1) - j, tile_columns<T>);
      if (columns <= 0 || block.key + j + columns <= block.first_keys(tile)) continue;
      multiply_tile(Left<T, false>{a.data + tile * a.stride, a.stride}, rows, panel, tile_columns<T>, size,
                    scores + (tile - block.query) * stride + j, stride, columns, false);
    }
  }
}

}  // namespace
}  // namespace trireme::ops::TRIREME_ISA
