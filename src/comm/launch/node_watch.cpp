#include "comm/launch/node_watch.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <utility>

#include "core/process.hpp"
#include "trireme/core/error.hpp"

namespace trireme::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds between_watches{1};
constexpr std::chrono::milliseconds between_questions{50};  // while a probe is under way

using Post = NodeWatch::Post;

// The IPv4 addresses of this machine, without loopback.
std::vector<std::string> own_addresses() {
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return {};
  std::vector<std::string> addresses = {};
  for (const ifaddrs* one = interfaces; one != nullptr; one = one->ifa_next) {
    const bool usable = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (!usable || one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in address{};
    std::memcpy(&address, one->ifa_addr, sizeof(address));
    std::array<char, INET_ADDRSTRLEN> text{};
    if (inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size()) != nullptr) addresses.emplace_back(text.data());
  }
  freeifaddrs(interfaces);
  return addresses;
}

// 0 if the system does not provide it.
std::uint64_t network_number() {
  const std::string space = space_of_network();
  return space.empty() ? 0 : std::hash<std::string>{}(space);
}

std::string written(const Post& post) {
  std::string text = fmt::format("{} {} {}", post.network, post.password, post.port);
  for (const std::string& address : post.addresses) text += ' ' + address;
  return text;
}

// The posts of all nodes, by rank.
std::vector<Post> read_posts(const std::vector<std::string>& texts) {
  std::vector<Post> posts;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    std::istringstream words(texts[rank]);
    Post post{.rank = static_cast<int>(rank)};
    if (!(words >> post.network >> post.password >> post.port)) continue;
    for (std::string address; words >> address;) post.addresses.push_back(address);
    posts.push_back(std::move(post));
  }
  return posts;
}

// Leaves out addresses that this machine has too, such as those of container bridges: they lead back to this machine.
LivenessProbe probe_of(const Post& post, const Post& own) {
  LivenessProbe::Target target{.addresses = {}, .port = post.port, .secret = std::to_string(post.password)};
  if (post.network != 0 && post.network == own.network) {
    target.addresses = {"127.0.0.1"};
  } else {
    std::ranges::copy_if(post.addresses, std::back_inserter(target.addresses), [&own](const std::string& address) {
      return std::ranges::find(own.addresses, address) == own.addresses.end();
    });
  }
  return {std::move(target), own.rank};
}

}  // namespace

NodeWatch::NodeWatch(std::shared_ptr<RankContext> context, const Exchange& exchange, bool is_first)
    : context_(std::move(context)), own_{.rank = context_->rank(), .network = network_number()} {
  if (is_first) {
    std::random_device random;
    own_.password = std::uint64_t{random()} << 32 | random();
    own_.addresses = own_addresses();
    try {
      own_.port = responder_.emplace(std::to_string(own_.password)).port();
    } catch (const Error&) {  // other ranks then can't connect
    }
  }
  const std::vector<Post> posts = read_posts(exchange(is_first ? written(own_) : ""));
  if (posts.size() < 2) return;
  if (!is_first) {
    exchange("");
    return;
  }
  const auto me = static_cast<std::size_t>(std::ranges::find(posts, own_.rank, &Post::rank) - posts.begin());
  const Post& next = posts[(me + 1) % posts.size()];
  const Post& before = posts[(me + posts.size() - 1) % posts.size()];
  if (LivenessProbe probe = probe_of(next, own_); probe.wait() == LivenessProbe::State::alive) {
    watched_.push_back({.socket = probe.take(), .post = next});
  }
  exchange("");  // all ranks that can connect have done so
  if (Socket socket = responder_ ? responder_->take(before.rank) : Socket()) {
    watched_.push_back({.socket = std::move(socket), .post = before});
  }
  context_->add(this);
}

NodeWatch::~NodeWatch() { context_->remove(this); }

void NodeWatch::look(const std::function<bool(int rank)>& has_left) {
  const auto now = Clock::now();
  if (now < next_look_) return;
  next_look_ = now + between_watches;
  for (Watched& one : watched_) {
    if (one.socket && is_gone(one)) {
      one.socket = Socket();
      // A device in between may have closed an idle connection. A rank that is alive still answers.
      one.probe = probe_of(one.post, own_);
    }
    if (!one.probe) continue;
    const auto state = has_left(one.post.rank) ? LivenessProbe::State::alive : one.probe->look();
    if (state == LivenessProbe::State::under_way) {
      next_look_ = now + between_questions;
      continue;
    }
    if (state == LivenessProbe::State::lost) {
      one.probe.reset();
      return context_->record_lost_process(one.post.rank);
    }
    one.socket = one.probe->take();
    one.probe.reset();
  }
}

// True only at the second look: notices that a rank sent before it ended may still be on their way.
bool NodeWatch::is_gone(Watched& one) {
  std::array<std::byte, 1> nothing{};
  if (one.socket.receive_now(nothing)) return false;
  return std::exchange(one.lost, !one.lost);
}

}  // namespace trireme::comm
