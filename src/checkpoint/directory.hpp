#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/core/file_system.hpp"

// Names and moves of folders in a directory of checkpoints, by rank 0 alone.
namespace trireme::checkpoint {

inline constexpr const char* manifest_name = "manifest.json";

std::filesystem::path temporary_folder(const std::filesystem::path& directory, std::int64_t step, std::uint64_t unique);

void make_directory(FileSystem& files, const std::filesystem::path& directory);

// Half-done work of a job that died.
void remove_leftovers(FileSystem& files, const std::filesystem::path& directory);

// Makes a checkpoint of a folder that has all shards. Takes the place of one with the same step; later steps are those of a run
// that was left for an earlier checkpoint, and are put aside as "left-...".
void commit(FileSystem& files, const std::filesystem::path& directory, const std::filesystem::path& temporary,
            std::int64_t step, const std::string& manifest);

void keep_newest(FileSystem& files, const std::filesystem::path& directory, int keep);

}  // namespace trireme::checkpoint
