#pragma once

#include <signal.h>

// The ignored and the blocked signals that a process got from its parent.
struct InheritedSignals {
  sigset_t ignored{};
  sigset_t blocked{};

  bool ignores(int signal) const { return sigismember(&ignored, signal) == 1; }
};

InheritedSignals inherited_signals();  // call it before this process changes any

// Called in the child that becomes the job: gives the job the signals that trireme-run got. Only SIGUSR1, by which trireme-run
// asks the job to save, and SIGCHLD, by which a launcher learns that a rank has ended, get their default.
void hand_down(const InheritedSignals& inherited);
