#include "comm/shared/lone_backend.hpp"

#include <utility>

namespace trireme::comm {

LoneBackend::LoneBackend(std::shared_ptr<RankContext> context, Members members)
    : context_(std::move(context)),
      members_(std::move(members)),
      mail_(open_mail(std::make_shared<Mailboxes>(), context_, members_, {context_->node_rank()})) {}

std::shared_ptr<Backend> LoneBackend::make_group(const Members& members) {
  return std::make_shared<LoneBackend>(context_, members);
}

}  // namespace trireme::comm
