#include "ops/attention/attention_kernels.hpp"

#include "ops/attention/attention_blocks.hpp"
#include "ops/reduce/exponentials.hpp"
#include "trireme/math/exponential.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

template <typename T>
constexpr T lowest = -static_cast<T>(__builtin_inf());

// The running softmax of a block of queries.
template <typename T>
struct Running {
  T largest[query_block];  // of scale * score
  T sum[query_block];      // of exp(scale * score - largest)
};

// Turns the scores of one row into exp(scale * score - largest), 0 for keys that the row does not see. Returns the factor for
// earlier results. As long as all scores are -infinity, the sum is 0.
template <typename T>
T exponentiate_row(T* scores, std::int64_t seen, std::int64_t width, T scale, T& largest, T& sum) {
  const auto count = static_cast<std::int32_t>(seen);
  const auto end = static_cast<std::int32_t>(round_up<T>(width));
  T top = largest;
#pragma omp simd reduction(max : top)
  for (std::int32_t j = 0; j < count; ++j) top = scale * scores[j] > top ? scale * scores[j] : top;
  const T factor = top == lowest<T> ? T(1) : math::exp(largest - top);
  largest = top;
  top = top == lowest<T> ? T(0) : top;
  T total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int32_t j = 0; j < end; ++j) {
    const T value = math::exp(scale * scores[j] - top);
    const T kept = j < count ? value : T(0);
    scores[j] = kept;
    total += kept;
  }
  sum = sum * factor + total;
  return factor;
}

// The factor for summed results; 0 if no key is seen.
template <typename T>
T share_of(T sum) {
  return sum == T(0) ? T(0) : T(1) / sum;
}

// The elements of a copy of rows, for rows that are not a whole number of vectors.
template <typename T>
std::int64_t copied(std::int64_t rows, std::int64_t size) {
  return round_up<T>(size) == size ? 0 : rows * round_up<T>(size);
}

template <typename T>
struct ForwardBuffers {
  ForwardBuffers(std::int64_t keys, std::int64_t size, std::int64_t value_size, Workspace<T>& workspace)
      : key_panels(workspace.take(num_panels<T>(keys) * tile_columns<T> * size)),
        v_rows(workspace.take(copied<T>(keys, value_size))),
        scores(workspace.take(query_block * score_stride<T>(keys))),
        out(workspace.take(query_block * round_up<T>(value_size))) {}
  T* key_panels;
  T* v_rows;
  T* scores;
  T* out;
};

// One query and all keys, as in generation. Nothing is used twice, so nothing is packed first.
template <typename T>
void forward_one_query(AttentionHead<T> head, T* out, const AttentionSums<T>& sums, const ForwardBuffers<T>& buffers) {
  const std::int64_t passed = smaller(FirstKeys::of(head)(0), head.keys);
  head.k += passed * head.k_stride;
  head.v += passed * head.v_stride;
  head.keys -= passed;
  if (head.hidden != nullptr) head.hidden += passed;
  T* scores = buffers.key_panels;
  for (std::int64_t place = 0; place < head.group; ++place) {
    const T* q = head.q + place * head.size;
    for (std::int64_t key = 0; key < head.keys; ++key) {
      const T* k = head.k + key * head.k_stride;
      scores[key] = sum_of<T>(head.size, [=](std::int64_t j) { return q[j] * k[j]; });
    }
    hide(head.hidden, head.keys, head.scale, scores);
    T largest = lowest<T>;
    T sum = 0;
    exponentiate_row(scores, head.keys, head.keys, head.scale, largest, sum);
    for (std::int64_t j = 0; j < head.value_size; ++j) buffers.out[j] = 0;
    for (std::int64_t key = 0; key < head.keys; ++key) {
      const T* v = head.v + key * head.v_stride;
      T* total = buffers.out;
      const T probability = scores[key];
#pragma omp simd
      for (std::int64_t j = 0; j < head.value_size; ++j) total[j] += probability * v[j];
    }
    const T share = share_of(sum);
    for (std::int64_t j = 0; j < head.value_size; ++j) out[place * head.value_size + j] = buffers.out[j] * share;
    sums.keep(place, largest, sum);
  }
}

// The queries of one head, with its rows of q, out and sums.
template <typename T>
void forward_queries(const AttentionHead<T>& head, const T* q_rows, Rows<T> v, const ForwardBuffers<T>& buffers, T* out,
                     std::int64_t out_stride, const AttentionSums<T>& sums) {
  const std::int64_t value_size = head.value_size;
  const std::int64_t width = round_up<T>(value_size);
  const std::int64_t stride = score_stride<T>(head.keys);
  const std::int64_t queries = head.queries;
  const std::int64_t keys = head.keys;
  const std::int64_t offset = offset_of(head);
  const FirstKeys first_keys = FirstKeys::of(head);
  const T scale = head.scale;
  const std::int32_t* const hidden = head.hidden;
  const Rows<T> q{q_rows, head.q_stride};
  for (std::int64_t query = 0; query < queries; query += query_block) {
    const std::int64_t query_end = smaller(query + query_block, queries);
    const std::int64_t keys_end = smaller(query_end + offset, keys);
    Running<T> running;
    for (std::int64_t row = 0; row < query_block; ++row) {
      running.largest[row] = lowest<T>;
      running.sum[row] = 0;
    }
    if (first_keys.any()) zero(buffers.out, query_block * width);
    for (std::int64_t key = first_keys(query) / key_block * key_block; key < keys_end; key += key_block) {
      const Block block{query, query_end, key, smaller(key + key_block, keys_end), offset, first_keys};
      const bool goes_on = key > 0;
      products_with_panels(block, q, buffers.key_panels, head.size, buffers.scores, stride);
      for (std::int64_t tile = query; tile < query_end; tile += tile_rows) {
        const int rows = block.rows_of_tile(tile);
        const std::int64_t seen = block.seen(tile + rows - 1);
        const std::int64_t passed = block.passed(tile, seen);
        if (seen == passed) continue;
        T* tile_out = buffers.out + (tile - query) * width;
        for (std::int64_t row = tile; row < tile + rows; ++row) {
          const std::int64_t local = row - query;
          T* scores = buffers.scores + local * stride;
          const std::int64_t end = block.seen(row);
          const std::int64_t begin = larger(passed, block.passed(row, end));
          zero(scores + passed, begin - passed);
          if (hidden != nullptr) hide(hidden + key + begin, end - begin, scale, scores + begin);
          const T factor =
              exponentiate_row(scores + begin, end - begin, seen - begin, scale, running.largest[local], running.sum[local]);
          for (std::int64_t j = 0; goes_on && j < width; ++j) buffers.out[local * width + j] *= factor;
        }
        multiply_rows(Left<T, false>{buffers.scores + (tile - query) * stride + passed, stride}, rows,
                      v.data + (key + passed) * v.stride, v.stride, seen - passed, tile_out, width, width, goes_on);
      }
    }
    for (std::int64_t row = query; row < query_end; ++row) {
      const std::int64_t local = row - query;
      const T share = share_of(running.sum[local]);
      for (std::int64_t j = 0; j < value_size; ++j) out[row * out_stride + j] = buffers.out[local * width + j] * share;
      sums.keep(row, running.largest[local], running.sum[local]);
    }
  }
}

template <typename T>
void forward(const AttentionHead<T>& head, T* out, std::int64_t out_stride, const AttentionSums<T>& sums, T* memory) {
  Workspace<T> workspace(memory);
  const ForwardBuffers<T> buffers(head.keys, head.size, head.value_size, workspace);
  if (head.queries == 1) return forward_one_query(head, out, sums, buffers);
  transpose_into_panels(head.k, head.k_stride, head.keys, head.size, buffers.key_panels);
  const Rows<T> v = whole_vectors(head.v, head.v_stride, head.keys, head.value_size, buffers.v_rows);
  for (std::int64_t place = 0; place < head.group; ++place) {
    forward_queries(head, head.q + place * head.size, v, buffers, out + place * head.value_size, out_stride,
                    sums.from(place * head.queries));
  }
}

template <typename T>
struct BackwardBuffers {
  BackwardBuffers(std::int64_t queries, std::int64_t keys, std::int64_t size, std::int64_t value_size, Workspace<T>& workspace)
      : key_panels(workspace.take(num_panels<T>(keys) * tile_columns<T> * size)),
        value_panels(workspace.take(num_panels<T>(keys) * tile_columns<T> * value_size)),
        q_rows(workspace.take(copied<T>(queries, size))),
        k_rows(workspace.take(copied<T>(keys, size))),
        dout_rows(workspace.take(copied<T>(queries, value_size))),
        p(workspace.take(query_block * score_stride<T>(keys))),
        ds(workspace.take(query_block * score_stride<T>(keys))),
        dq(workspace.take(query_block * round_up<T>(size))),
        dk(workspace.take((keys + tile_rows) * round_up<T>(size))),
        dv(workspace.take((keys + tile_rows) * round_up<T>(value_size))) {}
  T* key_panels;
  T* value_panels;
  T* q_rows;
  T* k_rows;
  T* dout_rows;
  T* p;
  T* ds;
  T* dq;
  T* dk;
  T* dv;
};

// p holds the scores of a row and becomes its probabilities; ds holds the gradients of the probabilities and becomes those of
// q . k: scale * p * (dp - delta). Both are 0 from `seen` to `width`.
template <typename T>
void softmax_gradient_row(T* p, T* ds, std::int64_t seen, std::int64_t width, T scale, const Exponentials<T>& of_row, T delta) {
  const auto count = static_cast<std::int32_t>(seen);
  const auto end = static_cast<std::int32_t>(round_up<T>(width));
  const T largest = of_row.largest;
  const T share = share_of(of_row.sum);
#pragma omp simd
  for (std::int32_t j = 0; j < end; ++j) {
    const T probability = j < count ? share * math::exp(scale * p[j] - largest) : T(0);
    ds[j] = j < count ? scale * probability * (ds[j] - delta) : T(0);
    p[j] = probability;
  }
}

template <typename T>
void copy_rows(const T* from, std::int64_t from_stride, std::int64_t rows, std::int64_t size, T* to, std::int64_t to_stride) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t j = 0; j < size; ++j) to[row * to_stride + j] = from[row * from_stride + j];
  }
}

// For one head of the group: writes its dq, and adds to the dk and dv of the group.
template <typename T>
void backward_queries(const AttentionHead<T>& head, const AttentionHeadGradients<T>& gradients, std::int64_t place_in_group,
                      Rows<T> k, const BackwardBuffers<T>& buffers) {
  const std::int64_t size = head.size;
  const std::int64_t value_size = head.value_size;
  const std::int64_t width = round_up<T>(size);
  const std::int64_t value_width = round_up<T>(value_size);
  const std::int64_t stride = score_stride<T>(head.keys);
  const std::int64_t keys = head.keys;
  const std::int64_t offset = offset_of(head);
  const FirstKeys first_keys = FirstKeys::of(head);
  const T scale = head.scale;
  const std::int32_t* const hidden = head.hidden;
  const std::int64_t out_stride = gradients.out_stride;
  const T* head_out = gradients.out + place_in_group * value_size;
  const T* head_dout = gradients.dout + place_in_group * value_size;
  const AttentionSums<const T> sums = gradients.sums.from(place_in_group * head.queries);
  const Rows<T> q = whole_vectors(head.q + place_in_group * size, head.q_stride, head.queries, size, buffers.q_rows);
  const Rows<T> dout = whole_vectors(head_dout, out_stride, head.queries, value_size, buffers.dout_rows);

  for (std::int64_t query = 0; query < head.queries; query += query_block) {
    const std::int64_t query_end = smaller(query + query_block, head.queries);
    const std::int64_t keys_end = smaller(query_end + offset, keys);
    T delta[query_block];
    for (std::int64_t row = query; row < query_end; ++row) {
      T total = 0;
#pragma omp simd reduction(+ : total)
      for (std::int64_t j = 0; j < value_size; ++j) {
        total += head_dout[row * out_stride + j] * head_out[row * out_stride + j];
      }
      delta[row - query] = total;
    }
    if (first_keys.any()) zero(buffers.dq, query_block * width);
    for (std::int64_t key = first_keys(query) / key_block * key_block; key < keys_end; key += key_block) {
      const Block block{query, query_end, key, smaller(key + key_block, keys_end), offset, first_keys};
      products_with_panels(block, q, buffers.key_panels, size, buffers.p, stride);
      products_with_panels(block, dout, buffers.value_panels, value_size, buffers.ds, stride);
      for (std::int64_t tile = query; tile < query_end; tile += tile_rows) {
        const int rows = block.rows_of_tile(tile);
        const std::int64_t seen = block.seen(tile + rows - 1);
        const std::int64_t passed = block.passed(tile, seen);
        const std::int64_t whole_tiles = (seen + tile_rows - 1) / tile_rows * tile_rows;
        for (std::int64_t row = tile; row < tile + rows; ++row) {
          const std::int64_t local = row - query;
          T* p = buffers.p + local * stride;
          T* ds = buffers.ds + local * stride;
          const std::int64_t end = block.seen(row);
          const std::int64_t begin = larger(passed, block.passed(row, end));
          const std::int64_t vectors = begin / lanes<T> * lanes<T>;
          if (hidden != nullptr) hide(hidden + key + begin, end - begin, scale, p + begin);
          softmax_gradient_row(p + vectors, ds + vectors, end - vectors, whole_tiles - vectors, scale, sums.at(row),
                               delta[local]);
          const std::int64_t first_tile = passed / tile_rows * tile_rows;
          zero(p + first_tile, begin - first_tile);
          zero(ds + first_tile, begin - first_tile);
        }
        multiply_rows(Left<T, false>{buffers.ds + (tile - query) * stride + passed, stride}, rows,
                      k.data + (key + passed) * k.stride, k.stride, seen - passed, buffers.dq + (tile - query) * width, width,
                      width, first_keys.any() || key > 0);
      }
      const std::int64_t passed = block.passed(query, block.key_end - key) / tile_rows * tile_rows;
      for (std::int64_t tile = key + passed; tile < block.key_end; tile += tile_rows) {
        // Queries before this one see nothing of the tile.
        const std::int64_t first_of_all = larger(0, tile - offset);
        const std::int64_t first = larger(query, first_of_all);
        std::int64_t last = query_end;
        while (last > first && first_keys(last - 1) >= tile + tile_rows) --last;
        const std::int64_t queries = last - first;
        const std::int64_t place = (first - query) * stride + tile - block.key;
        const bool seen_before = first_of_all < query || place_in_group > 0;
        multiply_rows(Left<T, true>{buffers.p + place, stride}, tile_rows, dout.data + first * dout.stride, dout.stride,
                      queries, buffers.dv + tile * value_width, value_width, value_width, seen_before);
        multiply_rows(Left<T, true>{buffers.ds + place, stride}, tile_rows, q.data + first * q.stride, q.stride, queries,
                      buffers.dk + tile * width, width, width, seen_before);
      }
    }
    copy_rows(buffers.dq, width, query_end - query, size, gradients.dq + place_in_group * size + query * head.q_stride,
              head.q_stride);
  }
}

template <typename T>
void backward(const AttentionHead<T>& head, const AttentionHeadGradients<T>& gradients, T* memory) {
  const std::int64_t size = head.size;
  const std::int64_t value_size = head.value_size;
  Workspace<T> workspace(memory);
  const BackwardBuffers<T> buffers(head.queries, head.keys, size, value_size, workspace);
  transpose_into_panels(head.k, head.k_stride, head.keys, size, buffers.key_panels);
  transpose_into_panels(head.v, head.v_stride, head.keys, value_size, buffers.value_panels);
  const Rows<T> k = whole_vectors(head.k, head.k_stride, head.keys, size, buffers.k_rows);
  if (FirstKeys::of(head).any()) {  // some keys may be seen by no query
    zero(buffers.dk, (head.keys + tile_rows) * round_up<T>(size));
    zero(buffers.dv, (head.keys + tile_rows) * round_up<T>(value_size));
  }
  for (std::int64_t place = 0; place < head.group; ++place) backward_queries(head, gradients, place, k, buffers);
  copy_rows(buffers.dk, round_up<T>(size), head.keys, size, gradients.dk, head.k_stride);
  copy_rows(buffers.dv, round_up<T>(value_size), head.keys, value_size, gradients.dv, head.v_stride);
}

template <typename T>
std::int64_t workspace(std::int64_t queries, std::int64_t keys, std::int64_t size, std::int64_t value_size) {
  Workspace<T> forward_pass(nullptr);
  Workspace<T> backward_pass(nullptr);
  ForwardBuffers<T>(keys, size, value_size, forward_pass);
  BackwardBuffers<T>(queries, keys, size, value_size, backward_pass);
  return larger(forward_pass.used(), backward_pass.used());
}

template <typename T>
constexpr AttentionKernels<T> kernels{workspace<T>, forward<T>, backward<T>};

}  // namespace

const KernelTable<AttentionKernels> attention_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
