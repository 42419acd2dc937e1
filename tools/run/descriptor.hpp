#pragma once

#include <unistd.h>

#include <utility>
#include <vector>

// Owns an open file descriptor: the destructor closes it.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Descriptor() { reset(); }

  int get() const { return descriptor_; }
  void reset() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }

 private:
  int descriptor_ = -1;
};

struct Pipe {
  Descriptor out;  // read from it
  Descriptor in;   // written to
};
Pipe open_pipe();  // throws trireme::Error{io}

// Returns a descriptor that becomes readable when one of these signals arrives. Blocks the signals from now on.
Descriptor watch(const std::vector<int>& signals);
