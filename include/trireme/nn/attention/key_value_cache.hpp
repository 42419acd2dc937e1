#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/ops/attention/cached_attention.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

// New tokens that continue a sequence in a cache.
struct NewTokens {
  std::int64_t sequence = 0;
  std::span<const std::int32_t> tokens = {};
};

// A KV cache. It keeps the keys and values of the tokens that a model has read, so that each token is read only once. Each
// rank of a divided model keeps the keys and values of its own layers and heads.
//
//   nn::KeyValueCache<float> cache(1, 256);
//   Tensor<float> logits = model.next_token_logits({{.sequence = 0, .tokens = prompt}}, cache);
//   logits = model.next_token_logits({{.sequence = 0, .tokens = std::span(&next, 1)}}, cache);
template <typename T, typename D = Cpu>
class KeyValueCache {
 public:
  // For `sequences` sequences of at most `capacity` tokens. Memory is allocated when a layer first uses the cache.
  KeyValueCache(std::int64_t sequences, std::int64_t capacity) : lengths_(checked(sequences, capacity)), capacity_(capacity) {}

  std::int64_t sequences() const { return std::ssize(lengths_); }
  std::int64_t capacity() const { return capacity_; }
  std::int64_t length(std::int64_t sequence) const { return lengths_[place_of(sequence)]; }  // tokens read so far
  void clear(std::int64_t sequence) { lengths_[place_of(sequence)] = 0; }

  // The following functions are for models. rows_of() returns where new tokens go. It throws Error{invalid_argument} if a part
  // is empty, if two parts have the same sequence, or if the tokens do not fit.
  std::vector<ops::CachedRows> rows_of(std::span<const NewTokens> parts) const {
    std::vector<ops::CachedRows> rows;
    for (const NewTokens& part : parts) {
      const std::int64_t first = length(part.sequence), count = std::ssize(part.tokens);
      for (const ops::CachedRows& other : rows) {
        require(other.sequence != part.sequence, "new tokens of sequence {} are given twice", part.sequence);
      }
      require(count > 0, "no new tokens of sequence {}", part.sequence);
      require(count <= capacity_ - first, "sequence {} of {} tokens gets {} more, but the cache is for {}", part.sequence,
              first, count, capacity_);
      rows.push_back({.sequence = part.sequence, .first = first, .count = count});
    }
    require(!rows.empty(), "there are no new tokens");
    return rows;
  }
  // Keys and values of layer `number`, from 0: [sequences, capacity, width].
  const Tensor<T, D>& layer(std::size_t number, std::int64_t width) {
    if (layers_.size() <= number) layers_.resize(number + 1);
    Tensor<T, D>& layer = layers_[number];
    if (!layer.defined()) layer = Tensor<T, D>({sequences(), capacity_, width});
    require(layer.dim(2) == width, "a cache of another model: layer {} has keys and values of {} elements, not {}", number,
            layer.dim(2), width);
    return layer;
  }
  void add(std::span<const ops::CachedRows> rows) {  // call it after all layers have written these rows
    for (const ops::CachedRows& part : rows) lengths_[place_of(part.sequence)] += part.count;
  }

 private:
  static std::vector<std::int64_t> checked(std::int64_t sequences, std::int64_t capacity) {
    require(sequences > 0 && capacity > 0, "a cache is for sequences and tokens above 0, got {} and {}", sequences, capacity);
    return std::vector<std::int64_t>(static_cast<std::size_t>(sequences));
  }
  std::size_t place_of(std::int64_t sequence) const {
    require(sequence >= 0 && sequence < sequences(), "a cache of {} sequences has no sequence {}", sequences(), sequence);
    return static_cast<std::size_t>(sequence);
  }

  std::vector<std::int64_t> lengths_;
  std::int64_t capacity_;
  std::vector<Tensor<T, D>> layers_;
};

// Tells an attention layer that its rows are new tokens, and where the tokens go in the cache.
template <typename T, typename D>
struct LayerCache {
  KeyValueCache<T, D>* cache = nullptr;
  std::size_t layer = 0;
  std::span<const ops::CachedRows> rows = {};

  // Writes keys and values to the cache and attends: qkv [1, rows, (heads + 2 * kv_heads) * size] -> [1, rows, heads * size].
  Tensor<T, D> attend(const Tensor<T, D>& qkv, ops::CachedAttention<T, D> pass) const {
    const std::int64_t width = qkv.shape().back();
    const std::int64_t size = width / (pass.heads + 2 * pass.kv_heads);
    pass.rows.assign(rows.begin(), rows.end());
    pass.qkv = qkv.reshape({qkv.numel() / width, width});
    pass.cache = cache->layer(layer, 2 * pass.kv_heads * size);
    pass.out = Tensor<T, D>({pass.qkv.dim(0), pass.heads * size});
    ops::cached_attention(pass);
    return pass.out.reshape({1, pass.out.dim(0), pass.out.dim(1)});
  }
};

}  // namespace nn
}  // namespace trireme
