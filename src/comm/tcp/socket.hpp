#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace trireme::comm {

// A TCP connection, or a listening socket.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;

  explicit operator bool() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

  Socket accept() const;  // empty if no connection can be accepted

  // Waits until everything is sent. False if the other side has closed, or has read nothing for `longest_send`.
  bool send(std::span<const std::byte> bytes) const noexcept;
  void limit_sends(std::chrono::milliseconds longest_send) const;

  // Without waiting: the number of bytes received or sent, possibly 0. Nothing if the other side has closed.
  std::optional<std::size_t> receive_now(std::span<std::byte> into) const noexcept;
  std::optional<std::size_t> send_now(std::span<const std::byte> bytes) const noexcept;

 private:
  int descriptor_ = -1;
};

// Listens on one address of this machine, or on all if `address` is empty; throws Error{io}.
Socket listen_on(int port, const std::string& address = {});

// Tries until the deadline has passed, then throws Error{timeout}.
Socket connect_to(const std::string& address, int port, std::chrono::milliseconds deadline);

// A connection to a port of this machine on which no program listens succeeds if the system gives this end the same port: the
// socket is then connected to itself. `connect_to` never returns such a socket.
bool is_connected_to_itself(const Socket& socket);

bool is_of_this_machine_alone(const Socket& listener);  // it listens on a loopback address

// How long the ends of a connection wait for input before they check for other events.
inline constexpr std::chrono::milliseconds look_interval{20};

bool wait_for_input(const Socket& socket,
                    std::chrono::milliseconds timeout);  // whether bytes arrive in time, or the connection closes
bool wait_for_bytes(const Socket& socket, std::chrono::milliseconds timeout);  // whether bytes arrive in time

}  // namespace trireme::comm
