#pragma once

namespace trireme::trainer {

// From the first call on SIGINT, SIGTERM and SIGUSR1 ask to stop; after one of them a second SIGINT or SIGTERM ends the process
// as if nobody had listened.
void listen_for_signals();
void stop_listening();  // once for each call of the first; then signals do what they did before

bool signal_asks_to_stop();
void forget_signals();  // a run that stopped has answered them

}  // namespace trireme::trainer
