#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "comm/shared/platform.hpp"

namespace trireme::comm {

// Messages on their way between the ranks of a group of threads. The n-th receive for a sender and a tag gets the n-th message,
// no matter in which order the receives are waited for.
class Mailboxes {
 public:
  using Key = std::tuple<int, int, int>;  // from, to, tag
  struct Letter {
    std::vector<std::byte> bytes;
    std::size_t count = 0;
    DType dtype = DType::uint8;
    std::string name;
  };

  void put(const Key& key, Letter letter);
  std::uint64_t ticket(const Key& key);
  std::optional<Letter> take(const Key& key, std::uint64_t ticket);

 private:
  struct Box {
    std::uint64_t sent = 0;
    std::uint64_t asked = 0;
    std::map<std::uint64_t, Letter> letters;
  };

  std::mutex mutex_;
  std::map<Key, Box> boxes_;
};

// One rank's end of the mailboxes.
std::unique_ptr<Mail> open_mail(std::shared_ptr<Mailboxes> boxes, std::shared_ptr<RankContext> context, const Members& members,
                                std::vector<int> node_ranks);

}  // namespace trireme::comm
