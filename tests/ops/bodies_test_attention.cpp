#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "device/host_team.hpp"
#include "ops/attention/attention_tile_arguments.hpp"
#include "ops/compare.hpp"

// The attention kernels of GPUs, run by teams of threads, against the operation on the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

struct Case {
  std::int64_t batch, queries, keys, key_rows, heads, kv_heads, size;
  bool packed, causal, padded;
  int rows;  // of a tile
  std::int64_t window = 0;
  std::int64_t document = 0;  // above 0: keys lie in documents of so many
};

template <typename T>
struct Pass {
  explicit Pass(const Case& c)
      : q(random_tensor<T>({c.batch, c.queries, (c.heads + (c.packed ? 2 * c.kv_heads : 0)) * c.size}, 1)),
        kv(c.packed ? Tensor<T>() : random_tensor<T>({c.batch, c.key_rows, 2 * c.kv_heads * c.size}, 2)),
        dout(random_tensor<T>({c.batch, c.queries, c.heads * c.size}, 3)),
        forward{.options = {.heads = static_cast<int>(c.heads),
                            .kv_heads = static_cast<int>(c.kv_heads),
                            .causal = c.causal,
                            .window = c.window,
                            .keys = c.keys},
                .q = q,
                .kv = kv,
                .out = Tensor<T>(dout.shape()),
                .exponentials = Tensor<Accumulate<T>>({2, c.batch, c.heads, c.queries})} {
    if (c.document > 0) {
      forward.first_keys = Tensor<std::int32_t>({c.batch, c.queries});
      for (std::int64_t i = 0; i < c.batch * c.queries; ++i) {
        const std::int64_t place = i % c.queries + c.keys - c.queries;
        forward.first_keys.data()[i] = static_cast<std::int32_t>(place / c.document * c.document);
      }
    }
    if (!c.padded) return;
    forward.key_padding_mask = Tensor<std::int32_t>({c.batch, c.key_rows});
    for (std::int64_t i = 0; i < c.batch * c.key_rows; ++i) {
      forward.key_padding_mask.data()[i] = i % c.key_rows % 5 == i / c.key_rows % 2 ? 1 : 0;
    }
  }
  AttentionSizes sizes() const { return checked_attention_sizes(forward); }

  // Of the results `of` of the forward pass.
  AttentionBackward<T, Cpu> backward(const AttentionForward<T, Cpu>& of) const {
    const auto unset = [](const Tensor<T>& like) {
      return like.defined() ? Tensor<T>::full(like.shape(), static_cast<T>(7.0f)) : Tensor<T>();
    };
    return {.options = of.options,
            .q = of.q,
            .kv = of.kv,
            .key_padding_mask = of.key_padding_mask,
            .first_keys = of.first_keys,
            .out = of.out,
            .exponentials = of.exponentials,
            .dout = dout,
            .dq = unset(q),
            .dkv = unset(kv)};
  }

  Tensor<T> q, kv, dout;
  AttentionForward<T, Cpu> forward;
};

template <typename Kernel>
void run_tiles(int team_size, Kernel kernel, int rows) {
  using A = typename Kernel::A;
  kernel.rows = rows;
  std::vector<A> scratch(static_cast<std::size_t>(Kernel::counts.elements(rows, kernel.size())));
  device::run_host_team(team_size, [&](const device::HostTeam& team) {
    for (std::int64_t item = 0; item < kernel.items(); ++item) {
      kernel(team, item, scratch.data());
      team.wait();
    }
  });
}

// The kernels and the CPU operation round alike but add in another order.
template <typename T>
double bound() {
  return std::is_same_v<T, bfloat16> ? 0x1p-6 : std::is_same_v<T, float16> ? 0x1p-9 : tolerance<T>(4e-5);
}
template <typename T>
void require_same(const Tensor<T>& got, const Tensor<T>& expected) {
  require_close(got, as_doubles(expected), bound<T>());
}

}  // namespace

TEMPLATE_TEST_CASE("attention of a GPU's kernels is that of the CPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  for (const Case& c :
       {Case{2, 5, 5, 5, 2, 2, 8, true, true, false, 4}, Case{1, 13, 13, 13, 4, 2, 5, true, false, false, 4},
        Case{1, 3, 9, 9, 1, 1, 16, false, false, false, 2}, Case{2, 4, 7, 9, 6, 2, 3, false, true, true, 4},
        Case{2, 1, 10, 17, 2, 1, 20, false, true, false, 8}, Case{1, 40, 40, 40, 3, 1, 7, true, true, true, 16},
        Case{1, 1, 1, 1, 1, 1, 1, true, true, false, 32}, Case{2, 40, 40, 40, 2, 1, 5, true, true, false, 4, 0, 9},
        Case{1, 23, 29, 31, 2, 2, 4, false, true, true, 8, 5, 0}, Case{2, 21, 21, 21, 2, 1, 4, true, true, false, 4, 3, 8},
        Case{1, 7, 12, 12, 2, 1, 4, false, false, false, 2, 0, 4}}) {
    for (const int team_size : {1, 3}) {
      CAPTURE(c.queries, c.keys, c.heads, c.kv_heads, c.size, c.packed, c.causal, c.padded, c.rows, c.window, c.document,
              team_size);
      const Pass<T> there(c);
      const Pass<T> here(c);
      scaled_dot_product_attention(here.forward);
      run_tiles(team_size, attention_forward_tile(there.forward, there.sizes()), c.rows);
      require_same(there.forward.out, here.forward.out);
      require_same(there.forward.exponentials, here.forward.exponentials);

      const auto expected = here.backward(here.forward);
      const auto got = there.backward(here.forward);
      scaled_dot_product_attention_backward(expected);
      const Tensor<Accumulate<T>> delta(got.exponentials.narrow(0, 1).shape());
      const auto tiles = attention_backward_tiles(got, there.sizes(), delta);
      run_tiles(team_size, tiles.queries, c.rows);
      run_tiles(team_size, tiles.keys, c.rows);
      require_same(got.dq, expected.dq);
      if (!c.packed) require_same(got.dkv, expected.dkv);  // rows that are not in use stay as they were in both
    }
  }
}

TEST_CASE("a query that sees no key gets zeros from a GPU's kernels too") {
  Pass<float> pass({1, 3, 6, 6, 2, 2, 4, false, false, false, 2});
  pass.forward.key_padding_mask = Tensor<std::int32_t>::full({1, 6}, 1);
  run_tiles(2, attention_forward_tile(pass.forward, pass.sizes()), 2);
  for (const float element : pass.forward.out.span()) REQUIRE(element == 0);
  for (const float element : pass.forward.exponentials.span()) REQUIRE(element == 0);
  const auto backward = pass.backward(pass.forward);
  const Tensor<float> delta(pass.forward.exponentials.narrow(0, 1).shape());
  const auto tiles = attention_backward_tiles(backward, pass.sizes(), delta);
  run_tiles(2, tiles.queries, 2);
  run_tiles(2, tiles.keys, 2);
  for (const float element : backward.dq.span()) REQUIRE(element == 0);
  for (const float element : backward.dkv.span()) REQUIRE(element == 0);
}

TEST_CASE("a query that is not finite is not hidden by a GPU's kernels") {
  Pass<float> pass({1, 3, 6, 6, 2, 2, 4, false, false, false, 2});
  pass.q.data()[1] = std::numeric_limits<float>::quiet_NaN();  // the tensor of the pass too
  run_tiles(2, attention_forward_tile(pass.forward, pass.sizes()), 2);
  CHECK(std::isnan(pass.forward.out.data()[0]));
  CHECK(std::isnan(pass.forward.exponentials.at(1, 0, 0, 0)));
  CHECK(std::isfinite(pass.forward.out.data()[pass.forward.out.numel() - 1]));
}

TEST_CASE("a GPU's kernels take scores of any finite size, and negative scales with hidden keys") {
  for (const bool padded : {false, true}) {
    Pass<float> pass({1, 2, 4, 4, 1, 1, 1, false, false, padded, 2});
    pass.forward.options.scale = -1;
    std::fill_n(pass.q.data(), 2, 1.0F);  // the tensors of the pass too
    std::copy_n(std::array{3e31F, 1.0F, 2e31F, 2.0F, 2e31F, 4.0F, 2.5e31F, 8.0F}.data(), 8, pass.kv.data());
    std::fill_n(pass.dout.data(), 2, 1.0F);
    run_tiles(2, attention_forward_tile(pass.forward, pass.sizes()), 2);
    for (const float element : pass.forward.out.span()) CHECK(element == 3);
    const auto backward = pass.backward(pass.forward);
    const Tensor<float> delta({1, 1, 2});
    const auto tiles = attention_backward_tiles(backward, pass.sizes(), delta);
    run_tiles(2, tiles.queries, 2);
    run_tiles(2, tiles.keys, 2);
    const float shares[] = {0, 1, 1, 0};
    for (std::int64_t key = 0; key < 4; ++key) CHECK(backward.dkv.at(0, key, 1) == shares[key]);
  }
}

TEST_CASE("a GPU's attention of large scores does not overflow") {
  Pass<float> pass({1, 33, 33, 33, 1, 1, 16, true, true, false, 8});
  for (float& element : pass.q.span()) element *= 30;  // the tensor of the pass too
  run_tiles(1, attention_forward_tile(pass.forward, pass.sizes()), 8);
  const auto backward = pass.backward(pass.forward);
  const Tensor<float> delta(pass.forward.exponentials.narrow(0, 1).shape());
  const auto tiles = attention_backward_tiles(backward, pass.sizes(), delta);
  run_tiles(1, tiles.queries, 8);
  run_tiles(1, tiles.keys, 8);
  for (const float element : pass.forward.out.span()) REQUIRE(std::isfinite(element));
  for (const float element : backward.dq.span()) REQUIRE(std::isfinite(element));
}

TEST_CASE("tiles of attention fill the scratch memory and fit it") {
  const auto rows = [](auto kernel, std::int64_t size) {
    return tile_rows(decltype(kernel)::counts, size, sizeof(typename decltype(kernel)::A));
  };
  CHECK(rows(AttentionForwardTile<float>{}, 64) == 32);
  CHECK(rows(AttentionForwardTile<bfloat16>{}, 128) == 16);
  CHECK(rows(AttentionQueryGradientTile<float>{}, 64) == 32);
  CHECK(rows(AttentionKeyGradientTile<float>{}, 64) == 16);
  CHECK(rows(AttentionKeyGradientTile<double>{}, 128) == 4);
  CHECK(rows(AttentionKeyGradientTile<double>{}, 1000) == 1);
  CHECK(rows(AttentionKeyGradientTile<double>{}, 1100) == 0);
  for (std::int64_t size = 1; size <= 1000; ++size) {
    const TileCounts counts = AttentionKeyGradientTile<double>::counts;
    CHECK(static_cast<std::size_t>(counts.elements(tile_rows(counts, size, 8), size)) * 8 <= scratch_bytes);
  }
}
