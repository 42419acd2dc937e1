#include <cmath>
#include <stdexcept>
#include <vector>

#include "comm/expect.hpp"
#include "comm/nccl_ranks.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/device/graph.hpp"
#include "trireme/device/stream.hpp"
#include "trireme/tensor/tensor.hpp"

// The collectives of ranks with a GPU each, by NCCL.
namespace {

using namespace trireme;
using namespace trireme::test;

template <typename T>
T value_of(int rank, std::int64_t i) {
  return static_cast<T>(static_cast<float>((i * 3 + rank) % 7));
}

template <typename T>
std::vector<T> values_of(int rank, std::int64_t count) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(value_of<T>(rank, i));
  return values;
}

template <typename T>
std::span<T> span_of(Tensor<T, Cuda>& tensor) {
  return {tensor.data(), static_cast<std::size_t>(tensor.numel())};
}

// The values are small whole numbers: every order of addition gives the same.
template <typename T>
void check_collectives(const Group& gpu) {
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{37}, std::int64_t{192}, std::int64_t{100'003}}) {
    const auto fresh = [&] { return Tensor<T, Cuda>::from({count}, values_of<T>(gpu.rank(), count)); };
    const auto expect_equal = [&](const Tensor<T, Cuda>& data, Range range, const char* what, auto wanted) {
      const Tensor<T> got = data.template to<Cpu>();
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        expect(got.data()[i] == wanted(i), "element {} of {} of {} {}", i, what, count, name_of(dtype_of<T>));
      }
    };
    const Range all{0, count};
    const auto sum = [&](std::int64_t i) {
      float total = 0;
      for (int rank = 0; rank < gpu.size(); ++rank) total += static_cast<float>(value_of<T>(rank, i));
      return static_cast<T>(total);
    };
    const auto highest = [&](std::int64_t i) {
      T most = value_of<T>(0, i);
      for (int rank = 1; rank < gpu.size(); ++rank) most = most < value_of<T>(rank, i) ? value_of<T>(rank, i) : most;
      return most;
    };
    Tensor<T, Cuda> data = fresh();
    gpu.all_reduce(span_of(data)).wait_on_host();
    expect_equal(data, all, "a sum", sum);
    data = fresh();
    gpu.all_reduce(span_of(data), ReduceOp::fixed_sum).wait_on_host();
    expect_equal(data, all, "a fixed sum", sum);
    data = fresh();
    gpu.all_reduce(span_of(data), ReduceOp::max).wait_on_stream();
    expect_equal(data, all, "a maximum", highest);
    data = fresh();
    gpu.reduce_scatter(span_of(data)).wait_on_stream();
    expect_equal(data, gpu.part(count, gpu.rank()), "a reduce_scatter", sum);
    data = fresh();
    gpu.all_gather(span_of(data)).wait_on_stream();
    for (int rank = 0; rank < gpu.size(); ++rank) {
      expect_equal(data, gpu.part(count, rank), "an all_gather", [rank](std::int64_t i) { return value_of<T>(rank, i); });
    }
    data = fresh();
    gpu.broadcast(span_of(data), gpu.size() - 1).wait_on_host();
    expect_equal(data, all, "a broadcast", [&](std::int64_t i) { return value_of<T>(gpu.size() - 1, i); });
  }
}

void check_memory(const Group& gpu) {
  constexpr std::size_t count = 1 << 18;
  std::vector<float> host(count, static_cast<float>(gpu.rank() + 1));
  const device::Storage storage(gpu.memory(), count * sizeof(float));
  device::copy_bytes(Cuda{}, storage.data(), Cpu{}, host.data(), storage.bytes());
  gpu.all_reduce(std::span(static_cast<float*>(storage.data()), count), ReduceOp::mean).wait_on_stream();
  device::copy_bytes(Cpu{}, host.data(), Cuda{}, storage.data(), storage.bytes());
  const float mean = static_cast<float>(gpu.size() + 1) / 2;
  for (const float value : host) expect(std::abs(value - mean) < 1e-5F, "the mean {}, not {}", mean, value);
}

void check_groups_and_messages(const Group& gpu) {
  const Group pair = gpu.split(gpu.rank() / 2, gpu.rank(), "pair");
  auto data = Tensor<float, Cuda>::full({1000}, static_cast<float>(gpu.rank()));
  pair.all_reduce(span_of(data)).wait_on_host();
  expect(data.narrow(999, 1).item() == static_cast<float>(4 * (gpu.rank() / 2) + 1), "the sum of a pair");
  const int next = (gpu.rank() + 1) % gpu.size();
  const int previous = (gpu.rank() + gpu.size() - 1) % gpu.size();
  const auto sent = Tensor<float, Cuda>::full({5000}, static_cast<float>(gpu.rank()));
  gpu.send(std::span<const float>(sent.data(), 5000), next, 3);
  auto received = Tensor<float, Cuda>({5000});
  gpu.receive(span_of(received), previous, 3).wait_on_host();
  expect(received.narrow(4999, 1).item() == static_cast<float>(previous), "the message of the rank before");
}

void check_host(const Group& gpu) {
  std::vector<double> host(100, gpu.rank() + 1.0);
  gpu.all_reduce(std::span(host)).wait_on_host();
  expect(host[99] == gpu.size() * (gpu.size() + 1) / 2.0, "a sum on the host");
}

// One rank's part of it is launched with other numbers than it was recorded with.
void check_graph(const Group& gpu) {
  auto data = Tensor<float, Cuda>::full({5000}, 1.0F);
  gpu.all_reduce(span_of(data)).wait_on_stream();
  const device::Graph graph([&] { gpu.all_reduce(span_of(data)).wait_on_stream(); });
  for (const float times : {2.0F, 3.0F}) {
    const float own = times * static_cast<float>(gpu.rank());
    device::fill(Cuda{}, data.data(), &own, sizeof(own), 5000);
    graph.launch();
    device::Event done;
    device::current_stream().record(done);
    gpu.wait_until([&] { return done.is_done(); }, "a launch");
    expect(data.narrow(4999, 1).item() == times * static_cast<float>(gpu.size() * (gpu.size() - 1)) / 2, "a recorded sum");
  }
}

int check_all(const Group& gpu) {
  check_collectives<float>(gpu);
  check_collectives<double>(gpu);
  check_collectives<bfloat16>(gpu);
  check_collectives<float16>(gpu);
  check_collectives<std::int64_t>(gpu);
  check_memory(gpu);
  check_groups_and_messages(gpu);
  check_host(gpu);
  check_graph(gpu);
  return 0;
}

// The last rank fails while the GPUs of the others wait for its own.
int fail(const Group& gpu) {
  auto data = Tensor<float, Cuda>::full({1 << 20}, 1.0F);
  gpu.all_reduce(span_of(data)).wait_on_host();
  if (gpu.rank() == gpu.size() - 1) throw std::runtime_error("boom");
  gpu.all_reduce(span_of(data)).wait_on_stream();
  device::current_stream().wait();
  gpu.barrier("after");
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return run_nccl_ranks(argc, argv, check_all, fail); }
