#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>

namespace trireme::comm {

// A TCP connection, or the place where they arrive.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;

  explicit operator bool() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

  Socket accept() const;  // empty: there is none

  // False: the other side is gone.
  bool send(std::span<const std::byte> bytes) const noexcept;
  bool receive(std::span<std::byte> bytes) const noexcept;

 private:
  int descriptor_ = -1;
};

Socket listen_on(int port);  // of every address of this machine; throws Error{io}

// Tries until the deadline has passed, then throws Error{timeout}.
Socket connect_to(const std::string& address, int port, std::chrono::milliseconds deadline);

// A connection to a port of this machine where nobody listens succeeds when the system gives it that very port: both ends are
// one then. `connect_to` never returns such a socket.
bool is_connected_to_itself(const Socket& socket);

// How long the ends of a connection wait for input before they look for what else happened.
inline constexpr std::chrono::milliseconds look_interval{20};

// Whether something arrives at one of them in time; sets `arrived` for each.
bool wait_for_input(std::span<const int> descriptors, std::span<bool> arrived, std::chrono::milliseconds timeout);

}  // namespace trireme::comm
