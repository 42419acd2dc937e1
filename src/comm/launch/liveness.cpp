#include "comm/launch/liveness.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <span>
#include <utility>

#include "comm/tcp/proof.hpp"
#include "trireme/core/error.hpp"

namespace trireme::comm {
namespace {

constexpr std::chrono::milliseconds longest_connect{500};  // to one address
constexpr std::chrono::seconds longest_answer{2};          // after connecting
constexpr std::chrono::seconds longest_silence{5};         // of a guest, until its greeting is complete
constexpr std::size_t most_guests = 64;

// The first message of a rank that connects.
struct Greeting {
  Sha256 challenge;
  std::int32_t rank;
  Sha256 proof;
};
static_assert(sizeof(Greeting) == 2 * sizeof(Sha256) + sizeof(std::int32_t));

Sha256 proof_of(const std::string& secret, Prover who, const Greeting& greeting) {
  return proof_of(secret, who, {.of_hub = {}, .of_rank = greeting.challenge}, greeting.rank, 0);
}

int port_of(const Socket& socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof(name);
  if (getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&name), &size) != 0) return 0;
  in_port_t port = 0;  // at the same offset in addresses of IPv4 and IPv6
  std::memcpy(&port, reinterpret_cast<const std::byte*>(&name) + offsetof(sockaddr_in, sin_port), sizeof(port));
  return ntohs(port);
}

// Appends received bytes until there are `wanted`. False if the other side has closed the connection.
bool receive_up_to(const Socket& socket, std::size_t wanted, std::vector<std::byte>& bytes) {
  const std::size_t before = bytes.size();
  bytes.resize(wanted);
  const auto count = socket.receive_now(std::span(bytes).subspan(before));
  bytes.resize(before + count.value_or(0));
  return count.has_value();
}

}  // namespace

LivenessResponder::LivenessResponder(std::string secret)
    : secret_(std::move(secret)),
      listener_(listen_on(0)),
      port_(port_of(listener_)),
      thread_([this](const std::stop_token& stop) { serve(stop); }) {}

LivenessResponder::~LivenessResponder() {
  thread_.request_stop();
  shutdown(listener_.descriptor(), SHUT_RDWR);  // wakes the thread
}

Socket LivenessResponder::take(int rank) {
  const std::lock_guard lock(mutex_);
  return std::exchange(ranks_[rank], Socket());
}

void LivenessResponder::serve(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    try {
      look(stop);
    } catch (const std::exception&) {  // out of memory: goes on with later connections
      std::this_thread::sleep_for(look_interval);
    }
  }
}

void LivenessResponder::look(const std::stop_token& stop) {
  std::vector<pollfd> events{{.fd = listener_.descriptor(), .events = POLLIN, .revents = 0}};
  for (const Guest& guest : guests_) events.push_back({.fd = guest.socket.descriptor(), .events = POLLIN, .revents = 0});
  poll(events.data(), events.size(), guests_.empty() ? -1 : 100);
  if (stop.stop_requested()) return;
  for (std::size_t index = 0; index < guests_.size(); ++index) {
    if (events[1 + index].revents != 0) hear(guests_[index]);
  }
  std::erase_if(guests_,
                [now = Clock::now()](const Guest& guest) { return !guest.socket || now - guest.came > longest_silence; });
  if (events[0].revents != 0) admit();
}

// Drops the oldest guest if there are too many, so that silent strangers do not keep ranks out.
void LivenessResponder::admit() {
  Socket socket = listener_.accept();
  if (!socket) {  // the process has no more descriptors
    std::this_thread::sleep_for(look_interval);
    if (!guests_.empty()) guests_.erase(guests_.begin());
    return;
  }
  if (guests_.size() == most_guests) guests_.erase(guests_.begin());
  guests_.push_back({.socket = std::move(socket)});
}

void LivenessResponder::hear(Guest& guest) {
  const bool is_there = receive_up_to(guest.socket, sizeof(Greeting), guest.said);
  if (guest.said.size() < sizeof(Greeting)) {
    if (!is_there) guest.socket = Socket();
    return;
  }
  Greeting greeting;
  std::memcpy(&greeting, guest.said.data(), sizeof(greeting));
  Socket socket = std::exchange(guest.socket, Socket());
  if (!are_equal(greeting.proof, proof_of(secret_, Prover::rank, greeting))) return;
  const std::lock_guard lock(mutex_);
  Socket& known = ranks_[greeting.rank];
  known = std::move(socket);  // stored before the answer is sent
  known.send(proof_of(secret_, Prover::hub, greeting));
}

LivenessProbe::LivenessProbe(Target target, int own_rank) : target_(std::move(target)), own_rank_(own_rank) {
  std::ranges::reverse(target_.addresses);  // taken from the end
}

bool LivenessProbe::ask() {
  while (!target_.addresses.empty()) {
    const std::string address = std::move(target_.addresses.back());
    target_.addresses.pop_back();
    try {
      socket_ = connect_to(address, target_.port, longest_connect);
    } catch (const Error&) {  // tries the next address
      continue;
    }
    Greeting greeting{.challenge = make_challenge(), .rank = own_rank_, .proof = {}};
    greeting.proof = proof_of(target_.secret, Prover::rank, greeting);
    wanted_ = proof_of(target_.secret, Prover::hub, greeting);
    answer_.clear();
    end_ = std::chrono::steady_clock::now() + longest_answer;
    if (socket_.send(std::as_bytes(std::span(&greeting, 1)))) return true;
  }
  socket_ = Socket();
  return false;
}

LivenessProbe::State LivenessProbe::look() {
  for (;;) {
    if (!socket_ && !ask()) return State::lost;
    const bool is_there = receive_up_to(socket_, wanted_.size(), answer_);
    if (answer_.size() == wanted_.size() && are_equal(answer_, wanted_)) return State::alive;
    const bool may_answer = is_there && answer_.size() < wanted_.size() && std::chrono::steady_clock::now() < end_;
    if (may_answer) return State::under_way;
    socket_ = Socket();
  }
}

LivenessProbe::State LivenessProbe::wait() {
  for (;;) {
    const State state = look();
    if (state != State::under_way) return state;
    wait_for_input(socket_, look_interval);
  }
}

Socket LivenessProbe::take() { return std::exchange(socket_, Socket()); }

}  // namespace trireme::comm
