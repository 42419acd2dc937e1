#pragma once

#include <cstdint>

#include "ops/attention/attention_sizes.hpp"
#include "ops/attention/attention_tiles_body.hpp"
#include "ops/reduce/exponentials.hpp"
#include "trireme/math/exponential.hpp"

// Attention for teams (device/cuda/team.hpp). A team keeps a tile of a head's queries, or of its keys, in scratch memory, and
// goes through the tiles of the keys, or queries, in order: sums have the same bits in every run. The matrix of queries x keys
// is never stored.
namespace trireme::ops {

template <typename T>
struct AttentionInput {
  AttentionSizes sizes;
  const T* q;  // [batch, queries, heads, size], rows sizes.q_stride apart
  const T* k;  // [batch, key_rows, kv_heads, size], rows sizes.kv_stride apart, as v
  const T* v;
  const std::int32_t* hidden;      // [batch, key_rows], not 0 where no query sees the key; may be null
  const std::int32_t* first_keys;  // [batch, queries], the first key that each query sees, not decreasing; may be null
  std::int64_t window;             // above 0, if causal: a query sees only the last `window` keys up to its last one
  Accumulate<T> scale;
  bool causal;

  TRIREME_HOST_DEVICE std::int64_t offset() const { return sizes.keys - sizes.queries; }
  TRIREME_HOST_DEVICE bool sees(std::int64_t sequence, std::int64_t query, std::int64_t key) const {
    return (!causal || key <= query + offset()) && (hidden == nullptr || hidden[sequence * sizes.key_rows + key] == 0) &&
           key >= first_key(sequence, query);
  }
  TRIREME_HOST_DEVICE std::int64_t first_key(std::int64_t sequence, std::int64_t query) const {
    const std::int64_t first = first_keys == nullptr ? 0 : first_keys[sequence * sizes.queries + query];
    const std::int64_t of_window = window > 0 ? query + offset() + 1 - window : 0;
    return first > of_window ? first : of_window;
  }
  // Replaces q . k if the query does not see the key: -infinity after it is scaled.
  TRIREME_HOST_DEVICE Accumulate<T> never() const {
    return static_cast<Accumulate<T>>(scale < Accumulate<T>(0) ? __builtin_inf() : -__builtin_inf());
  }
  TRIREME_HOST_DEVICE std::int64_t all_queries() const { return sizes.batch * sizes.heads * sizes.queries; }
};

// The forward pass of a tile of queries, by the running softmax.
template <typename T>
struct AttentionForwardTile {
  using A = Accumulate<T>;
  static constexpr TileCounts counts{.wide = 4, .square = 1, .columns = 4};

  AttentionInput<T> in;
  T* out;           // [batch, queries, heads, size]
  A* exponentials;  // [2, batch, heads, queries]
  int rows = tile_rows(counts, in.sizes.size, sizeof(A));

  TRIREME_HOST_DEVICE std::int64_t size() const { return in.sizes.size; }
  TRIREME_HOST_DEVICE std::int64_t items() const {
    return in.sizes.batch * in.sizes.heads * TilePlace::tiles(in.sizes.queries, rows);
  }

  template <typename Team>
  TRIREME_HOST_DEVICE void operator()(const Team& team, std::int64_t item, A* memory) const {
    constexpr A lowest = -static_cast<A>(__builtin_inf());
    const AttentionSizes& sizes = in.sizes;
    const std::int64_t size = sizes.size;
    const TilePlace place = TilePlace::of(item, sizes.heads, sizes.queries, rows);
    Scratch<A> scratch(memory, rows, size);
    const Tile<A> q = scratch.wide();
    const Tile<A> k = scratch.wide();
    const Tile<A> v = scratch.wide();
    const Tile<A> total = scratch.wide();
    const Tile<A> p = scratch.square();
    A* const largest = scratch.column();  // of scale * score, so far
    A* const shift = scratch.column();    // the same, or 0 where no score is above -infinity
    A* const sum = scratch.column();      // of exp(scale * score - largest)
    A* const factor = scratch.column();   // for rescaling earlier sums

    const std::int64_t row = place.sequence * sizes.queries + place.first;
    load(team, in.q + row * sizes.q_stride + place.head * size, sizes.q_stride, place.rows, size, q);
    for_each_element(team, place.rows, size, [&](int i, int j) { total.at(i, j) = 0; });
    for_each_row(team, place.rows, [&](int i) {
      largest[i] = lowest;
      sum[i] = 0;
    });

    const std::int64_t head_offset = place.head / sizes.group() * size;
    const std::int64_t seen = place.first + place.rows + in.offset();
    const std::int64_t end = in.causal && seen < sizes.keys ? seen : sizes.keys;
    for (std::int64_t first = in.first_key(place.sequence, place.first); first < end; first += rows) {
      const int keys = TilePlace::rows_from(first, end, rows);
      const std::int64_t from = (place.sequence * sizes.key_rows + first) * sizes.kv_stride + head_offset;
      load(team, in.k + from, sizes.kv_stride, keys, size, k);
      load(team, in.v + from, sizes.kv_stride, keys, size, v);
      team.wait();
      for_each_element(team, place.rows, keys, [&](int i, int key) {
        p.at(i, key) = in.sees(place.sequence, place.first + i, first + key) ? dot(q, i, k, key, size) : in.never();
      });
      team.wait();
      for_each_row(team, place.rows, [&](int i) {
        A top = largest[i];
        for (int key = 0; key < keys; ++key) top = in.scale * p.at(i, key) > top ? in.scale * p.at(i, key) : top;
        factor[i] = top == lowest ? A(1) : math::exp(largest[i] - top);
        largest[i] = top;
        shift[i] = top == lowest ? A(0) : top;
      });
      team.wait();
      for_each_element(team, place.rows, keys,
                       [&](int i, int key) { p.at(i, key) = math::exp(in.scale * p.at(i, key) - shift[i]); });
      team.wait();
      for_each_element(team, place.rows, size, [&](int i, int j) {
        A products = 0;
        for (int key = 0; key < keys; ++key) products += p.at(i, key) * v.at(key, j);
        total.at(i, j) = total.at(i, j) * factor[i] + products;
      });
      for_each_row(team, place.rows, [&](int i) {
        A of_keys = 0;
        for (int key = 0; key < keys; ++key) of_keys += p.at(i, key);
        sum[i] = sum[i] * factor[i] + of_keys;
      });
      team.wait();
    }

    T* const to = out + row * sizes.width() + place.head * size;
    for_each_element(team, place.rows, size, [&](int i, int j) {
      to[i * sizes.width() + j] = rounded<T>(sum[i] == A(0) ? A(0) : total.at(i, j) / sum[i]);  // 0 if no key is seen
    });
    const std::int64_t sums = (place.sequence * sizes.heads + place.head) * sizes.queries + place.first;
    for_each_row(team, place.rows, [&](int i) {
      keep_exponentials({sum[i] == A(0) ? A(0) : largest[i], sum[i]}, exponentials, in.all_queries(), sums + i);
    });
  }
};

// The input of both kernels of the backward pass.
template <typename T>
struct AttentionBackwardInput {
  using A = Accumulate<T>;

  AttentionInput<T> forward;
  const T* out;  // as dout: [batch, queries, heads, size]
  const T* dout;
  const A* exponentials;  // [2, batch, heads, queries]
  A* delta;               // [batch, heads, queries]: dout . out, written by the kernel of the queries for that of the keys

  struct Gradient {
    A p;      // probability that a query gives a key
    A score;  // gradient of q . k
  };
  // `score` is q . k, dp the gradient of p, and `share` the factor of exponentials.
  TRIREME_HOST_DEVICE Gradient gradient(bool sees, A score, A dp, A largest, A share, A delta_of_query) const {
    const A p = sees ? share * math::exp(forward.scale * score - largest) : A(0);
    return {p, forward.scale * p * (dp - delta_of_query)};
  }
  // Loads the numbers that gradient() needs of query number `sums` of all.
  TRIREME_HOST_DEVICE void load_query(std::int64_t sums, A& largest, A& share) const {
    const Exponentials<A> of_query = exponentials_at(exponentials, forward.all_queries(), sums);
    largest = of_query.largest;
    share = of_query.sum == A(0) ? A(0) : A(1) / of_query.sum;  // 0 if no key is seen
  }
};

template <typename T>
struct AttentionQueryGradientTile {
  using A = Accumulate<T>;
  static constexpr TileCounts counts{.wide = 5, .square = 1, .columns = 3};

  AttentionBackwardInput<T> in;
  T* dq;  // as q
  int rows = tile_rows(counts, in.forward.sizes.size, sizeof(A));

  TRIREME_HOST_DEVICE std::int64_t size() const { return in.forward.sizes.size; }
  TRIREME_HOST_DEVICE std::int64_t items() const {
    return in.forward.sizes.batch * in.forward.sizes.heads * TilePlace::tiles(in.forward.sizes.queries, rows);
  }

  template <typename Team>
  TRIREME_HOST_DEVICE void operator()(const Team& team, std::int64_t item, A* memory) const {
    const AttentionInput<T>& forward = in.forward;
    const AttentionSizes& sizes = forward.sizes;
    const std::int64_t size = sizes.size;
    const std::int64_t width = sizes.width();
    const TilePlace place = TilePlace::of(item, sizes.heads, sizes.queries, rows);
    Scratch<A> scratch(memory, rows, size);
    const Tile<A> q = scratch.wide();
    const Tile<A> dout = scratch.wide();
    const Tile<A> total = scratch.wide();
    const Tile<A> k = scratch.wide();
    const Tile<A> v = scratch.wide();
    const Tile<A> ds = scratch.square();
    A* const largest = scratch.column();
    A* const share = scratch.column();
    A* const delta = scratch.column();

    const std::int64_t row = place.sequence * sizes.queries + place.first;
    const std::int64_t sums = (place.sequence * sizes.heads + place.head) * sizes.queries + place.first;
    load(team, forward.q + row * sizes.q_stride + place.head * size, sizes.q_stride, place.rows, size, q);
    load(team, in.dout + row * width + place.head * size, width, place.rows, size, dout);
    load(team, in.out + row * width + place.head * size, width, place.rows, size, k);  // before keys are loaded there
    for_each_element(team, place.rows, size, [&](int i, int j) { total.at(i, j) = 0; });
    team.wait();
    for_each_row(team, place.rows, [&](int i) {
      in.load_query(sums + i, largest[i], share[i]);
      delta[i] = in.delta[sums + i] = dot(dout, i, k, i, size);
    });
    team.wait();

    const std::int64_t head_offset = place.head / sizes.group() * size;
    const std::int64_t seen = place.first + place.rows + forward.offset();
    const std::int64_t end = forward.causal && seen < sizes.keys ? seen : sizes.keys;
    for (std::int64_t first = forward.first_key(place.sequence, place.first); first < end; first += rows) {
      const int keys = TilePlace::rows_from(first, end, rows);
      const std::int64_t from = (place.sequence * sizes.key_rows + first) * sizes.kv_stride + head_offset;
      load(team, forward.k + from, sizes.kv_stride, keys, size, k);
      load(team, forward.v + from, sizes.kv_stride, keys, size, v);
      team.wait();
      for_each_element(team, place.rows, keys, [&](int i, int key) {
        ds.at(i, key) = in.gradient(forward.sees(place.sequence, place.first + i, first + key), dot(q, i, k, key, size),
                                    dot(dout, i, v, key, size), largest[i], share[i], delta[i])
                            .score;
      });
      team.wait();
      for_each_element(team, place.rows, size, [&](int i, int j) {
        A products = 0;
        for (int key = 0; key < keys; ++key) products += ds.at(i, key) * k.at(key, j);
        total.at(i, j) += products;
      });
      team.wait();
    }
    store(team, total, place.rows, size, dq + row * sizes.q_stride + place.head * size, sizes.q_stride);
  }
};

// The gradients of a tile of keys and their values, from all queries of the heads that share them.
template <typename T>
struct AttentionKeyGradientTile {
  using A = Accumulate<T>;
  static constexpr TileCounts counts{.wide = 6, .square = 2, .columns = 3};

  AttentionBackwardInput<T> in;
  T* dk;  // as k
  T* dv;
  int rows = tile_rows(counts, in.forward.sizes.size, sizeof(A));

  TRIREME_HOST_DEVICE std::int64_t size() const { return in.forward.sizes.size; }
  TRIREME_HOST_DEVICE std::int64_t items() const {
    return in.forward.sizes.batch * in.forward.sizes.kv_heads * TilePlace::tiles(in.forward.sizes.keys, rows);
  }

  template <typename Team>
  TRIREME_HOST_DEVICE void operator()(const Team& team, std::int64_t item, A* memory) const {
    const AttentionInput<T>& forward = in.forward;
    const AttentionSizes& sizes = forward.sizes;
    const std::int64_t size = sizes.size;
    const std::int64_t width = sizes.width();
    const TilePlace place = TilePlace::of(item, sizes.kv_heads, sizes.keys, rows);
    Scratch<A> scratch(memory, rows, size);
    const Tile<A> k = scratch.wide();
    const Tile<A> v = scratch.wide();
    const Tile<A> dk_total = scratch.wide();
    const Tile<A> dv_total = scratch.wide();
    const Tile<A> q = scratch.wide();
    const Tile<A> dout = scratch.wide();
    const Tile<A> p = scratch.square();
    const Tile<A> ds = scratch.square();
    A* const largest = scratch.column();
    A* const share = scratch.column();
    A* const delta = scratch.column();

    const std::int64_t from = (place.sequence * sizes.key_rows + place.first) * sizes.kv_stride + place.head * size;
    load(team, forward.k + from, sizes.kv_stride, place.rows, size, k);
    load(team, forward.v + from, sizes.kv_stride, place.rows, size, v);
    for_each_element(team, place.rows, size, [&](int key, int j) { dk_total.at(key, j) = dv_total.at(key, j) = 0; });

    const std::int64_t unseen = forward.causal ? place.first - forward.offset() : 0;  // earlier queries see none of the tile
    for (std::int64_t head = place.head * sizes.group(); head < (place.head + 1) * sizes.group(); ++head) {
      for (std::int64_t first = unseen > 0 ? unseen : 0; first < sizes.queries; first += rows) {
        const int queries = TilePlace::rows_from(first, sizes.queries, rows);
        if (forward.first_key(place.sequence, first) >= place.first + place.rows) break;  // later queries see none of it either
        const std::int64_t row = place.sequence * sizes.queries + first;
        const std::int64_t sums = (place.sequence * sizes.heads + head) * sizes.queries + first;
        load(team, forward.q + row * sizes.q_stride + head * size, sizes.q_stride, queries, size, q);
        load(team, in.dout + row * width + head * size, width, queries, size, dout);
        for_each_row(team, queries, [&](int i) {
          in.load_query(sums + i, largest[i], share[i]);
          delta[i] = in.delta[sums + i];
        });
        team.wait();
        for_each_element(team, queries, place.rows, [&](int i, int key) {
          const auto gradient = in.gradient(forward.sees(place.sequence, first + i, place.first + key), dot(q, i, k, key, size),
                                            dot(dout, i, v, key, size), largest[i], share[i], delta[i]);
          p.at(i, key) = gradient.p;
          ds.at(i, key) = gradient.score;
        });
        team.wait();
        for_each_element(team, place.rows, size, [&](int key, int j) {
          A of_key = 0;
          A of_value = 0;
          for (int i = 0; i < queries; ++i) {
            of_key += ds.at(i, key) * q.at(i, j);
            of_value += p.at(i, key) * dout.at(i, j);
          }
          dk_total.at(key, j) += of_key;
          dv_total.at(key, j) += of_value;
        });
        team.wait();
      }
    }
    store(team, dk_total, place.rows, size, dk + from, sizes.kv_stride);
    store(team, dv_total, place.rows, size, dv + from, sizes.kv_stride);
  }
};

}  // namespace trireme::ops
