#pragma once

#include <memory>

#include "comm/base/backend.hpp"
#include "comm/tcp/hub_link.hpp"

namespace trireme::comm {

// A group of ranks that communicate through a hub; `id` is unique to the group and the same for all members.
std::shared_ptr<Backend> make_tcp_group(std::shared_ptr<RankContext> context, std::shared_ptr<HubLink> link,
                                        const Members& members, std::uint64_t id);

}  // namespace trireme::comm
