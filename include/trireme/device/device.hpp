#pragma once

namespace trireme {

// Tags that say where a tensor's elements live.
struct Cpu {};

}  // namespace trireme
