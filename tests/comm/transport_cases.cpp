#include "comm/transport_cases.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <thread>

#include "comm/expect.hpp"

namespace trireme::test {
namespace {

using comm::Batch;
using comm::Route;
using comm::Transport;
using Clock = std::chrono::steady_clock;

void wait(Transport& transport, const Batch& batch) {
  const auto end = Clock::now() + std::chrono::seconds(20);
  while (batch.outstanding > 0) {
    expect(Clock::now() < end, "{} messages that are done", batch.outstanding);
    transport.test();
    std::this_thread::yield();
  }
}

template <typename T, std::size_t count>
auto bytes(const std::array<T, count>& data) {
  return std::as_bytes(std::span(data));
}
template <typename T, std::size_t count>
auto writable(std::array<T, count>& data) {
  return std::as_writable_bytes(std::span(data));
}

// Some receives are posted before their messages and some after.
void check_order(Transport& transport, const Route& route) {
  constexpr int count = 12;
  const Route other{.channel = route.channel, .peer = route.peer, .tag = route.tag + 1};
  std::array<std::array<int, 2>, count> out{};
  std::array<std::array<int, 2>, count> in{};
  std::array<int, 1> in_other{};
  const std::array<int, 1> out_other{77};
  Batch sends;
  Batch receives;
  for (int number = 0; number < count; ++number) out[static_cast<std::size_t>(number)] = {number, -number};
  for (std::size_t early = 0; early < count / 2; ++early) transport.receive(route, writable(in[early]), receives);
  transport.post(other, bytes(out_other), sends);
  for (const auto& message : out) transport.post(route, bytes(message), sends);
  transport.test();
  for (std::size_t late = count / 2; late < count; ++late) transport.receive(route, writable(in[late]), receives);
  transport.receive(other, writable(in_other), receives);
  wait(transport, receives);
  wait(transport, sends);
  expect(done(sends) && done(receives), "messages that are done");
  expect(in == out && in_other == out_other, "the messages of a route in their order");
  expect(transport.test() == 1, "nothing under way");
}

void check_a_short_message(Transport& transport, const Route& route) {
  const std::array<std::uint8_t, 3> shorter{1, 2, 3};
  std::array<std::uint8_t, 5> in{9, 9, 9, 9, 9};
  Batch batch;
  transport.receive(route, writable(in), batch);
  transport.post(route, bytes(shorter), batch);
  wait(transport, batch);
  expect(done(batch) && in == std::array<std::uint8_t, 5>{1, 2, 3, 9, 9}, "a message that is shorter than its buffer");
}

void check_cancel(Transport& transport, const Route& route) {
  std::array<int, 1> never{};
  Batch given_up;
  transport.receive(route, writable(never), given_up);
  transport.test();
  expect(!done(given_up), "a receive without a message");
  const bool withdrawn = transport.cancel(given_up, Clock::now() + std::chrono::milliseconds(20));
  expect(withdrawn && given_up.outstanding == 0, "a receive that is withdrawn");

  // The next message is not for it.
  const std::array<int, 1> out{5};
  std::array<int, 1> in{};
  Batch batch;
  transport.post(route, bytes(out), batch);
  transport.receive(route, writable(in), batch);
  wait(transport, batch);
  expect(done(batch) && in == out && never[0] == 0, "a message after a receive that was withdrawn");

  transport.post(route, bytes(out), batch);
  transport.receive(route, writable(in), batch);
  expect(transport.cancel(batch, Clock::now() + std::chrono::seconds(20)), "messages that are under way");
  expect(transport.test() == 1, "nothing under way");
}

}  // namespace

void check_transport(Transport& transport, int channel) {
  check_order(transport, {.channel = channel, .peer = 0, .tag = 1});
  check_a_short_message(transport, {.channel = channel, .peer = 0, .tag = 3});
  check_cancel(transport, {.channel = channel, .peer = 0, .tag = 4});
}

}  // namespace trireme::test
