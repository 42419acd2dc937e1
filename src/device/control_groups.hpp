#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <limits>
#include <string_view>

namespace trireme::device {

inline constexpr std::size_t no_number = std::numeric_limits<std::size_t>::max();

// The number after `word` at the beginning of a line; `otherwise` if there is no number, as for "max".
std::size_t number_after(const std::filesystem::path& file, std::string_view word, std::size_t otherwise);

// Calls visit(folder, version) for the control group of this process and its parents that have the controller, "memory" or
// "cpu", in version 1 or 2. In a container the top folder is often the group itself, even if its name differs outside.
void for_each_control_group(const std::filesystem::path& root, std::string_view controller,
                            const std::function<void(const std::filesystem::path& folder, int version)>& visit);

}  // namespace trireme::device
