#pragma once

namespace trireme::trainer {

// After the first call SIGINT, SIGTERM, SIGUSR1, SIGHUP, and a SIGPIPE from another process, ask the run to stop; a further
// SIGINT or SIGTERM ends the process as by default. Ignored signals stay ignored.
void listen_for_signals();
void stop_listening();  // once for each call of listen_for_signals(); the last one restores the handlers

// Listens during its lifetime.
class Listening {
 public:
  Listening() { listen_for_signals(); }
  ~Listening() { stop_listening(); }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
};

// Keeps the process alive when it writes to a closed pipe; the output is lost. Lasts until the process ends. A program's own
// handling of SIGPIPE stays.
void outlive_closed_pipes();

bool signal_asks_to_stop();
void forget_signals();  // after a run has stopped for them

}  // namespace trireme::trainer
