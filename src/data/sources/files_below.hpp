#pragma once

#include <vector>

#include "trireme/files/file_system.hpp"

namespace trireme::data {

// What a folder holds, sorted by name, but for hidden names, which begin with a dot. Throws Error{io}.
std::vector<FolderEntry> content_of_folder(const Location& folder);

// Whether what a folder holds is a folder or a link to one. Throws Error{io} for a link that leads nowhere or in a circle.
bool leads_to_folder(const Location& folder, const FolderEntry& entry);

// The regular files in a folder and its subfolders, sorted by name, linked ones too, but for hidden names. Pipes, sockets and
// devices are passed over. Throws Error{io}, also for a link to a folder that it lies in.
std::vector<Location> files_below(const Location& folder);

}  // namespace trireme::data
