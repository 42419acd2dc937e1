#include "comm/tcp/socket.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "trireme/core/error.hpp"

namespace trireme::comm {
namespace {

constexpr int backlog = 1024;
constexpr std::chrono::milliseconds between_attempts{50};
constexpr timeval longest_silence{.tv_sec = 30, .tv_usec = 0};  // within a frame

template <typename T>
bool set(int descriptor, int level, int option, const T& value) {
  return setsockopt(descriptor, level, option, &value, sizeof(value)) == 0;
}

Socket prepare(int descriptor) {
  set(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  set(descriptor, SOL_SOCKET, SO_RCVTIMEO, longest_silence);
  set(descriptor, SOL_SOCKET, SO_SNDTIMEO, longest_silence);
  return Socket(descriptor);
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

Socket try_to_connect(const std::string& address, int port) {
  const Addresses addresses = resolve(address, port);
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    Socket socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket) continue;
    // The port this end is given may be the one that rank 0 is about to listen on: it shall be able to.
    set(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (connect(socket.descriptor(), one->ai_addr, one->ai_addrlen) != 0) continue;
    if (!is_connected_to_itself(socket)) return socket;
    set(socket.descriptor(), SOL_SOCKET, SO_LINGER, linger{.l_onoff = 1, .l_linger = 0});
  }
  return {};
}

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
  const int descriptor = ::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC);
  return descriptor < 0 ? Socket() : prepare(descriptor);
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

bool Socket::receive(std::span<std::byte> bytes) const noexcept {
  while (!bytes.empty()) {
    const ssize_t received = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(received));
  }
  return true;
}

bool is_connected_to_itself(const Socket& socket) {
  return name_of(getsockname, socket.descriptor()) == name_of(getpeername, socket.descriptor());
}

Socket listen_on(int port) {
  Socket socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_addr = in6addr_any;
  v6.sin6_port = htons(static_cast<std::uint16_t>(port));
  bool bound = socket && set(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, 1) &&
               set(socket.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, 0) &&
               bind(socket.descriptor(), reinterpret_cast<const sockaddr*>(&v6), sizeof(v6)) == 0;
  if (!bound && errno != EADDRINUSE) {  // a machine without IPv6
    socket = Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_addr.s_addr = htonl(INADDR_ANY);
    v4.sin_port = v6.sin6_port;
    bound = socket && set(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, 1) &&
            bind(socket.descriptor(), reinterpret_cast<const sockaddr*>(&v4), sizeof(v4)) == 0;
  }
  if (bound && listen(socket.descriptor(), backlog) == 0) return socket;
  throw Error({.code = ErrorCode::io,
               .message = fmt::format("rank 0 cannot listen on port {}", port),
               .error_number = errno,
               .hint = "another program uses it: name a free one in TRIREME_PORT, the same for all ranks"});
}

Socket connect_to(const std::string& address, int port, std::chrono::milliseconds deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  for (;;) {
    if (Socket socket = try_to_connect(address, port)) {
      set(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, 1);
      return socket;
    }
    if (std::chrono::steady_clock::now() >= end) break;
    std::this_thread::sleep_for(between_attempts);
  }
  throw Error({.code = ErrorCode::timeout,
               .message = fmt::format("no answer from rank 0 at {} port {} for {} ms", address, port, deadline.count()),
               .hint = "rank 0 has not started, or a firewall is between: look at MASTER_ADDR and MASTER_PORT"});
}

bool wait_for_input(std::span<const int> descriptors, std::span<bool> arrived, std::chrono::milliseconds timeout) {
  std::vector<pollfd> polled;
  for (const int descriptor : descriptors) polled.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
  const int count = poll(polled.data(), polled.size(), static_cast<int>(timeout.count()));
  for (std::size_t index = 0; index < polled.size(); ++index) arrived[index] = count > 0 && polled[index].revents != 0;
  return count > 0;
}

}  // namespace trireme::comm
