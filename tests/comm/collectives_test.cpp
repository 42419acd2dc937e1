// What Collectives promise, of a group of threads and of a fake that has start() alone.
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
#include "comm/expect.hpp"
#include "trireme/comm/launch/launch.hpp"

using namespace trireme;
using trireme::test::expect;
using trireme::test::expect_error;

namespace {

// What the ranks of the fake share.
struct Board {
  explicit Board(int ranks) : meeting(ranks), calls(static_cast<std::size_t>(ranks)) {}

  std::barrier<> meeting;
  std::vector<Call> calls;
  std::mutex mutex;
  std::condition_variable sent;
  std::map<std::array<int, 3>, std::deque<std::vector<std::byte>>> messages;  // by sender, receiver, tag
};

// Brings what another thread computed into the caller's memory only when it is waited for.
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

// Small whole numbers, so that every sum is exact.
template <typename T>
T element(int rank, std::size_t index) {
  return static_cast<T>((static_cast<std::size_t>(rank) * 7 + index * 3) % 23 + 1);
}

template <typename T>
T reduced(ReduceOp op, int ranks, std::size_t index) {
  T result = element<T>(0, index);
  for (int rank = 1; rank < ranks; ++rank) {
    const T value = element<T>(rank, index);
    if (op == ReduceOp::min) result = std::min(result, value);
    if (op == ReduceOp::max) result = std::max(result, value);
    if (op != ReduceOp::min && op != ReduceOp::max) result += value;
  }
  return op == ReduceOp::mean ? result / static_cast<T>(ranks) : result;
}

template <typename T>
std::vector<T> elements(int rank, std::size_t count) {
  std::vector<T> data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = element<T>(rank, i);
  return data;
}

constexpr std::array<std::size_t, 5> counts = {0, 1, 16, 17, 1000};

template <typename T>
void check_reductions(const Collectives& ranks) {
  for (const std::size_t count : counts) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::mean, ReduceOp::fixed_sum}) {
      std::vector<T> data = elements<T>(ranks.rank(), count);
      ranks.all_reduce(std::span(data), op, "reduced").wait_on_host();
      for (std::size_t i = 0; i < count; ++i) {
        expect(data[i] == reduced<T>(op, ranks.size(), i), "all_reduce {} of {} elements", name_of(op), count);
      }
      data = elements<T>(ranks.rank(), count);
      ranks.reduce_scatter(std::span(data), op, "scattered").wait_on_stream();
      const Range part = ranks.part(static_cast<std::int64_t>(count), ranks.rank());
      for (auto i = static_cast<std::size_t>(part.begin); i < static_cast<std::size_t>(part.end); ++i) {
        expect(data[i] == reduced<T>(op, ranks.size(), i), "reduce_scatter {} of {} elements", name_of(op), count);
      }
    }
  }
}

void check_copies(const Collectives& ranks) {
  for (const std::size_t count : counts) {
    for (int root = 0; root < ranks.size(); ++root) {
      std::vector<double> data = elements<double>(ranks.rank(), count);
      ranks.broadcast(std::span(data), root).wait_on_host();
      expect(data == elements<double>(root, count), "a broadcast of {} elements from rank {}", count, root);
    }
    std::vector<std::uint8_t> data = elements<std::uint8_t>(ranks.rank(), count);
    ranks.all_gather(std::span(data)).wait_on_host();
    for (int owner = 0; owner < ranks.size(); ++owner) {
      const Range part = ranks.part(static_cast<std::int64_t>(count), owner);
      for (auto i = static_cast<std::size_t>(part.begin); i < static_cast<std::size_t>(part.end); ++i) {
        expect(data[i] == element<std::uint8_t>(owner, i), "an all_gather of {} elements", count);
      }
    }
  }
}

void check_messages(const Collectives& ranks) {
  const int next = (ranks.rank() + 1) % ranks.size();
  const int previous = (ranks.rank() + ranks.size() - 1) % ranks.size();
  for (int message = 0; message < 2; ++message) {
    const std::vector<std::int64_t> data{100 * ranks.rank() + message};
    ranks.send(std::span(data), next, 5, "ring");
  }
  for (int message = 0; message < 2; ++message) {
    std::vector<std::int64_t> data(1);
    ranks.receive(std::span(data), previous, 5, "ring").wait_on_host();
    expect(data[0] == 100 * previous + message, "message {} of rank {}", message, previous);
  }
}

void check_texts(const Collectives& ranks) {
  const auto text_of = [](int rank) { return std::string(static_cast<std::size_t>(40 * rank), static_cast<char>('a' + rank)); };
  const std::vector<std::string> texts = ranks.gather_texts(text_of(ranks.rank()), "texts");
  expect(texts.size() == static_cast<std::size_t>(ranks.size()), "a text of each rank");
  for (int rank = 0; rank < ranks.size(); ++rank) {
    expect(texts[static_cast<std::size_t>(rank)] == text_of(rank), "the text of rank {}", rank);
  }
  ranks.barrier("after the texts");
}

void check_agreement(const Collectives& ranks) {
  ranks.agree([] {}, "all well");
  const int guilty = ranks.size() / 2;
  const Error error = expect_error(
      ErrorCode::io,
      [&] {
        ranks.agree([&] {
          if (ranks.rank() < guilty) return;
          throw Error({.code = ErrorCode::io, .message = "no such data", .path = fmt::format("/data/{}", ranks.rank())});
        });
      },
      "no such data", fmt::format("/data/{}", guilty).c_str());
  expect(error.fields().rank == guilty, "the lowest rank that threw");
}

void check_drops(const Collectives& ranks) {
  std::vector<float> first(100, 1);
  std::vector<float> second(100, 1);
  { const Pending dropped = ranks.all_reduce(std::span(first)); }
  expect(first[99] == static_cast<float>(ranks.size()), "a dropped Pending waits");
  Pending replaced = ranks.all_reduce(std::span(second));
  replaced = Pending();
  expect(second[99] == static_cast<float>(ranks.size()), "a replaced Pending waits");
  Pending polled = ranks.all_reduce(std::span(second), ReduceOp::max);
  while (!polled.done()) std::this_thread::yield();
  expect(second[99] == static_cast<float>(ranks.size()), "a Pending that is done");
}

// No rank gets as far as the others: all of them can go on.
void check_misuse(const Collectives& ranks) {
  std::vector<std::uint8_t> bytes(3);
  std::vector<float> data(3);
  const std::span<float> nothing(static_cast<float*>(nullptr), 3);
  const std::span<float> endless(data.data(), (std::size_t{1} << 56) + 1);
  const auto refused = [](const auto& call, const char* text) { expect_error(ErrorCode::invalid_argument, call, text); };
  refused([&] { ranks.all_reduce(std::span(bytes)).wait_on_host(); }, "all_reduce has no arithmetic for uint8");
  refused([&] { ranks.all_reduce(nothing, ReduceOp::sum, "x").wait_on_host(); },
          "all_reduce(sum, 3 x float32) \"x\" got a null");
  refused([&] { ranks.all_gather(endless).wait_on_host(); }, "the count is out of range");
  refused([&] { ranks.broadcast(std::span(data), ranks.size()).wait_on_host(); }, "broadcast names rank");
  refused([&] { ranks.send(std::span<const float>(data), -1, 0); }, "send names rank -1");
  refused([&] { ranks.receive(std::span(data), 0, -1).wait_on_host(); }, "receive with the negative tag -1");
  refused([&] { ranks.receive(nothing, 0, 1).wait_on_host(); }, "receive(3 x float32 from rank 0, tag 1) got a null");
  refused([&] { static_cast<void>(ranks.part(3, ranks.size())); }, "part names rank");
  ranks.barrier("still usable");
}

struct Case {
  const char* name;
  void (*check)(const Collectives& ranks);
};
constexpr std::array cases = {
    Case{"reductions of float32", check_reductions<float>},
    Case{"reductions of float64", check_reductions<double>},
    Case{"reductions of int64", check_reductions<std::int64_t>},
    Case{"copies", check_copies},
    Case{"messages", check_messages},
    Case{"texts", check_texts},
    Case{"agreement", check_agreement},
    Case{"a dropped Pending", check_drops},
    Case{"misuse", check_misuse},
};

// The first error of any rank, or nothing. A rank that failed leaves the meetings, so that the others get to their end.
std::string run_fake(int ranks, const Case& one) {
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

TEST_CASE("a group of threads keeps the contract of Collectives") {
  for (const Case& one : cases) {
    for (int ranks = 1; ranks <= 4; ++ranks) {
      INFO(one.name << " with " << ranks << " ranks");
      CHECK(launch(BackendKind::thread, {.ranks = ranks}, [&](const Group& world) {
              const Axis axis = std::make_shared<const Group>(world);
              one.check(*axis);
              return 0;
            }) == 0);
    }
  }
}

TEST_CASE("a fake that has start() alone keeps the contract of Collectives") {
  for (const Case& one : cases) {
    for (int ranks = 1; ranks <= 4; ++ranks) {
      INFO(one.name << " with " << ranks << " ranks");
      CHECK(run_fake(ranks, one) == "");
    }
  }
}
