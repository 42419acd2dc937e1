#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::comm {

// Gives every rank the text of each, before or beside the calls of a group.
using Exchange = std::function<std::vector<std::string>(std::string_view text)>;

}  // namespace trireme::comm
