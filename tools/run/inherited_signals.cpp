#include "inherited_signals.hpp"

InheritedSignals inherited_signals() {
  InheritedSignals inherited;
  sigemptyset(&inherited.ignored);
  sigprocmask(SIG_SETMASK, nullptr, &inherited.blocked);
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) sigaddset(&inherited.ignored, signal);
  }
  return inherited;
}

void hand_down(const InheritedSignals& inherited) {
  sigset_t blocked = inherited.blocked;
  for (int signal = 1; signal < NSIG; ++signal) {
    const bool as_usual = signal == SIGUSR1 || signal == SIGCHLD;
    ::signal(signal, inherited.ignores(signal) && !as_usual ? SIG_IGN : SIG_DFL);  // fails for SIGKILL and SIGSTOP
    if (as_usual) sigdelset(&blocked, signal);
  }
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
}
