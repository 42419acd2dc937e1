#include <chrono>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "comm/conformance.hpp"
#include "comm/expect.hpp"
#include "comm/fake_nccl.hpp"
#include "comm/nccl/collectives.hpp"
#include "comm/nccl/gpu_of_rank.hpp"
#include "device/fake_gpu.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/device/cuda.hpp"

using namespace trireme;
using namespace trireme::test;
using namespace std::chrono_literals;

namespace {

using Check = std::function<void(const Group& gpu)>;

int run_on(Group make(const Group& host), int ranks, const Check& check, std::chrono::milliseconds deadline = 20s) {
  const int code = launch(BackendKind::thread, {.ranks = ranks, .deadline = deadline}, [&](const Group& host) {
    check(make(host));
    return 0;
  });
  CHECK(failed_checks.exchange(0) == 0);
  return code;
}
int run(int ranks, const Check& check, std::chrono::milliseconds deadline = 20s) {
  return run_on(fake_nccl_group, ranks, check, deadline);
}

// Elements in the memory of the fake GPU.
template <typename T>
class GpuData {
 public:
  GpuData(const Group& gpu, std::vector<T> values)
      : storage_(gpu.memory(), values.size() * sizeof(T)), span_(static_cast<T*>(storage_.data()), values.size()) {
    std::copy(values.begin(), values.end(), on_host().begin());
  }
  std::span<T> span() { return span_; }
  std::span<T> on_host() { return reach_fake_gpu(span_); }

 private:
  device::Storage storage_;
  std::span<T> span_;
};

template <typename T>
std::vector<T> values_of(int rank, std::size_t count) {
  std::vector<T> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<T>(static_cast<float>((i * 7 + 3 * rank) % 11)));
  return values;
}

template <typename T>
void expect_same(std::span<const T> values, std::span<const T> wanted, const char* what) {
  expect(std::memcmp(values.data(), wanted.data(), wanted.size_bytes()) == 0, "{} of {} elements of {}", what, wanted.size(),
         name_of(dtype_of<T>));
}

// Every collective on the GPU gives what the same one gives on the host.
template <typename T>
void check_collectives(const Group& gpu) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{37}, std::size_t{192}, std::size_t{1000}}) {
    std::vector<T> host = values_of<T>(gpu.rank(), count);
    GpuData<T> data(gpu, host);
    const auto reset = [&] {
      host = values_of<T>(gpu.rank(), count);
      std::copy(host.begin(), host.end(), data.on_host().begin());
    };
    const auto mine = gpu.part(static_cast<std::int64_t>(count), gpu.rank());
    const auto begin = static_cast<std::size_t>(mine.begin);
    const auto size = static_cast<std::size_t>(mine.count());
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::mean, ReduceOp::fixed_sum}) {
      reset();
      gpu.all_reduce(std::span(host), op).wait_on_host();
      gpu.all_reduce(data.span(), op, "values").wait_on_host();
      expect_same<T>(data.on_host(), host, "all_reduce");
      reset();
      gpu.reduce_scatter(std::span(host), op).wait_on_host();
      gpu.reduce_scatter(data.span(), op).wait_on_host();
      expect_same<T>(data.on_host().subspan(begin, size), std::span(host).subspan(begin, size), "reduce_scatter");
    }
    reset();
    gpu.all_gather(std::span(host)).wait_on_host();
    gpu.all_gather(data.span()).wait_on_host();
    expect_same<T>(data.on_host(), host, "all_gather");
    reset();
    gpu.broadcast(std::span(host), gpu.size() - 1).wait_on_host();
    gpu.broadcast(data.span(), gpu.size() - 1).wait_on_host();
    expect_same<T>(data.on_host(), host, "broadcast");
  }
}

bool is_last(const Group& group) { return group.rank() == group.size() - 1; }

}  // namespace

TEST_CASE("all of NCCL's functions that groups call are found") {
  try {
    const comm::NcclApi api = comm::open_nccl();
    CHECK(api.all_reduce != nullptr);
  } catch (const Error& error) {
    if (std::string(error.what()).find("NCCL was not found") == std::string::npos) throw;
    WARN(error.what());
  }
}

TEST_CASE("element types and operations have NCCL's names") {
  CHECK(comm::nccl_type(DType::float32) == ncclFloat32);
  CHECK(comm::nccl_type(DType::float64) == ncclFloat64);
  CHECK(comm::nccl_type(DType::bfloat16) == ncclBfloat16);
  CHECK(comm::nccl_type(DType::float16) == ncclFloat16);
  CHECK(comm::nccl_type(DType::int32) == ncclInt32);
  CHECK(comm::nccl_type(DType::int64) == ncclInt64);
  CHECK(comm::nccl_type(DType::uint64) == ncclUint64);
  CHECK_THROWS_AS(comm::nccl_type(DType::uint8), Error);
  CHECK(comm::nccl_op(ReduceOp::sum) == ncclSum);
  CHECK(comm::nccl_op(ReduceOp::min) == ncclMin);
  CHECK(comm::nccl_op(ReduceOp::max) == ncclMax);
  CHECK(comm::nccl_op(ReduceOp::mean) == ncclAvg);
  CHECK_THROWS_AS(comm::nccl_op(ReduceOp::fixed_sum), Error);
}

TEST_CASE("what lies on the host goes through the group that the GPUs' was made of") {
  for (const auto& one : conformance_cases()) {
    INFO(one.name);
    CHECK(run(3, one.check) == 0);
  }
}

TEMPLATE_TEST_CASE("collectives on GPUs give what they give on the host", "", float, double, bfloat16, float16, std::int32_t,
                   std::int64_t, std::uint64_t) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    CHECK(run(ranks, check_collectives<TestType>) == 0);
    CHECK(run_on(fake_staged_group, ranks, check_collectives<TestType>) == 0);
  }
}

TEST_CASE("many collectives are under way and end in order") {
  CHECK(run(3, [](const Group& gpu) {
          GpuData<float> data(gpu, std::vector<float>(100, 1.0F));
          std::vector<Pending> pending;
          for (int i = 0; i < 50; ++i) pending.push_back(gpu.all_reduce(data.span()));
          while (!pending.back().done()) {
          }
          for (Pending& one : pending) expect(one.done(), "the collectives before the last are done");
          pending.clear();
          { const Pending dropped = gpu.all_reduce(data.span(), ReduceOp::max); }
          expect(data.on_host()[99] == std::pow(3.0F, 50.0F), "{}", data.on_host()[99]);
        }) == 0);
}

TEST_CASE("waiting for a collective on GPUs is up to the stream, for one on the host to the host") {
  for (const auto make : {fake_nccl_group, fake_staged_group}) {
    CHECK(run_on(make, 2, [](const Group& gpu) {
            GpuData<float> data(gpu, std::vector<float>(100, 1.0F));
            std::vector<float> host(100, 2.0F);
            gpu.all_reduce(data.span()).wait_on_stream();
            gpu.all_reduce(std::span(host)).wait_on_stream();
            expect(data.on_host()[99] == 2.0F && host[99] == 4.0F, "{} {}", data.on_host()[99], host[99]);
          }) == 0);
  }
}

TEST_CASE("nobody waits for collectives that a graph records, whatever is under way before them") {
  const int code = run(2, [](const Group& gpu) {
    GpuData<float> data(gpu, std::vector<float>(10, 1.0F));
    gpu.all_reduce(data.span()).wait_on_stream();
    {
      const FakeCapture capture;
      gpu.all_reduce(data.span(), ReduceOp::sum, "recorded").wait_on_stream();
      const Pending given_up = gpu.all_reduce(data.span(), ReduceOp::sum, "given up");
    }
    gpu.all_reduce(data.span()).wait_on_host();
    expect(data.on_host()[9] == 4, "two sums, not {}", data.on_host()[9]);
  });
  CHECK(code == 0);
}

TEST_CASE("ranks use NCCL where all have it and a GPU each") {
  using Ranks = std::vector<comm::GpuOfRank>;
  CHECK(comm::obstacle_to_nccl(Ranks{{"a", ""}, {"b", ""}}).empty());
  CHECK(comm::obstacle_to_nccl(Ranks{{"a", ""}, {"b", ""}, {"a", ""}}) == "ranks 0 and 2 share a GPU");
  CHECK(comm::obstacle_to_nccl(Ranks{{"a", ""}, {"b", "no such library"}}) == "rank 1: no such library");
  const comm::GpuOfRank read = comm::GpuOfRank::read(comm::GpuOfRank{"a", "two\nlines"}.text());
  CHECK(read.uuid == "a");
  CHECK(read.nccl_error == "two\nlines");
}

TEST_CASE("messages between GPUs arrive by tag, in order") {
  CHECK(run(2, [](const Group& gpu) {
          GpuData<std::int32_t> data(gpu, {gpu.rank(), 10 + gpu.rank()});
          const int other = 1 - gpu.rank();
          gpu.send(std::span<const std::int32_t>(data.span().first(1)), other, 1);
          gpu.send(std::span<const std::int32_t>(data.span().last(1)), other, 2);
          GpuData<std::int32_t> got(gpu, {-1, -1});
          gpu.receive(got.span().first(1), other, 2).wait_on_host();
          gpu.receive(got.span().last(1), other, 1).wait_on_host();
          expect(got.on_host()[0] == 10 + other && got.on_host()[1] == other, "{} {}", got.on_host()[0], got.on_host()[1]);
        }) == 0);
}

TEST_CASE("a group of GPUs is divided") {
  CHECK(run(4, [](const Group& gpu) {
          const Group pair = gpu.split(gpu.rank() % 2, -gpu.rank(), "pair");
          GpuData<float> data(pair, std::vector<float>(40, static_cast<float>(gpu.rank())));
          pair.all_reduce(data.span()).wait_on_host();
          expect(data.on_host()[39] == static_cast<float>(2 + 2 * (gpu.rank() % 2)), "{}", data.on_host()[39]);
          expect(pair.rank() == (gpu.rank() < 2 ? 1 : 0), "rank {}", pair.rank());
        }) == 0);
}

TEST_CASE("ranks that call different collectives on GPUs are told so") {
  const int code = run(3, [](const Group& gpu) {
    GpuData<float> data(gpu, std::vector<float>(64, 1.0F));
    throw expect_error(
        ErrorCode::rank_mismatch,
        [&] { gpu.all_reduce(data.span().first(is_last(gpu) ? 32 : 64), ReduceOp::sum, "gradient").wait_on_host(); },
        "rank 2 called", "all_reduce(sum, 32 x float32) \"gradient on the GPU\"");
  });
  CHECK(code == 2);
}

TEST_CASE("host and GPU memory in one collective are told apart") {
  const int code = run(2, [](const Group& gpu) {
    GpuData<float> data(gpu, std::vector<float>(64, 1.0F));
    std::vector<float> host(64);
    throw expect_error(
        ErrorCode::rank_mismatch, [&] { gpu.all_reduce(is_last(gpu) ? std::span(host) : data.span()).wait_on_host(); },
        "on the GPU");
  });
  CHECK(code == 2);
}

TEST_CASE("a rank that fails ends the collectives of the others' GPUs") {
  fake_aborts = 0;
  const int code = run(3, [](const Group& gpu) {
    GpuData<float> data(gpu, std::vector<float>(64, 1.0F));
    gpu.barrier("together");
    if (is_last(gpu)) {
      std::this_thread::sleep_for(100ms);
      throw std::runtime_error("boom");
    }
    Pending pending = gpu.all_reduce(data.span());
    throw expect_error(
        ErrorCode::peer_failed, [&] { pending.wait_on_host(); }, "rank 2 failed: boom");
  });
  CHECK(code == 1);
  CHECK(fake_aborts == 2);
}

TEST_CASE("a rank that waits for its GPU is freed when another fails") {
  const int code = run(2, [](const Group& gpu) {
    GpuData<float> data(gpu, std::vector<float>(64, 1.0F));
    gpu.barrier("together");
    if (is_last(gpu)) {
      std::this_thread::sleep_for(100ms);
      throw std::runtime_error("boom");
    }
    const Pending pending = gpu.all_reduce(data.span());
    wait_for_last_stream();
    throw expect_error(
        ErrorCode::peer_failed, [&] { gpu.barrier("after"); }, "rank 1 failed: boom");
  });
  CHECK(code == 1);
}

TEST_CASE("a collective on GPUs that a rank never calls misses the deadline") {
  const auto late = [](const Group& gpu, bool on_gpu) {
    GpuData<float> data(gpu, std::vector<float>(64, 1.0F));
    gpu.barrier("together");
    if (is_last(gpu)) {
      std::this_thread::sleep_for(on_gpu ? 1500ms : 600ms);  // the watchdog waits for a second more
      return gpu.barrier("too late");
    }
    Pending pending = gpu.all_reduce(data.span(), ReduceOp::sum, "gradient");
    if (on_gpu) wait_for_last_stream();  // the watchdog's
    pending.wait_on_host();
    fail_check("a missed deadline");
  };
  CHECK(run(
            2, [&](const Group& gpu) { late(gpu, false); }, 200ms) == 3);
  CHECK(run(
            2, [&](const Group& gpu) { late(gpu, true); }, 200ms) == 3);
}

TEST_CASE("a group that NCCL can't make is an error with NCCL's words") {
  const int code = launch(BackendKind::thread, {.ranks = 2, .deadline = 20s}, [](const Group& host) {
    break_next_communicator(ncclSystemError);
    expect_error(
        ErrorCode::internal, [&] { fake_nccl_group(host); }, "ncclCommInitRankConfig");
    return 0;
  });
  CHECK(failed_checks.exchange(0) == 0);
  CHECK(code == 0);
}

TEST_CASE("an error that NCCL finds ends the job with NCCL's words") {
  const int code = run(2, [](const Group& gpu) {
    GpuData<float> data(gpu, std::vector<float>(64, 1.0F));
    gpu.barrier("together");
    if (is_last(gpu)) {
      break_last_communicator(ncclRemoteError);
      for (;;) comm::progress();
    }
    Pending pending = gpu.all_reduce(data.span());
    throw expect_error(
        ErrorCode::peer_failed, [&] { pending.wait_on_host(); }, "rank 1 failed", "remote error", "the cable is out");
  });
  CHECK(code == 1);
}

TEST_CASE("a rank without a GPU group makes the others miss the deadline") {
  const int code = launch(BackendKind::thread, {.ranks = 2, .deadline = 200ms}, [](const Group& host) {
    if (is_last(host)) {
      std::this_thread::sleep_for(500ms);
      return 0;
    }
    throw expect_error(
        ErrorCode::timeout, [&] { fake_nccl_group(host); }, "broadcast", "NCCL's id");
  });
  CHECK(failed_checks.exchange(0) == 0);
  CHECK(code == 3);
}

TEST_CASE("without a GPU the launch says so") {
  if (device::cuda_device_count() == 0) CHECK(launch(BackendKind::nccl, {}, [](const Group&) { return 0; }) == 2);
}
