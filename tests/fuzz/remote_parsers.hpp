#pragma once

#include <span>

#include "fuzz/parsers.hpp"

namespace trireme::fuzz {

// Of what servers answer; none where the library has no files over the network.
std::span<const Parser> remote_parsers();

}  // namespace trireme::fuzz
