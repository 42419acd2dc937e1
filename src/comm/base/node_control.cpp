#include "comm/base/node_control.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "comm/base/futex.hpp"

namespace trireme::comm {
namespace {

constexpr std::chrono::seconds longest_writing{1};  // how long a failed rank may take to write its failure to memory

}  // namespace

std::size_t NodeControl::bytes(int ranks) { return sizeof(NodeControl) + static_cast<std::size_t>(ranks) * sizeof(Place); }

NodeControl* NodeControl::create(void* memory, int ranks) {
  auto* control = new (memory) NodeControl(ranks);
  for (int rank = 0; rank < ranks; ++rank) new (control->places() + rank) Place;
  return control;
}

NodeControl* NodeControl::find(void* memory) { return std::launder(static_cast<NodeControl*>(memory)); }

NodeControl::NodeControl(int ranks) : ranks_(ranks) {}

NodeControl::Place* NodeControl::places() const {
  auto* after = const_cast<NodeControl*>(this) + 1;
  return std::launder(reinterpret_cast<Place*>(after));
}

bool NodeControl::record_failure(const Failure& failure) {
  std::uint32_t expected = none;
  if (!failure_state_.compare_exchange_strong(expected, writing)) return false;
  failed_rank_ = failure.rank;
  exit_code_ = failure.exit_code;
  code_ = failure.code;
  sequence_ = failure.sequence;
  text_size_ = std::min(failure.text.size(), text_limit);
  std::memcpy(text_.data(), failure.text.data(), text_size_);
  failure_state_.store(recorded);
  wake_all();
  return true;
}

Failure NodeControl::failure() const {
  const auto end = std::chrono::steady_clock::now() + longest_writing;
  while (failure_state_.load() != recorded) {
    if (std::chrono::steady_clock::now() >= end) return {.text = "a rank was killed while it reported its failure"};
    sched_yield();
  }
  return {.rank = failed_rank_,
          .exit_code = exit_code_,
          .code = code_,
          .sequence = sequence_,
          .text = std::string(text_.data(), text_size_)};
}

bool NodeControl::claim_report() { return reported_.exchange(1) == 0; }
bool NodeControl::claim_relay() { return relayed_.exchange(1) == 0; }
bool NodeControl::claim_abort() { return aborted_.exchange(1) == 0; }

void NodeControl::note_return(int rank) {
  places()[rank].returned.store(1);
  wake_all();
}

void NodeControl::leave(int rank) {
  places()[rank].returned.store(1);
  places()[rank].left.store(1);
  wake_all();
}

bool NodeControl::all_left() const {
  return std::all_of(places(), places() + ranks_, [](const Place& place) { return place.left.load() != 0; });
}

void NodeControl::note_process(int rank, const OwnProcess& process) {
  places()[rank].process = process;
  places()[rank].has_process.store(1);
}

std::optional<NodeControl::OwnProcess> NodeControl::process(int rank) const {
  const Place& place = places()[rank];
  if (place.has_process.load() == 0) return std::nullopt;
  return place.process;
}

std::uint32_t NodeControl::announce_sleep(int rank) {
  Place& place = places()[rank];
  place.sleeping.store(1);
  sleepers_.fetch_add(1);
  const std::uint32_t seen = place.doorbell.load();
  full_fence();
  return seen;
}

void NodeControl::sleep(int rank, std::uint32_t seen, std::chrono::microseconds timeout) {
  futex_wait(places()[rank].doorbell, seen, timeout);
}

void NodeControl::end_sleep(int rank) {
  sleepers_.fetch_sub(1);
  places()[rank].sleeping.store(0);
}

void NodeControl::ring(Place& place) {
  if (place.sleeping.load() == 0) return;
  place.doorbell.fetch_add(1);
  futex_wake_all(place.doorbell);
}

void NodeControl::wake_sleepers(std::span<const int> ranks) {
  for (const int rank : ranks) ring(places()[rank]);
}

void NodeControl::wake_all() {
  for (int rank = 0; rank < ranks_; ++rank) ring(places()[rank]);
}

void NodeControl::note_wait(int rank, std::string_view what) {
  Place& place = places()[rank];
  std::array<std::uint64_t, wait_words> words{};
  what.copy(reinterpret_cast<char*>(words.data()), sizeof(words) - 1);
  for (std::size_t word = 0; word < wait_words; ++word) place.what[word].store(words[word], std::memory_order_relaxed);
  place.wait.store(++place.num_waits);
}

std::optional<std::string> NodeControl::wait_of(int rank) const {
  const Place& place = places()[rank];
  if (place.wait.load() == 0) return std::nullopt;
  std::array<std::uint64_t, wait_words> words{};
  for (std::size_t word = 0; word < wait_words; ++word) words[word] = place.what[word].load(std::memory_order_relaxed);
  words.back() = 0;
  return reinterpret_cast<const char*>(words.data());
}

std::optional<NodeControl::Standstill> NodeControl::standstill() const {
  Standstill result;
  for (int rank = 0; rank < ranks_; ++rank) {
    const Place& place = places()[rank];
    const bool has_left = place.left.load() != 0;
    const std::uint64_t wait = has_left ? 0 : place.wait.load();
    if (wait == 0 && !has_left) return std::nullopt;
    result.waits.push_back(wait);
    result.looks.push_back(place.looks.load());
  }
  // Read last, so that changes that a rank made before its look are counted.
  for (int rank = 0; rank < ranks_; ++rank) result.changes += places()[rank].changes.load();
  return result;
}

bool NodeControl::Standstill::proven_by(const Standstill& later) const {
  if (later.changes != changes || later.waits != waits) return false;
  for (std::size_t rank = 0; rank < looks.size(); ++rank) {
    if (waits[rank] != 0 && later.looks[rank] < looks[rank] + 2) return false;
  }
  return true;
}

std::shared_ptr<NodeControl> make_node_control(int ranks) {
  constexpr std::align_val_t alignment{alignof(NodeControl)};
  void* memory = ::operator new(NodeControl::bytes(ranks), alignment);
  return {NodeControl::create(memory, ranks), [](NodeControl* control) { ::operator delete(control, alignment); }};
}

}  // namespace trireme::comm
