#pragma once

#include <filesystem>
#include <vector>

namespace trireme::data {

// What a folder holds, sorted by name, but for hidden names, which begin with a dot. Throws Error{io}.
std::vector<std::filesystem::directory_entry> content_of_folder(const std::filesystem::path& folder);

// Whether an entry is a folder or a link to one. Throws Error{io} for a link that leads nowhere or in a circle.
bool leads_to_folder(const std::filesystem::directory_entry& entry);

// The regular files in a folder and its subfolders, sorted by path, linked ones too, but for hidden names. Pipes, sockets and
// devices are passed over. Throws Error{io}, also for a link to a folder that it lies in.
std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder);

}  // namespace trireme::data
