// Collectives on a fake that has only start().
#include "trireme/core/collectives.hpp"

#include <algorithm>
#include <barrier>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "comm/collectives_cases.hpp"
#include "comm/expect.hpp"

using namespace trireme;
using trireme::test::collectives_cases;
using trireme::test::CollectivesCase;
using trireme::test::expect;

namespace {

// The state that the ranks of the fake share.
struct Board {
  explicit Board(int ranks) : meeting(ranks), calls(static_cast<std::size_t>(ranks)) {}

  std::barrier<> meeting;
  std::vector<Call> calls;
  std::mutex mutex;
  std::condition_variable sent;
  std::map<std::array<int, 3>, std::deque<std::vector<std::byte>>> messages;  // by sender, receiver, tag
};

// Another thread computes the result; it is copied to the caller's memory only when the caller waits.
class Result final : public PendingOperation {
 public:
  Result(std::vector<std::byte> bytes, void* to) : bytes_(std::move(bytes)), to_(to) {}
  bool done() override {
    wait_on_host();
    return true;
  }
  void wait_on_host() override {
    if (!bytes_.empty()) std::memcpy(to_, bytes_.data(), bytes_.size());
  }
  void wait_on_stream() override { wait_on_host(); }

 private:
  std::vector<std::byte> bytes_;
  void* to_;
};

template <typename T>
void add_up(const std::vector<Call>& calls, std::vector<std::byte>& result) {
  auto* to = reinterpret_cast<T*>(result.data());
  for (std::size_t i = 0; i < calls.front().count; ++i) {
    T value = static_cast<const T*>(calls[0].data)[i];
    for (std::size_t rank = 1; rank < calls.size(); ++rank) {
      const T other = static_cast<const T*>(calls[rank].data)[i];
      switch (calls.front().op) {
        case ReduceOp::min: value = std::min(value, other); break;
        case ReduceOp::max: value = std::max(value, other); break;
        default: value += other;
      }
    }
    to[i] = calls.front().op == ReduceOp::mean ? value / static_cast<T>(calls.size()) : value;
  }
}

class FakeRanks final : public Collectives {
 public:
  FakeRanks(Board& board, int rank) : Collectives(rank, static_cast<int>(board.calls.size())), board_(board) {}

 private:
  Pending start(const Call& call) const override {
    if (call.kind == CallKind::send) return put(call);
    if (call.kind == CallKind::receive) return take(call);
    board_.calls[static_cast<std::size_t>(rank())] = call;
    board_.meeting.arrive_and_wait();
    std::vector<std::byte> result = compute(call);
    board_.meeting.arrive_and_wait();
    return Pending(std::make_unique<Result>(std::move(result), call.data));
  }

  std::vector<std::byte> compute(const Call& call) const {
    const auto* own = static_cast<const std::byte*>(call.data);
    std::vector<std::byte> result(own, own + call.bytes());
    if (call.kind == CallKind::broadcast) {
      const auto* data = static_cast<const std::byte*>(board_.calls[static_cast<std::size_t>(call.peer)].data);
      std::copy_n(data, result.size(), result.begin());
    } else if (call.kind == CallKind::all_gather) {
      for (int owner = 0; owner < size(); ++owner) {
        const Range range = part(static_cast<std::int64_t>(call.count), owner);
        const auto begin = range.begin * static_cast<std::int64_t>(size_of(call.dtype));
        const auto bytes = range.count() * static_cast<std::int64_t>(size_of(call.dtype));
        const auto* data = static_cast<const std::byte*>(board_.calls[static_cast<std::size_t>(owner)].data);
        std::copy_n(data + begin, bytes, result.begin() + begin);
      }
    } else if (call.dtype == DType::float32) {
      add_up<float>(board_.calls, result);
    } else if (call.dtype == DType::float64) {
      add_up<double>(board_.calls, result);
    } else if (call.dtype == DType::int64) {
      add_up<std::int64_t>(board_.calls, result);
    }
    return result;
  }

  Pending put(const Call& call) const {
    const auto* data = static_cast<const std::byte*>(call.data);
    const std::lock_guard lock(board_.mutex);
    board_.messages[{rank(), call.peer, call.tag}].emplace_back(data, data + call.bytes());
    board_.sent.notify_all();
    return {};
  }

  Pending take(const Call& call) const {
    std::unique_lock lock(board_.mutex);
    auto& queue = board_.messages[{call.peer, rank(), call.tag}];
    const bool came = board_.sent.wait_for(lock, std::chrono::seconds(10), [&] { return !queue.empty(); });
    expect(came, "{}", describe(call));
    std::vector<std::byte> message = std::move(queue.front());
    queue.pop_front();
    return Pending(std::make_unique<Result>(std::move(message), call.data));
  }

  Board& board_;
};

// The first error of any rank, or nothing. A rank that fails leaves the meetings, so that the others can end.
std::string run_fake(int ranks, const CollectivesCase& one) {
  Board board(ranks);
  std::mutex mutex;
  std::string failure;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        one.check(FakeRanks(board, rank));
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        if (failure.empty()) failure = fmt::format("rank {}: {}", rank, error.what());
        board.meeting.arrive_and_drop();
      }
    });
  }
  threads.clear();
  return failure;
}

}  // namespace

TEST_CASE("a fake that has start() alone keeps the contract of Collectives") {
  for (const CollectivesCase& one : collectives_cases()) {
    for (int ranks = 1; ranks <= 4; ++ranks) {
      INFO(one.name << " with " << ranks << " ranks");
      CHECK(run_fake(ranks, one) == "");
    }
  }
}
