#pragma once

#include "comm/wire/transport.hpp"

namespace trireme::test {

// Checks for every transport, with messages of one rank to itself on a channel of its own. Throws where a check fails.
void check_transport(comm::Transport& transport, int channel);

}  // namespace trireme::test
