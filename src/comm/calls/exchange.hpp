#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::comm {

// Gathers the texts of all ranks on every rank, without a call of a group.
using Exchange = std::function<std::vector<std::string>(std::string_view text)>;

}  // namespace trireme::comm
