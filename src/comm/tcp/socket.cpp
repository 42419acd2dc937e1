#include "comm/tcp/socket.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "trireme/core/error.hpp"

namespace trireme::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int backlog = 1024;
constexpr std::chrono::milliseconds between_attempts{50};
template <typename T>
bool set(int descriptor, int level, int option, const T& value) {
  return setsockopt(descriptor, level, option, &value, sizeof(value)) == 0;
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses resolve(const std::string& address, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) found = nullptr;
  return {found, &freeaddrinfo};
}

int milliseconds_until(Clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
  return static_cast<int>(std::clamp<std::chrono::milliseconds>(left, {}, std::chrono::hours(1)).count());
}

// Connects, but waits only until `end`: the system itself would wait minutes for a host that does not answer.
bool connect_until(const Socket& socket, const addrinfo& to, Clock::time_point end) {
  const int flags = fcntl(socket.descriptor(), F_GETFL);
  fcntl(socket.descriptor(), F_SETFL, flags | O_NONBLOCK);
  if (connect(socket.descriptor(), to.ai_addr, to.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return false;
    pollfd event{.fd = socket.descriptor(), .events = POLLOUT, .revents = 0};
    while (poll(&event, 1, milliseconds_until(end)) < 0 && errno == EINTR) {
    }
    int failure = 0;
    socklen_t size = sizeof(failure);
    getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &failure, &size);
    if (event.revents == 0 || failure != 0) return false;
  }
  return fcntl(socket.descriptor(), F_SETFL, flags) == 0;
}

Socket try_to_connect(const std::string& address, int port, Clock::time_point end) {
  const Addresses addresses = resolve(address, port);
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    Socket socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket) continue;
    // The system may give this end the port on which rank 0 is about to listen; with this option rank 0 still can.
    set(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (!connect_until(socket, *one, end)) continue;
    if (!is_connected_to_itself(socket)) return socket;
    set(socket.descriptor(), SOL_SOCKET, SO_LINGER, linger{.l_onoff = 1, .l_linger = 0});
  }
  return {};
}

bool is_not_yet(int error_number) { return error_number == EAGAIN || error_number == EWOULDBLOCK || error_number == EINTR; }

using Name = std::array<std::byte, sizeof(sockaddr_storage)>;

template <typename Function>
Name name_of(Function function, int descriptor) {
  Name name{};
  socklen_t size = name.size();
  function(descriptor, reinterpret_cast<sockaddr*>(name.data()), &size);
  return name;
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}
Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Socket Socket::accept() const {
  Socket socket(::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC));
  if (socket) set(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, 1);
  return socket;
}

bool Socket::send(std::span<const std::byte> bytes) const noexcept {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

void Socket::limit_sends(std::chrono::milliseconds longest_send) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(longest_send);
  const auto rest = std::chrono::duration_cast<std::chrono::microseconds>(longest_send - seconds);
  set(descriptor_, SOL_SOCKET, SO_SNDTIMEO, timeval{.tv_sec = seconds.count(), .tv_usec = rest.count()});
}

std::optional<std::size_t> Socket::receive_now(std::span<std::byte> into) const noexcept {
  const ssize_t count = ::recv(descriptor_, into.data(), into.size(), MSG_DONTWAIT);
  if (count > 0) return static_cast<std::size_t>(count);
  if (count < 0 && is_not_yet(errno)) return 0;
  return std::nullopt;
}

std::optional<std::size_t> Socket::send_now(std::span<const std::byte> bytes) const noexcept {
  const ssize_t count = ::send(descriptor_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count >= 0) return static_cast<std::size_t>(count);
  if (is_not_yet(errno)) return 0;
  return std::nullopt;
}

bool is_connected_to_itself(const Socket& socket) {
  return name_of(getsockname, socket.descriptor()) == name_of(getpeername, socket.descriptor());
}

Socket listen_on(int port, const std::string& address) {
  // For every address: listens on IPv6, which accepts IPv4 too, or else on IPv4 on a machine without IPv6.
  int failure = 0;
  for (const std::string& one : address.empty() ? std::vector<std::string>{"::", "0.0.0.0"} : std::vector{address}) {
    const Addresses addresses = resolve(one, port);
    for (const addrinfo* place = addresses.get(); place != nullptr; place = place->ai_next) {
      Socket socket(::socket(place->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (socket) set(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, 1);
      if (socket && place->ai_family == AF_INET6) set(socket.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
      if (socket && bind(socket.descriptor(), place->ai_addr, place->ai_addrlen) == 0 &&
          listen(socket.descriptor(), backlog) == 0) {
        return socket;
      }
      failure = errno;
      if (failure == EADDRINUSE) break;
    }
    if (failure == EADDRINUSE) break;
  }
  if (address.empty() || failure == EADDRINUSE) {
    throw Error({.code = ErrorCode::io,
                 .message = fmt::format("rank 0 cannot listen on port {}", port),
                 .error_number = failure,
                 .hint = "another program uses it: name a free one in TRIREME_PORT, the same for all ranks"});
  }
  throw Error({.code = ErrorCode::io,
               .message = fmt::format("rank 0 cannot listen on port {} of {}", port, address),
               .error_number = failure,
               .hint = "MASTER_ADDR is no address of rank 0's machine itself: set TRIREME_JOB_SECRET to the same text for all "
                       "ranks, then rank 0 listens on all its addresses"});
}

bool is_of_this_machine_alone(const Socket& listener) {
  const Name name = name_of(getsockname, listener.descriptor());
  sockaddr_storage address{};
  std::memcpy(&address, name.data(), sizeof(address));
  if (address.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, name.data(), sizeof(v4));
    return ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, name.data(), sizeof(v6));
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

Socket connect_to(const std::string& address, int port, std::chrono::milliseconds deadline) {
  const auto end = Clock::now() + deadline;
  for (;;) {
    if (Socket socket = try_to_connect(address, port, end)) {
      set(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, 1);
      return socket;
    }
    if (Clock::now() >= end) break;
    std::this_thread::sleep_for(between_attempts);
  }
  throw Error({.code = ErrorCode::timeout,
               .message = fmt::format("no answer from rank 0 at {} port {} for {} ms", address, port, deadline.count()),
               .hint = "rank 0 has not started, or a firewall is between: look at MASTER_ADDR and MASTER_PORT"});
}

bool wait_for_bytes(const Socket& socket, std::chrono::milliseconds timeout) {
  char first = 0;
  return wait_for_input(socket, timeout) && ::recv(socket.descriptor(), &first, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

bool wait_for_input(const Socket& socket, std::chrono::milliseconds timeout) {
  pollfd event{.fd = socket.descriptor(), .events = POLLIN, .revents = 0};
  return poll(&event, 1, static_cast<int>(timeout.count())) > 0;
}

}  // namespace trireme::comm
