#pragma once

// The programs that `faults` starts; CMake says where they are.
namespace trireme::tests::programs {

inline constexpr const char* mpiexec = TRIREME_MPIEXEC;
inline constexpr const char* saving_job = TRIREME_SAVING_JOB;
inline constexpr const char* kill_test = TRIREME_KILL_TEST;
inline constexpr const char* run_program = TRIREME_RUN_PROGRAM;
inline constexpr const char* trireme_run = TRIREME_RUN;
inline constexpr const char* train_gpt = TRIREME_TRAIN_GPT;

}  // namespace trireme::tests::programs
