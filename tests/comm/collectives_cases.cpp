#include "comm/collectives_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "comm/elements.hpp"
#include "comm/expect.hpp"

namespace trireme::test {
namespace {

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
  for (const std::size_t count : {std::size_t{0}, std::size_t{5}, std::size_t{100'000}}) {
    std::vector<float> out(count);
    for (int message = 0; message < 3; ++message) {
      std::ranges::fill(out, static_cast<float>(ranks.rank() * 10 + message));
      ranks.send(std::span<const float>(out), next, message % 2, "ring");
    }
    std::ranges::fill(out, -1.0f);  // send has copied it
    std::vector<std::vector<float>> in(3, std::vector<float>(count));
    Pending other_tag = ranks.receive(std::span(in[1]), previous, 1);
    Pending first = ranks.receive(std::span(in[0]), previous, 0);
    Pending second = ranks.receive(std::span(in[2]), previous, 0);
    second.wait_on_host();
    first.wait_on_host();
    other_tag.wait_on_host();
    for (int message = 0; message < 3; ++message) {
      for (const float value : in[static_cast<std::size_t>(message)]) {
        expect(value == static_cast<float>(previous * 10 + message), "message {} in order", message);
      }
    }
  }
}

void check_texts(const Collectives& ranks) {
  const std::string mine(static_cast<std::size_t>(ranks.rank() * 100), static_cast<char>('a' + ranks.rank()));
  const auto texts = ranks.gather_texts(mine, "texts");
  expect(texts.size() == static_cast<std::size_t>(ranks.size()), "one text for each rank");
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const std::string expected(static_cast<std::size_t>(rank * 100), static_cast<char>('a' + rank));
    expect(texts[static_cast<std::size_t>(rank)] == expected, "the text of rank {}", rank);
  }
}

void check_agree(const Collectives& ranks) {
  ranks.agree([] {}, "all well");
  const int guilty = ranks.size() / 2;
  const Error error = expect_error(
      ErrorCode::io,
      [&] {
        ranks.agree([&] {
          if (ranks.rank() >= guilty) {
            throw Error({.code = ErrorCode::io,
                         .message = "no such data",
                         .path = fmt::format("/data/{}", ranks.rank()),
                         .error_number = 2});
          }
        });
      },
      "no such data", fmt::format("/data/{}", guilty).c_str(), "No such file");
  expect(error.fields().rank == guilty, "the lowest rank that threw");
  expect(error.fields().error_number == 2, "errno");
  expect_error(
      ErrorCode::internal, [&] { ranks.agree([] { throw std::runtime_error("boom"); }); }, "boom");
  ranks.barrier("still usable");
}

void check_drops(const Collectives& ranks) {
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::vector<float> data(1000, 1);
    { const Pending dropped = ranks.all_reduce(std::span(data)); }
    expect(data[0] == static_cast<float>(ranks.size()), "a dropped Pending waits");
  }
  std::vector<float> data(100, 1);
  Pending replaced = ranks.all_reduce(std::span(data));
  replaced = Pending();
  expect(data[99] == static_cast<float>(ranks.size()), "a replaced Pending waits");
  Pending polled = ranks.all_reduce(std::span(data), ReduceOp::max);
  while (!polled.done()) std::this_thread::yield();
  expect(data[99] == static_cast<float>(ranks.size()), "a Pending that is done");
}

void check_part(const Collectives& ranks) {
  for (const std::int64_t count : {0, 1, 16, 17, 1000}) {
    std::int64_t end = 0;
    for (int rank = 0; rank < ranks.size(); ++rank) {
      const Range part = ranks.part(count, rank);
      expect(part.begin == end, "parts without gaps");
      expect(part.begin % 16 == 0 || part.begin == count, "boundaries at multiples of 16");
      end = part.end;
    }
    expect(end == count, "parts of all elements");
  }
}

// Calls that are refused before anything is exchanged: all ranks can go on.
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

constexpr std::array cases = {
    CollectivesCase{"reductions of float32", check_reductions<float>},
    CollectivesCase{"reductions of int64", check_reductions<std::int64_t>},
    CollectivesCase{"copies", check_copies},
    CollectivesCase{"messages", check_messages},
    CollectivesCase{"texts", check_texts},
    CollectivesCase{"agree", check_agree},
    CollectivesCase{"a Pending that nobody waits for", check_drops},
    CollectivesCase{"parts", check_part},
    CollectivesCase{"misuse", check_misuse},
};

}  // namespace

std::span<const CollectivesCase> collectives_cases() { return cases; }

}  // namespace trireme::test
