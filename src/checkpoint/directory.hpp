#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/files/file_system.hpp"

// Names and renames folders in a directory of checkpoints. Called only on rank 0.
namespace trireme::checkpoint {

inline constexpr const char* manifest_name = "manifest.json";

// The job id in the names of unfinished files, so that only this job removes them: TRIREME_JOB_ID, which is the same for all
// starts of a job under trireme-run, or else a random id.
std::string own_job();
std::string random_job();

// The temporary path of a file or folder that will be called `name`.
Location temporary_path(const Location& directory, const std::string& job, const std::string& name);

void make_directory(FileSystem& files, const Location& directory);

// Makes an empty folder for the shards of a checkpoint: a temporary one, or in an object store the final one.
Location make_folder(FileSystem& files, const Location& directory, const std::string& job, std::int64_t step);

// Removes the manifest first: without it the rest is not a checkpoint.
void remove_folder(FileSystem& files, const Location& folder);

// Removes unfinished files of this job's earlier starts.
void remove_leftovers(FileSystem& files, const Location& directory, const std::string& job);

// Commits a folder of make_folder() that has all shards as a checkpoint. An old checkpoint of the same step stays until
// keep_newest(). Checkpoints of later steps, from before the run went back to an earlier checkpoint, are first put aside.
void commit(FileSystem& files, const Location& directory, const Location& folder, std::int64_t step,
            const std::string& manifest);

// Removes all but the newest `keep` checkpoints, and replaced ones. Returns their names.
std::vector<std::string> keep_newest(FileSystem& files, const Location& directory, int keep, const std::string& job);

}  // namespace trireme::checkpoint
