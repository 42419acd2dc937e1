#pragma once

#include "comm/wire/transport.hpp"

namespace trireme::test {

// What every transport owes, with messages of one rank to itself on a channel that has it alone. Throws where it is not met.
void check_transport(comm::Transport& transport, int channel);

}  // namespace trireme::test
