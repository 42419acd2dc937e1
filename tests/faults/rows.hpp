#pragma once

#include "faults/row.hpp"

// The rows of the table, each in a short version for every run of the tests and in full.
namespace trireme::tests {

enum class Extent { brief, full };

// Checkpoints in a simulated file system, by ranks that are threads.
Row lose_power(Extent extent);    // at every call of a save
Row fail_calls(Extent extent);    // one call of a save
Row damage_files(Extent extent);  // one place of a checkpoint

// Training by ranks that are threads.
Row inject_non_finite(Extent extent);  // on each rank of each mesh
Row turn_bits(Extent extent);          // of one replica's values
Row change_ranks(Extent extent);       // in the middle of an epoch

// Jobs of processes.
Row kill_at_calls_of_one(Extent extent);   // before and after calls to the file system
Row kill_at_calls_of_four(Extent extent);  // of a random rank
Row kill_at_random(Extent extent);         // a rank, mpirun or trireme-run
Row preempt(Extent extent);                // SIGTERM to trireme-run
Row restart(Extent extent);                // how long it takes

}  // namespace trireme::tests
