#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/files/file_system.hpp"

// Names and moves of folders in a directory of checkpoints, by rank 0 alone.
namespace trireme::checkpoint {

inline constexpr const char* manifest_name = "manifest.json";

// The id that names of unfinished work carry, so that its job alone removes them: TRIREME_JOB_ID, the same for all starts of a
// job that trireme-run supervises; else a random one.
std::string own_job();
std::string random_job();

// A name of unfinished work of this job on what is to have that name.
Location temporary_path(const Location& directory, const std::string& job, const std::string& name);

void make_directory(FileSystem& files, const Location& directory);

// Of an empty folder for the shards of a checkpoint: the temporary one; in an object store that which it will have.
Location make_folder(FileSystem& files, const Location& directory, const std::string& job, std::int64_t step);

// The manifest first: without it nobody takes the rest for a checkpoint.
void remove_folder(FileSystem& files, const Location& folder);

// Half-done work of this job's earlier starts.
void remove_leftovers(FileSystem& files, const Location& directory, const std::string& job);

// Makes a checkpoint of a folder of make_folder() that has all shards. One with the same step stays until keep_newest(); later
// steps are those of a run that was left for an earlier checkpoint, and are put aside as "left-..." first.
void commit(FileSystem& files, const Location& directory, const Location& folder, std::int64_t step,
            const std::string& manifest);

// Removes the others, and what was replaced; gives the names.
std::vector<std::string> keep_newest(FileSystem& files, const Location& directory, int keep, const std::string& job);

}  // namespace trireme::checkpoint
