#include "trireme/comm/base/group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <tuple>
#include <utility>

#include "comm/base/backend.hpp"

namespace trireme {
namespace {

// A wait for something of this rank alone.
class OwnWork final : public comm::Polled {
 public:
  OwnWork(comm::Backend& backend, const std::function<bool()>& done, std::string_view name)
      : Polled(backend.context()), label_(backend.members().label), done_(done), name_(name) {}

  bool ready() override { return done_(); }
  ErrorFields describe_wait() const override {
    return {.message = fmt::format("{} of this rank alone, in group \"{}\"", name_, label_),
            .hint = "it does not wait for another rank, but for instance for a GPU that is busy or stuck"};
  }

 private:
  const std::string& label_;
  const std::function<bool()>& done_;
  std::string_view name_;
};

}  // namespace

Group::Group(std::shared_ptr<comm::Backend> backend)
    : Collectives(backend->members().me, backend->members().size()), backend_(std::move(backend)) {
  if (comm::FlightRecorder* flight = backend_->context().flight()) flight->join(backend_->recorded, backend_->members());
}

std::shared_ptr<comm::Backend> comm::backend_of(const Group& group) { return group.backend_; }

std::shared_ptr<device::MemoryResource> Group::memory() const { return backend_->memory(); }
std::uint64_t Group::bytes_sent() const { return backend_->bytes_sent(); }
bool Group::on_one_node() const { return backend_->on_one_node(); }
std::vector<std::vector<int>> Group::nodes() const { return backend_->nodes(); }

int Group::rank_in_job() const { return backend_->members().ranks[static_cast<std::size_t>(rank())]; }

Pending Group::start(const Call& call) const {
  switch (call.kind) {
    case CallKind::send: comm::send(*backend_, call); return Pending();
    case CallKind::receive: return comm::receive(*backend_, call);
    default: return comm::start(*backend_, call);
  }
}

void Group::wait_until(const std::function<bool()>& done, std::string_view name) const {
  OwnWork(*backend_, done, name).wait();
}

Group Group::split(int color, int key, std::string_view name) const {
  const std::vector<std::string> texts = gather_texts(fmt::format("{} {}", color, key), name);
  std::vector<std::tuple<int, int>> order;  // (key, rank) of the ranks with my colour
  for (int rank = 0; rank < size(); ++rank) {
    const std::string& text = texts[static_cast<std::size_t>(rank)];
    int its_color = 0;
    int its_key = 0;
    const auto space = std::from_chars(text.data(), text.data() + text.size(), its_color).ptr;
    std::from_chars(space + 1, text.data() + text.size(), its_key);
    if (its_color == color) order.emplace_back(its_key, rank);
  }
  std::ranges::sort(order);
  comm::Members members{.label = std::string(name), .ranks = {}, .me = 0};
  for (const auto& [its_key, rank] : order) {
    if (rank == this->rank()) members.me = members.size();
    members.ranks.push_back(backend_->members().ranks[static_cast<std::size_t>(rank)]);
  }
  return Group(backend_->make_group(members));
}

}  // namespace trireme
