#pragma once

#include <vector>

#include "trireme/files/file_system.hpp"

namespace trireme::data {

// The entries of a folder without hidden names (those that begin with a dot), sorted by name. Throws Error{io}.
std::vector<FolderEntry> content_of_folder(const Location& folder);

// Whether an entry of a folder is a folder or a link to one. Throws Error{io} for a broken or circular link.
bool leads_to_folder(const Location& folder, const FolderEntry& entry);

// The regular files in a folder and its subfolders, sorted by name. Follows links; skips hidden names, pipes, sockets and
// devices. Throws Error{io}, also for a link to a folder that it lies in.
std::vector<Location> files_below(const Location& folder);

}  // namespace trireme::data
