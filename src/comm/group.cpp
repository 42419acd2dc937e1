#include "trireme/comm/group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <tuple>
#include <utility>

#include "comm/backend.hpp"
#include "comm/reduce.hpp"

namespace trireme {
namespace {

using comm::Call;
using comm::Kind;

constexpr std::size_t most_elements = std::size_t{1} << 56;  // bytes and parts can be computed without overflow

void require_arithmetic(DType dtype, Kind kind) {
  if (comm::reducible(dtype)) return;
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("{} has no arithmetic for {}", name_of(kind), name_of(dtype)),
               .hint = "use float32, float64, bfloat16, float16, int32, int64 or uint64"});
}

void require_peer(int peer, int size, std::string_view operation) {
  require(peer >= 0 && peer < size, "{} names rank {}, but the group has ranks 0 to {}", operation, peer, size - 1);
}

Pending start_checked(comm::Backend& backend, const Call& call) {
  if ((call.count > 0 && call.data == nullptr) || call.count > most_elements) [[unlikely]] {
    require(call.count <= most_elements, "{}: the count is out of range", describe(call));
    require(false, "{} got a null pointer", describe(call));
  }
  return comm::start(backend, call);
}

// What this rank alone waits for.
class OwnWork final : public comm::Polled {
 public:
  OwnWork(comm::Backend& backend, const std::function<bool()>& done, std::string_view name)
      : Polled(backend.context()), label_(backend.members().label), done_(done), name_(name) {}

  bool ready() override { return done_(); }
  ErrorFields describe_wait() const override {
    return {.message = fmt::format("{} of this rank alone, in group \"{}\"", name_, label_),
            .hint = "what it waits for is no rank's message: a GPU that is busy or stuck, for instance"};
  }

 private:
  const std::string& label_;
  const std::function<bool()>& done_;
  std::string_view name_;
};

}  // namespace

Group::Group(std::shared_ptr<comm::Backend> backend) : backend_(std::move(backend)) {
  if (comm::FlightRecorder* flight = backend_->context().flight()) flight->join(backend_->recorded, backend_->members());
}

std::shared_ptr<comm::Backend> comm::backend_of(const Group& group) { return group.backend_; }

int Group::rank() const { return backend_->members().me; }
int Group::size() const { return backend_->members().size(); }
std::shared_ptr<device::MemoryResource> Group::memory() const { return backend_->memory(); }
std::uint64_t Group::bytes_sent() const { return backend_->bytes_sent(); }
bool Group::on_one_node() const { return backend_->on_one_node(); }
std::vector<std::vector<int>> Group::nodes() const { return backend_->nodes(); }
Range Group::part(std::int64_t count, int rank) const {
  require_peer(rank, size(), "part");
  return comm::part_of(count, rank, size());
}

Pending Group::all_reduce(void* data, std::size_t count, DType dtype, ReduceOp op, std::string_view name) const {
  require_arithmetic(dtype, Kind::all_reduce);
  return start_checked(*backend_,
                       {.kind = Kind::all_reduce, .op = op, .dtype = dtype, .data = data, .count = count, .name = name});
}

Pending Group::reduce_scatter(void* data, std::size_t count, DType dtype, ReduceOp op, std::string_view name) const {
  require_arithmetic(dtype, Kind::reduce_scatter);
  return start_checked(*backend_,
                       {.kind = Kind::reduce_scatter, .op = op, .dtype = dtype, .data = data, .count = count, .name = name});
}

Pending Group::all_gather(void* data, std::size_t count, DType dtype, std::string_view name) const {
  return start_checked(*backend_, {.kind = Kind::all_gather, .dtype = dtype, .data = data, .count = count, .name = name});
}

Pending Group::broadcast(void* data, std::size_t count, DType dtype, int root, std::string_view name) const {
  require_peer(root, size(), "broadcast");
  return start_checked(*backend_,
                       {.kind = Kind::broadcast, .dtype = dtype, .root = root, .data = data, .count = count, .name = name});
}

void Group::barrier(std::string_view name) const {
  start_checked(*backend_, {.kind = Kind::barrier, .name = name}).wait_on_host();
}

void Group::send(const void* data, std::size_t count, DType dtype, int to, int tag, std::string_view name) const {
  require_peer(to, size(), "send");
  require(tag >= 0, "send with the negative tag {}", tag);
  comm::send(*backend_,
             {.data = const_cast<void*>(data), .count = count, .dtype = dtype, .peer = to, .tag = tag, .name = name});
}

Pending Group::receive(void* data, std::size_t count, DType dtype, int from, int tag, std::string_view name) const {
  require_peer(from, size(), "receive");
  require(tag >= 0, "receive with the negative tag {}", tag);
  return comm::receive(*backend_, {.data = data, .count = count, .dtype = dtype, .peer = from, .tag = tag, .name = name});
}

void Group::wait_until(const std::function<bool()>& done, std::string_view name) const {
  OwnWork(*backend_, done, name).wait();
}

std::vector<std::string> Group::gather_texts(std::string_view text, std::string_view name) const {
  return comm::gather_texts(*backend_, text, name);
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
