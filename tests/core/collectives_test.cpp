#include "trireme/core/collectives.hpp"

#include <array>
#include <new>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;

namespace {

// What was asked of an operation, in this order.
struct Log {
  std::vector<std::string> asked;
  bool ready = false;
  bool fails = false;
};

class LoggedOperation final : public PendingOperation {
 public:
  explicit LoggedOperation(Log& log) : log_(log) {}
  ~LoggedOperation() override { log_.asked.emplace_back("gone"); }

  bool done() override {
    note("done");
    return log_.ready;
  }
  void wait_on_host() override { note("wait_on_host"); }
  void wait_on_stream() override { note("wait_on_stream"); }

 private:
  void note(const char* what) {
    log_.asked.emplace_back(what);
    if (log_.fails) throw Error({.code = ErrorCode::peer_failed, .message = "rank 1 failed"});
  }

  Log& log_;
};

Pending pending(Log& log) { return Pending(std::make_unique<LoggedOperation>(log)); }

using Asked = std::vector<std::string>;

// Keeps the last call; nothing is ever under way.
class LastCall final : public Collectives {
 public:
  LastCall(int rank, int size) : Collectives(rank, size) {}
  mutable std::optional<Call> call;

 private:
  Pending start(const Call& given) const override {
    call = given;
    return {};
  }
};

}  // namespace

TEST_CASE("a Pending that is dropped waits") {
  Log log;
  { const Pending dropped = pending(log); }
  CHECK(log.asked == Asked{"wait_on_host", "gone"});
}

TEST_CASE("a Pending that fails when it is dropped throws nothing") {
  Log log{.asked = {}, .ready = false, .fails = true};
  { const Pending dropped = pending(log); }
  CHECK(log.asked == Asked{"wait_on_host", "gone"});
}

TEST_CASE("a Pending asks nothing after its end") {
  Log log;
  Pending one = pending(log);
  CHECK_FALSE(one.done());
  log.ready = true;
  CHECK(one.done());
  CHECK(one.done());
  one.wait_on_host();
  one.wait_on_stream();
  CHECK(log.asked == Asked{"done", "done", "gone"});
}

TEST_CASE("a Pending waits once, on the host or on the stream") {
  Log log;
  Pending one = pending(log);
  one.wait_on_host();
  one.wait_on_stream();
  CHECK(log.asked == Asked{"wait_on_host", "gone"});
  Log other;
  one = pending(other);
  one.wait_on_stream();
  one.wait_on_host();
  CHECK(other.asked == Asked{"wait_on_stream", "gone"});
}

TEST_CASE("a Pending that throws is over") {
  Log log{.asked = {}, .ready = false, .fails = true};
  Pending one = pending(log);
  CHECK_THROWS_AS(one.done(), Error);
  CHECK(one.done());
  one = pending(log);
  CHECK_THROWS_AS(one.wait_on_host(), Error);
  one = pending(log);
  CHECK_THROWS_AS(one.wait_on_stream(), Error);
  CHECK(log.asked == Asked{"done", "gone", "wait_on_host", "gone", "wait_on_stream", "gone"});
}

TEST_CASE("a Pending that gets another one waits for its own first") {
  Log first;
  Log second;
  Pending one = pending(first);
  one = pending(second);
  CHECK(first.asked == Asked{"wait_on_host", "gone"});
  CHECK(second.asked.empty());
  Pending moved = std::move(one);
  CHECK(second.asked.empty());
  moved.wait_on_host();
  CHECK(second.asked == Asked{"wait_on_host", "gone"});
}

TEST_CASE("start gets what was called") {
  const LastCall ranks(1, 3);
  std::array<float, 5> data{};
  const auto check = [&](CallKind kind, ReduceOp op, int peer, int tag, const char* text) {
    REQUIRE(ranks.call);
    CHECK(ranks.call->kind == kind);
    CHECK(ranks.call->op == op);
    CHECK(ranks.call->dtype == DType::float32);
    CHECK(ranks.call->data == data.data());
    CHECK(ranks.call->count == 5);
    CHECK(ranks.call->bytes() == 20);
    CHECK(ranks.call->peer == peer);
    CHECK(ranks.call->tag == tag);
    CHECK(describe(*ranks.call) == text);
    ranks.call.reset();
  };
  ranks.all_reduce(std::span(data), ReduceOp::max, "a").wait_on_host();
  check(CallKind::all_reduce, ReduceOp::max, 0, 0, "all_reduce(max, 5 x float32) \"a\"");
  ranks.reduce_scatter(std::span(data)).wait_on_host();
  check(CallKind::reduce_scatter, ReduceOp::sum, 0, 0, "reduce_scatter(sum, 5 x float32)");
  ranks.all_gather(std::span(data), "b").wait_on_host();
  check(CallKind::all_gather, ReduceOp::sum, 0, 0, "all_gather(5 x float32) \"b\"");
  ranks.broadcast(std::span(data), 2, "c").wait_on_host();
  check(CallKind::broadcast, ReduceOp::sum, 2, 0, "broadcast(5 x float32, root 2) \"c\"");
  ranks.send(std::span<const float, 5>(data), 2, 7, "d");
  check(CallKind::send, ReduceOp::sum, 2, 7, "send(5 x float32 to rank 2, tag 7) \"d\"");
  ranks.receive(std::span(data), 0, 7, "e").wait_on_host();
  check(CallKind::receive, ReduceOp::sum, 0, 7, "receive(5 x float32 from rank 0, tag 7) \"e\"");
  ranks.barrier("f");
  REQUIRE(ranks.call);
  CHECK(describe(*ranks.call) == "barrier \"f\"");
}

TEST_CASE("a call that makes no sense never gets to start") {
  const LastCall ranks(1, 3);
  std::array<float, 5> data{};
  std::array<std::uint8_t, 5> bytes{};
  const std::span<float> nothing(static_cast<float*>(nullptr), 4);
  const std::span<float> endless(data.data(), (std::size_t{1} << 56) + 1);
  const auto refused = [&](const auto& call, const std::string& text) {
    CHECK_THROWS_WITH(call(), ContainsSubstring(text));
    CHECK_THROWS_AS(call(), Error);
  };
  refused([&] { return ranks.all_reduce(std::span(bytes)); }, "all_reduce has no arithmetic for uint8");
  refused([&] { return ranks.reduce_scatter(std::span(bytes)); }, "reduce_scatter has no arithmetic for uint8");
  refused([&] { return ranks.broadcast(std::span(data), 3); }, "broadcast names rank 3, but the group has ranks 0 to 2");
  refused([&] { return ranks.receive(std::span(data), -1, 0); }, "receive names rank -1");
  refused([&] { return ranks.receive(std::span(data), 0, -2); }, "receive with the negative tag -2");
  refused([&] { ranks.send(std::span<const float, 5>(data), 3, 0); }, "send names rank 3");
  refused([&] { ranks.send(std::span<const float>(nothing), 0, 0); }, "send(4 x float32 to rank 0, tag 0) got a null pointer");
  refused([&] { return ranks.all_gather(nothing, "x"); }, "all_gather(4 x float32) \"x\" got a null pointer");
  refused([&] { return ranks.all_reduce(endless); }, "the count is out of range");
  refused([&] { return ranks.part(16, 3); }, "part names rank 3");
  CHECK_FALSE(ranks.call);
  refused([] { return LastCall(2, 2); }, "rank 2 does not exist in a group of 2 ranks");
  refused([] { return LastCall(0, 0); }, "rank 0 does not exist in a group of 0 ranks");
}

TEST_CASE("data of no elements may be null") {
  const LastCall ranks(0, 2);
  ranks.all_reduce(std::span<float>()).wait_on_host();
  REQUIRE(ranks.call);
  CHECK(ranks.call->count == 0);
}

TEST_CASE("what start throws comes through as it is, and the action of agree has run") {
  class NoStart final : public Collectives {
   public:
    NoStart() : Collectives(0, 2) {}

   private:
    Pending start(const Call&) const override { throw std::bad_alloc(); }
  };
  const NoStart ranks;
  std::array<float, 5> data{};
  Log log;
  Pending one = pending(log);
  CHECK_THROWS_AS(one = ranks.all_reduce(std::span(data)), std::bad_alloc);
  CHECK(log.asked.empty());
  CHECK_THROWS_AS(ranks.send(std::span<const float, 5>(data), 1, 0), std::bad_alloc);
  CHECK_THROWS_AS(ranks.barrier(), std::bad_alloc);
  CHECK_THROWS_AS(ranks.gather_texts("text"), std::bad_alloc);
  int runs = 0;
  CHECK_THROWS_AS(ranks.agree([&runs] { ++runs; }), std::bad_alloc);
  CHECK(runs == 1);
}

TEST_CASE("parts begin at multiples of 16 and hold all elements in order") {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    for (const std::int64_t count : {0, 1, 15, 16, 17, 1000, 4099}) {
      std::int64_t end = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Range part = part_of(count, rank, ranks);
        CHECK(part.begin == end);
        CHECK((part.begin % 16 == 0 || part.begin == count));
        end = part.end;
      }
      CHECK(end == count);
    }
  }
}
