#include "fuzz/remote_parsers.hpp"

namespace trireme::fuzz {

std::span<const Parser> remote_parsers() { return {}; }

}  // namespace trireme::fuzz
