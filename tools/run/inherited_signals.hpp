#pragma once

#include <signal.h>

// What a process got from its parent: the signals that it ignores, and those that it blocks.
struct InheritedSignals {
  sigset_t ignored{};
  sigset_t blocked{};

  bool ignores(int signal) const { return sigismember(&ignored, signal) == 1; }
};

InheritedSignals inherited_signals();  // before this process changes any

// In a child that becomes the job: what trireme-run got goes to the job as well. Only SIGUSR1, by which trireme-run asks it to
// save, and SIGCHLD, by which a launcher hears of its ranks, are as usual.
void hand_down(const InheritedSignals& inherited);
