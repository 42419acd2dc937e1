#pragma once

#include <chrono>
#include <span>
#include <string>

#include "trireme/comm/base/group.hpp"

namespace trireme::test {

// A mistake of one rank, put into a program of a few collectives; every rank must get an error that names it.
struct Fault {
  const char* name;
  int exit_code;  // of launch
  void (*run)(const Group& world, int culprit);
};
std::span<const Fault> faults();

constexpr std::chrono::milliseconds fault_deadline{20'000};  // none of these faults may need it

}  // namespace trireme::test
