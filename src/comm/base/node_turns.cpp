#include "trireme/comm/base/node_turns.hpp"

#include <algorithm>
#include <vector>

namespace trireme {

void take_turns_on_nodes(const Group& group, const std::function<void()>& action, std::string_view name) {
  const auto is_led_here = [&](const std::vector<int>& node) { return node.front() == group.rank(); };
  const bool leads = std::ranges::any_of(group.nodes(), is_led_here);
  for (const bool turn_of_first : {true, false}) {
    const auto take_turn = [&] {
      if (leads == turn_of_first) action();
    };
    group.agree(take_turn, name);
  }
}

}  // namespace trireme
