#pragma once

#include <sys/types.h>

#include <vector>

// The living processes of this machine that `ancestor` or one of its descendants started; those that wait to be reaped are
// dead.
std::vector<pid_t> descendants_of(pid_t ancestor);

// mpirun of Open MPI started it as a rank.
bool is_rank(pid_t process);

// From now on descendants whose parents end become children of this process.
void adopt_descendants();

// Kills all descendants of this process, which adopts them, and returns when none is left.
void kill_descendants();
