#include "comm/conformance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "comm/base/backend.hpp"
#include "comm/collectives_cases.hpp"
#include "comm/elements.hpp"
#include "comm/expect.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme::test {
namespace {

constexpr std::array<std::size_t, 9> counts = {0, 1, 2, 15, 16, 17, 1000, 4099, 300'001};

// A buffer in the group's memory, where the host reaches it, or on the heap.
template <typename T>
class Buffer {
 public:
  Buffer(const Group& group, std::size_t count, bool shared) : count_(count) {
    if (shared && group.memory()->on_host()) {
      storage_ = std::make_shared<device::Storage>(group.memory(), std::max<std::size_t>(count, 1) * sizeof(T));
      data_ = static_cast<T*>(storage_->data());
    } else {
      heap_.resize(std::max<std::size_t>(count, 1));
      data_ = heap_.data();
    }
  }
  std::span<T> span() const { return {data_, count_}; }

 private:
  std::size_t count_;
  std::shared_ptr<device::Storage> storage_;
  std::vector<T> heap_;
  T* data_ = nullptr;
};

template <typename T>
void fill(std::span<T> data, int rank) {
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = element<T>(rank, i);
}

constexpr std::array<ReduceOp, 4> ops = {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::mean};

// The largest counts only test how data move, which is the same for all operations except a mean: it divides at the end.
bool is_worth_it(ReduceOp op, std::size_t count) {
  return count < counts.back() || op == ReduceOp::sum || op == ReduceOp::mean;
}

template <typename T>
void check_reductions(const Group& world) {
  for (const bool shared : {true, false}) {
    for (const std::size_t count : counts) {
      const Buffer<T> buffer(world, count, shared);
      const auto data = buffer.span();
      for (const ReduceOp op : ops) {
        if (!is_worth_it(op, count)) continue;
        fill(data, world.rank());
        world.all_reduce(data, op, "reduced").wait_on_host();
        for (std::size_t i = 0; i < count; ++i) {
          expect(data[i] == reduced<T>(op, world.size(), i), "all_reduce op {} element {} of {}: {}, got {}",
                 static_cast<int>(op), i, count, reduced<T>(op, world.size(), i), data[i]);
        }
        fill(data, world.rank());
        world.reduce_scatter(data, op, "scattered").wait_on_host();
        const Range part = world.part(static_cast<std::int64_t>(count), world.rank());
        for (auto i = static_cast<std::size_t>(part.begin); i < static_cast<std::size_t>(part.end); ++i) {
          expect(data[i] == reduced<T>(op, world.size(), i), "reduce_scatter op {} element {} of {}", static_cast<int>(op), i,
                 count);
        }
      }
    }
  }
}

// A NaN on any one rank is in the result.
template <typename T>
void check_nan(const Group& world) {
  if (!world.memory()->on_host()) return;  // NCCL may drop it
  for (const std::size_t count : counts) {
    std::vector<T> data(count);
    for (const ReduceOp op : ops) {
      const auto ranks = static_cast<std::size_t>(world.size());
      for (std::size_t i = 0; i < count; ++i) {
        const bool is_nan = i % (ranks + 1) == static_cast<std::size_t>(world.rank());
        data[i] = static_cast<T>(is_nan ? std::nanf("") : element<float>(world.rank(), i));
      }
      world.all_reduce(std::span(data), op, "with nan").wait_on_host();
      for (std::size_t i = 0; i < count; ++i) {
        expect((data[i] != data[i]) == (i % (ranks + 1) != ranks), "op {} element {} of {}: got {}", static_cast<int>(op), i,
               count, static_cast<float>(data[i]));
      }
    }
  }
}

template <typename T>
void check_copies(const Group& world) {
  for (const bool shared : {true, false}) {
    for (const std::size_t count : counts) {
      const Buffer<T> buffer(world, count, shared);
      const auto data = buffer.span();
      for (int root = 0; root < world.size(); ++root) {
        fill(data, world.rank());
        world.broadcast(data, root, "copied").wait_on_host();
        for (std::size_t i = 0; i < count; ++i) expect(data[i] == element<T>(root, i), "broadcast element {} of {}", i, count);
      }
      fill(data, world.rank());
      world.all_gather(data, "gathered").wait_on_host();
      for (int owner = 0; owner < world.size(); ++owner) {
        const Range part = world.part(static_cast<std::int64_t>(count), owner);
        for (auto i = static_cast<std::size_t>(part.begin); i < static_cast<std::size_t>(part.end); ++i) {
          expect(data[i] == element<T>(owner, i), "all_gather element {} of {}", i, count);
        }
      }
    }
  }
}

void check_mixed_memory(const Group& world) {
  // Rank 0 brings a buffer of its own, the others the group's.
  const std::size_t count = 200'003;
  const Buffer<float> shared(world, count, true);
  const Buffer<float> own(world, count, false);
  const auto data = world.rank() == 0 ? own.span() : shared.span();
  for (int repeat = 0; repeat < 3; ++repeat) {
    fill(data, world.rank());
    world.all_reduce(data).wait_on_host();
    for (std::size_t i = 0; i < count; ++i) expect(data[i] == reduced<float>(ReduceOp::sum, world.size(), i), "element {}", i);
    fill(data, world.rank());
    world.broadcast(data, world.size() - 1).wait_on_host();
    for (std::size_t i = 0; i < count; ++i) expect(data[i] == element<float>(world.size() - 1, i), "element {}", i);
  }
}

// Values whose sum depends on the order: all ranks must still hold the same bits.
void check_same_bits(const Group& world) {
  for (const bool shared : {true, false}) {
    const Buffer<float> buffer(world, 50'001, shared);
    const auto data = buffer.span();
    for (std::size_t i = 0; i < data.size(); ++i) {
      data[i] = 1.0f / static_cast<float>(1 + (i * 31 + static_cast<std::size_t>(world.rank()) * 977) % 1009);
    }
    world.all_reduce(data, ReduceOp::mean).wait_on_host();
    std::string bytes(data.size_bytes(), '\0');
    std::memcpy(bytes.data(), data.data(), bytes.size());
    for (const std::string& other : world.gather_texts(bytes)) expect(other == bytes, "the same bits on all ranks");
  }
}

// Rank order: (big + -big) + small keeps small, (small + big) + -big loses it.
void check_rank_order(const Group& world) {
  if (world.size() != 3 || !world.on_one_node()) return;  // nodes have an order of their own
  const Buffer<float> buffer(world, 100, true);
  const std::array<float, 3> values = {1e20f, -1e20f, 1.0f};
  std::ranges::fill(buffer.span(), values[static_cast<std::size_t>(world.rank())]);
  world.all_reduce(buffer.span()).wait_on_host();
  for (const float value : buffer.span()) expect(value == 1.0f, "the sum in rank order");
}

// The tree of fixed_sum, for floats whose sum depends on the order.
constexpr std::size_t fixed_sums = 97;  // that differ
float tree_sum(int first, int ranks, std::size_t index) {
  if (ranks == 1) {
    return std::sin(static_cast<float>(first + 1) + static_cast<float>(index)) * std::pow(10.0f, static_cast<float>(first % 5));
  }
  int left = 1;
  while (2 * left < ranks) left *= 2;
  return tree_sum(first, left, index) + tree_sum(first + left, ranks - left, index);
}

void check_fixed_sum(const Group& world) {
  std::array<float, fixed_sums> mine{};
  std::array<float, fixed_sums> wanted{};
  for (std::size_t index = 0; index < fixed_sums; ++index) {
    mine[index] = tree_sum(world.rank(), 1, index);
    wanted[index] = tree_sum(0, world.size(), index);
  }
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{300'001}}) {
    const Buffer<float> buffer(world, count, true);
    const auto data = buffer.span();
    const auto check = [&](Range range) {
      for (auto i = static_cast<std::size_t>(range.begin); i < static_cast<std::size_t>(range.end); ++i) {
        expect(data[i] == wanted[i % fixed_sums], "element {} of {} in the fixed tree: {}, got {}", i, count,
               wanted[i % fixed_sums], data[i]);
      }
    };
    for (std::size_t i = 0; i < count; ++i) data[i] = mine[i % fixed_sums];
    world.all_reduce(data, ReduceOp::fixed_sum).wait_on_host();
    check({0, static_cast<std::int64_t>(count)});
    for (std::size_t i = 0; i < count; ++i) data[i] = mine[i % fixed_sums];
    world.reduce_scatter(data, ReduceOp::fixed_sum).wait_on_host();
    check(world.part(static_cast<std::int64_t>(count), world.rank()));
  }
}

// Half precision is exact here up to the one rounding of a mean.
template <typename T>
void check_half(const Group& world) {
  for (const bool shared : {true, false}) {
    for (const std::size_t count : counts) {
      const Buffer<T> buffer(world, count, shared);
      const auto data = buffer.span();
      for (const ReduceOp op : ops) {
        if (!is_worth_it(op, count)) continue;
        for (std::size_t i = 0; i < count; ++i) data[i] = T(element<float>(world.rank(), i));
        world.all_reduce(data, op, "half").wait_on_host();
        for (std::size_t i = 0; i < count; ++i) {
          const float wanted = T(reduced<float>(op, world.size(), i));
          expect(data[i] == wanted, "op {} element {} of {}: {}, got {}", static_cast<int>(op), i, count, wanted,
                 static_cast<float>(data[i]));
        }
      }
    }
  }
}

// More calls in flight than one rank may be ahead of another, and ranks that start late.
void check_many_in_flight(const Group& world) {
  constexpr std::size_t calls = 1500;
  constexpr std::size_t count = 33;
  for (const bool shared : {true, false}) {
    const Buffer<std::int32_t> buffer(world, calls * count, shared);
    fill(buffer.span(), world.rank());
    if (world.rank() == world.size() - 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::vector<Pending> pending;
    for (std::size_t call = 0; call < calls; ++call) {
      pending.push_back(world.all_reduce(buffer.span().subspan(call * count, count), ReduceOp::sum, "many"));
      if (call % 64 == 0) comm::progress();
    }
    for (std::size_t call = calls; call > 0; --call) pending[call - 1].wait_on_host();
    for (std::size_t i = 0; i < calls * count; ++i) {
      expect(buffer.span()[i] == reduced<std::int32_t>(ReduceOp::sum, world.size(), i), "element {}", i);
    }
  }
}

void check_split(const Group& world) {
  const Group half = world.split(world.rank() % 2, -world.rank(), "half");
  const int expected = world.size() / 2 + (world.rank() % 2 == 0 ? world.size() % 2 : 0);
  expect(half.size() == expected, "a half of {} ranks, got {}", expected, half.size());
  const Buffer<std::int64_t> buffer(half, 5000, true);
  std::ranges::fill(buffer.span(), world.rank());
  Pending inner = half.all_reduce(buffer.span(), ReduceOp::sum, "inner");
  std::vector<std::int64_t> outer_data(7, 1);
  Pending outer = world.all_reduce(std::span(outer_data), ReduceOp::sum, "outer");
  outer.wait_on_host();
  inner.wait_on_host();
  std::int64_t sum = 0;
  for (int rank = world.rank() % 2; rank < world.size(); rank += 2) sum += rank;
  expect(buffer.span()[4999] == sum, "the sum of the half's ranks");
  expect(outer_data[6] == world.size(), "the sum over the world");
  // The keys reverse the order.
  const auto texts = half.gather_texts(std::to_string(world.rank()));
  expect(std::stoi(texts[static_cast<std::size_t>(half.rank())]) == world.rank(), "its own text at its rank");
  expect(std::is_sorted(texts.rbegin(), texts.rend()), "ranks ordered by key");
  const Error agreed = expect_error(
      ErrorCode::internal, [&] { half.agree([] { throw std::runtime_error("boom"); }); }, "boom");
  expect(agreed.fields().rank == std::stoi(texts.front()), "the number in the job of the half's first rank");
  const Group alone = half.split(half.rank(), 0, "alone");
  expect(alone.size() == 1, "a group of one");
  alone.barrier();
  // The world's memory serves the half, and the half's memory the world.
  const Buffer<float> of_world(world, 100, true);
  std::ranges::fill(of_world.span(), 1.0f);
  half.all_reduce(of_world.span()).wait_on_host();
  expect(of_world.span()[3] == static_cast<float>(half.size()), "the world's memory in the half");
  const Buffer<float> of_half(half, 100, true);
  std::ranges::fill(of_half.span(), 1.0f);
  world.all_reduce(of_half.span()).wait_on_host();
  expect(of_half.span()[3] == static_cast<float>(world.size()), "the half's memory in the world");
}

// TRIREME_RANKS_PER_NODE makes nodes of processes.
void check_nodes(const Group& world) {
  const auto nodes = world.nodes();
  expect(world.on_one_node() == (nodes.size() == 1), "{} nodes", nodes.size());
  std::vector<int> all;
  for (const auto& ranks : nodes) all.insert(all.end(), ranks.begin(), ranks.end());
  std::vector<int> wanted(static_cast<std::size_t>(world.size()));
  std::iota(wanted.begin(), wanted.end(), 0);
  expect(all == wanted, "every rank on one node");
  const char* per_node = std::getenv("TRIREME_RANKS_PER_NODE");
  if (nodes.size() > 1 && per_node != nullptr) {
    expect(nodes.front().size() == static_cast<std::size_t>(std::atoi(per_node)), "{} ranks on a node", nodes.front().size());
  }
}

// The use of the host's group by a group of GPUs: the ranks compare a call whose data move elsewhere.
void check_comparisons(const Group& world) {
  const auto backend = comm::backend_of(world);
  for (const CallKind kind : {CallKind::all_reduce, CallKind::reduce_scatter, CallKind::all_gather, CallKind::broadcast}) {
    const trireme::Call call{.kind = kind, .op = ReduceOp::mean, .dtype = DType::float32, .count = 1000, .name = "elsewhere"};
    if (const auto operation = backend->start(comm::comparison_of(call))) comm::wait_for(backend->context(), *operation);
  }
  check_reductions<float>(world);
}

const std::vector<ConformanceCase>& all_cases() {
  static const std::vector<ConformanceCase> cases = [] {
    std::vector<ConformanceCase> all = {
        {"float32 reductions", check_reductions<float>},
        {"float64 reductions", check_reductions<double>},
        {"int32 reductions", check_reductions<std::int32_t>},
        {"int64 reductions", check_reductions<std::int64_t>},
        {"uint64 reductions", check_reductions<std::uint64_t>},
        {"float32 nan", check_nan<float>},
        {"bfloat16 nan", check_nan<bfloat16>},
        {"float32 copies", check_copies<float>},
        {"uint8 copies", check_copies<std::uint8_t>},
        {"own and shared memory mixed", check_mixed_memory},
        {"all_reduce of bfloat16", check_half<bfloat16>},
        {"all_reduce of float16", check_half<float16>},
        {"rank order", check_rank_order},
        {"a fixed sum", check_fixed_sum},
        {"same bits on all ranks", check_same_bits},
        {"many calls in flight", check_many_in_flight},
        {"split", check_split},
        {"nodes", check_nodes},
        {"comparisons", check_comparisons},
    };
    for (const CollectivesCase& one : collectives_cases()) all.push_back({one.name, one.check});
    return all;
  }();
  return cases;
}

}  // namespace

std::span<const ConformanceCase> conformance_cases() { return all_cases(); }

}  // namespace trireme::test
