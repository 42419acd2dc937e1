#include "comm/launch/node_watch.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <utility>

#include "core/process.hpp"
#include "trireme/core/error.hpp"

namespace trireme::comm {
namespace {

using Clock = std::chrono::steady_clock;
using Password = std::array<std::byte, sizeof(std::uint64_t)>;

constexpr std::chrono::seconds between_watches{1};
constexpr std::chrono::milliseconds longest_connect{500};  // to one address
constexpr std::chrono::seconds longest_arrival{3};

using Post = NodeWatch::Post;

// IPv4, without those of this machine alone.
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

int port_of(const Socket& socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof(name);
  if (getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&name), &size) != 0) return 0;
  in_port_t port = 0;  // at the same place in addresses of IPv4 and IPv6
  std::memcpy(&port, reinterpret_cast<const std::byte*>(&name) + offsetof(sockaddr_in, sin_port), sizeof(port));
  return ntohs(port);
}

std::string written(const Post& post) {
  std::string text = fmt::format("{} {} {}", post.network, post.password, post.port);
  for (const std::string& address : post.addresses) text += ' ' + address;
  return text;
}

// Those of all nodes, by rank.
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

Password password_bytes(std::uint64_t password) {
  Password bytes;
  std::memcpy(bytes.data(), &password, bytes.size());
  return bytes;
}

// An address that this machine has too leads to itself: such are those of bridges for containers.
Socket go_to(const Post& post, const Post& own) {
  const bool same_network = post.network == own.network;
  for (const std::string& address : same_network ? std::vector<std::string>{"127.0.0.1"} : post.addresses) {
    if (!same_network && std::ranges::find(own.addresses, address) != own.addresses.end()) continue;
    try {
      return connect_to(address, post.port, longest_connect);
    } catch (const Error&) {  // perhaps by the next one
    }
  }
  return {};
}

// The one that knows the password; strangers are turned away.
Socket await(const Socket& listener, std::uint64_t password) {
  const auto end = Clock::now() + longest_arrival;
  const auto left = [end] {
    return std::max(std::chrono::milliseconds(0), std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()));
  };
  while (wait_for_input(listener, left())) {
    Socket socket = listener.accept();
    Password said{};
    if (socket && wait_for_input(socket, std::min(left(), longest_connect)) && socket.receive_now(said) == said.size() &&
        said == password_bytes(password)) {
      return socket;
    }
  }
  return {};
}

}  // namespace

NodeWatch::NodeWatch(std::shared_ptr<RankContext> context, const Exchange& exchange, bool is_first)
    : context_(std::move(context)), own_{.rank = context_->rank(), .network = std::hash<std::string>{}(space_of_network())} {
  if (is_first) {
    std::random_device random;
    own_.password = std::uint64_t{random()} << 32 | random();
    own_.addresses = own_addresses();
    try {
      listener_ = listen_on(0);
    } catch (const Error&) {  // then nobody comes
    }
    if (listener_) own_.port = port_of(listener_);
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
  if (Socket socket = go_to(next, own_); socket && socket.send(password_bytes(next.password))) {
    watched_.push_back({.socket = std::move(socket), .post = next});
  }
  // Who could not come is not waited for.
  const std::vector<std::string> sent = exchange(watched_.empty() ? "nothing" : "password");
  if (listener_ && sent[static_cast<std::size_t>(before.rank)] == "password") {
    if (Socket socket = await(listener_, own_.password)) watched_.push_back({.socket = std::move(socket), .post = before});
  }
  context_->add(this);
}

NodeWatch::~NodeWatch() { context_->remove(this); }

void NodeWatch::look(const std::function<bool(int rank)>& has_left) {
  const auto now = Clock::now();
  if (now < next_look_) return;
  next_look_ = now + between_watches;
  for (Watched& one : watched_) {
    std::array<std::byte, 1> nothing{};
    if (!one.socket || one.socket.receive_now(nothing)) continue;
    if (!std::exchange(one.lost, true)) continue;
    one.socket = Socket();
    // Something between may have closed an idle connection. A rank that lives still listens.
    if (has_left(one.post.rank) || go_to(one.post, own_)) continue;
    return context_->record_lost_process(one.post.rank);
  }
}

}  // namespace trireme::comm
