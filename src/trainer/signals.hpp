#pragma once

namespace trireme::trainer {

// From the first call on SIGINT, SIGTERM, SIGUSR1 and SIGHUP ask to stop, and a SIGPIPE that another process has sent; after
// one of them a second SIGINT or SIGTERM ends the process as if nobody had listened. Those that are ignored stay so.
void listen_for_signals();
void stop_listening();  // once for each call of the first; then signals do what they did before

// Listens while it lives.
class Listening {
 public:
  Listening() { listen_for_signals(); }
  ~Listening() { stop_listening(); }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
};

// For good: what is written to a pipe that nobody reads is lost, and the process goes on. Where a program ignores SIGPIPE, or
// has a handler of its own, that stays.
void outlive_closed_pipes();

bool signal_asks_to_stop();
void forget_signals();  // a run that stopped has answered them

}  // namespace trireme::trainer
