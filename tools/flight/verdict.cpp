#include "verdict.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "comm/calls/call.hpp"
#include "comm/calls/members.hpp"
#include "trireme/core/error.hpp"
#include "wait_graph.hpp"

using namespace trireme::comm;

namespace {

constexpr int no_error = -1;
constexpr double long_wait = 5;  // seconds; in a running job, ranks may wait shorter for each other without being blamed

std::string call_text(const FlightEntry& entry) {
  const std::string name = plain(entry.name.data(), entry.name.size());
  const trireme::Call call{.kind = static_cast<trireme::CallKind>(entry.kind),
                           .op = static_cast<trireme::ReduceOp>(entry.op),
                           .dtype = static_cast<trireme::DType>(entry.dtype),
                           .peer = entry.peer,
                           .tag = entry.tag,
                           .count = static_cast<std::size_t>(entry.count),
                           .name = name};
  return is_collective(entry) ? describe(call, entry.sequence) : trireme::describe(call);
}

bool ended_badly(const RankView& view) { return view.state == RankState::failed || view.state == RankState::vanished; }

// The rank's failure is its own: it was not caused by another rank, and not by waiting.
bool failed_itself(const RankView& view) {
  if (view.state != RankState::failed) return false;
  const auto code = view.header().error_code;
  return code == no_error ||
         (code != static_cast<int>(trireme::ErrorCode::peer_failed) && code != static_cast<int>(trireme::ErrorCode::timeout) &&
          code != static_cast<int>(trireme::ErrorCode::rank_mismatch));
}

class Analysis {
 public:
  explicit Analysis(const Job& job) : job_(job), waits_(job) {}

  std::vector<Finding> findings() {
    add_missing();
    add_crashes();
    add_own_failures();
    add_mismatches();
    add_roots();
    add_circles();
    add_the_rest();
    return std::move(findings_);
  }

 private:
  const RankView& view(int rank) const { return job_.ranks[static_cast<std::size_t>(rank)]; }

  // "; ranks 0, 2 wait for it in #42 ..."
  std::string waiters_text(int rank) const {
    std::map<std::string, std::vector<int>> by_call;
    bool over = true;
    for (const int waiter : waits_.waiters_for(rank)) {
      if (view(waiter).state == RankState::waiting) over = false;
      by_call[describe(view(waiter), *waits_.stuck_in(view(waiter)))].push_back(waiter);
    }
    std::string text;
    for (const auto& [call, waiters] : by_call) {
      const std::string_view verb = over ? "waited" : waiters.size() == 1 ? "waits" : "wait";
      text += fmt::format("; {} {} for it in {}", list_of_ranks(waiters), verb, call);
    }
    return text;
  }

  // "in #42 ..." or "after #41 ..."
  std::string where(const RankView& view) const {
    const FlightEntry* last = waits_.last_of(view);
    if (last == nullptr) return "before it called anything";
    const FlightEntry* in = waits_.stuck_in(view);
    if (in != nullptr) return fmt::format("in {}", describe(view, *in));
    return fmt::format("after {}", describe(view, *last));
  }

  void add(std::string kind, std::vector<int> ranks, std::string text) {
    for (const int rank : ranks) blamed_.insert(rank);
    findings_.push_back({std::move(kind), std::move(ranks), std::move(text)});
  }

  void add_missing() {
    std::vector<int> ranks;
    for (const RankView& view : job_.ranks) {
      if (view.state == RankState::missing) ranks.push_back(view.rank);
    }
    if (ranks.empty()) return;
    constexpr std::size_t most_named = 20;
    const std::size_t number = ranks.size();
    ranks.resize(std::min(number, most_named));
    late_.push_back(
        {"missing", ranks,
         fmt::format("{}{} left no readable file here, of {} ranks", list_of_ranks(ranks),
                     number > most_named ? fmt::format(" and {} more", number - most_named) : "", job_.ranks.size())});
  }

  // Processes that vanished, except those that a signal from outside asked to end.
  void add_crashes() {
    constexpr std::array asked = {SIGTERM, SIGINT, SIGHUP};
    for (const RankView& view : job_.ranks) {
      if (view.state != RankState::vanished || !view.file) continue;
      const int signal = view.header().signal;
      if (std::ranges::find(asked, signal) != asked.end()) continue;
      // If one rank of a process crashes, the process dies with all its ranks.
      const bool by_another = signal != 0 && view.header().signalled == 0;
      if (by_another && std::ranges::any_of(job_.ranks, [&](const RankView& other) {
            return other.file && other.header().process == view.header().process && other.header().signalled != 0;
          })) {
        continue;
      }
      crashed_.push_back(view.rank);
    }
    // If ranks vanished together, report only those that others wait for and that wait for nobody, if there are any.
    const bool some_block = std::ranges::any_of(crashed_, [&](int rank) { return waits_.is_root(rank); });
    for (const int rank : crashed_) {
      if (some_block && !waits_.is_root(rank)) continue;
      add("vanished", {rank},
          fmt::format("rank {} {} {} {}{}", rank, view(rank).place(), view(rank).end_text(), where(view(rank)),
                      waiters_text(rank)));
    }
  }

  void add_own_failures() {
    for (const RankView& view : job_.ranks) {
      if (!failed_itself(view)) continue;
      add("failed", {view.rank},
          fmt::format("rank {} {} failed {}: {}{}", view.rank, view.place(), where(view), view.error(),
                      waiters_text(view.rank)));
    }
  }

  void add_mismatches() {
    for (const auto& [id, members] : waits_.groups()) {
      std::map<std::uint64_t, std::map<std::string, std::vector<int>>> calls;  // by sequence, then by the text of the call
      std::string label;
      for (const auto& [index, member] : members) {
        const FlightFile& file = *view(member.rank).file;
        label = plain(file.groups[member.place].label.data(), file.groups[member.place].label.size());
        for (const FlightEntry& entry : file.entries) {
          if (entry.group == member.place && is_collective(entry)) {
            calls[entry.sequence][call_text(entry)].push_back(member.rank);
          }
        }
      }
      for (const auto& [sequence, by_text] : calls) {
        if (by_text.size() < 2) continue;
        add_mismatch(label, by_text);
        break;
      }
    }
  }

  void add_mismatch(const std::string& label, const std::map<std::string, std::vector<int>>& calls) {
    std::string text;
    std::size_t most = 0;
    for (const auto& [call, ranks] : calls) {
      text += fmt::format("{}{} called {}", text.empty() ? "" : ", ", list_of_ranks(ranks), call);
      most = std::max(most, ranks.size());
    }
    std::vector<int> odd;  // if more than half of the ranks agree, the others; else all
    for (const auto& [call, ranks] : calls) {
      const bool others_agree = most * 2 > total(calls);
      if (!others_agree || ranks.size() < most) odd.insert(odd.end(), ranks.begin(), ranks.end());
    }
    std::ranges::sort(odd);
    add("mismatch", std::move(odd), fmt::format("the ranks of group \"{}\" disagree: {}", label, text));
  }

  static std::size_t total(const std::map<std::string, std::vector<int>>& calls) {
    std::size_t sum = 0;
    for (const auto& [call, ranks] : calls) sum += ranks.size();
    return sum;
  }

  // Ranks that others wait for and that wait for nobody.
  void add_roots() {
    for (const RankView& view : job_.ranks) {
      if (!waits_.is_root(view.rank) || blamed_.contains(view.rank)) continue;
      const std::string who = fmt::format("rank {} {}", view.rank, view.place());
      const std::string rest = waiters_text(view.rank);
      if (waits_.late_call(view.rank) != nullptr) {
        add("behind", {view.rank},
            fmt::format("{} was behind, stopped or busy elsewhere {}{}; it called that only when they had given up", who,
                        where(view), rest));
        continue;
      }
      switch (view.state) {
        case RankState::missing: break;
        case RankState::finished:
          add("left early", {view.rank}, fmt::format("{} returned from main {}{}", who, where(view), rest));
          break;
        case RankState::failed:
          if (view.header().error_code == static_cast<int>(trireme::ErrorCode::peer_failed)) break;  // another rank caused it
          add("failed", {view.rank}, fmt::format("{} failed {}: {}{}", who, where(view), view.error(), rest));
          break;
        case RankState::vanished:
          add("vanished", {view.rank}, fmt::format("{} {} {}{}", who, view.end_text(), where(view), rest));
          break;
        case RankState::stopped:
          add("stopped", {view.rank}, fmt::format("{} is stopped (SIGSTOP or a debugger) {}{}", who, where(view), rest));
          break;
        case RankState::waiting:
        case RankState::running:
          if (longest_wait(view.rank) < long_wait) break;
          add("behind", {view.rank},
              fmt::format("{} is behind: it has been busy elsewhere for {:.1f} s {}{}", who, view.age, where(view), rest));
          break;
      }
    }
  }

  double longest_wait(int rank) const {
    double longest = 0;
    for (const int waiter : waits_.waiters_for(rank)) {
      longest = std::max(longest, ended_badly(view(waiter)) ? long_wait : view(waiter).waited);
    }
    return longest;
  }

  // Ranks that wait for each other, when nobody else is to blame.
  void add_circles() {
    if (!findings_.empty()) return;
    for (const auto& [start, first] : waits_.blockers()) {
      std::vector<int> path{start};
      while (waits_.has_blockers(path.back())) {
        const int next = *waits_.blockers().at(path.back()).begin();
        const auto seen = std::ranges::find(path, next);
        if (seen == path.end()) {
          path.push_back(next);
          continue;
        }
        add_circle({seen, path.end()});
        return;
      }
    }
  }

  void add_circle(std::vector<int> ranks) {
    std::ranges::sort(ranks);
    double shortest = long_wait;
    std::string text;
    for (const int rank : ranks) {
      if (!ended_badly(view(rank))) shortest = std::min(shortest, view(rank).waited);
      text +=
          fmt::format("{}rank {} in {}", text.empty() ? "" : ", ", rank, describe(view(rank), *waits_.stuck_in(view(rank))));
    }
    if (shortest < 1) return;  // the job is still making progress
    const std::string who = list_of_ranks(ranks);
    add("circle", std::move(ranks), fmt::format("{} wait for each other: {}", who, text));
  }

  void add_the_rest() {
    for (Finding& finding : late_) findings_.push_back(std::move(finding));
    if (!findings_.empty()) return;
    for (const RankView& view : job_.ranks) {
      if (view.state == RankState::failed) {
        add("failed", {view.rank}, fmt::format("rank {} {} failed {}: {}", view.rank, view.place(), where(view), view.error()));
      } else if (view.state == RankState::vanished) {
        add("vanished", {view.rank}, fmt::format("rank {} {} {} {}", view.rank, view.place(), view.end_text(), where(view)));
      } else if (view.state == RankState::stopped) {
        add("stopped", {view.rank},
            fmt::format("rank {} {} is stopped (SIGSTOP or a debugger) {}", view.rank, view.place(), where(view)));
      } else if (view.state == RankState::finished && view.header().exit_code != 0) {
        add("failed", {view.rank},
            fmt::format("rank {} {} returned {} from main", view.rank, view.place(), view.header().exit_code));
      }
    }
  }

  const Job& job_;
  WaitGraph waits_;
  std::set<int> blamed_;
  std::vector<int> crashed_;
  std::vector<Finding> late_;
  std::vector<Finding> findings_;
};

}  // namespace

std::string describe(const RankView& view, const FlightEntry& entry) {
  const FlightGroup& group = view.file->groups[entry.group];
  return fmt::format("{} of group \"{}\"", call_text(entry), plain(group.label.data(), group.label.size()));
}

std::vector<Finding> find_causes(const Job& job) { return Analysis(job).findings(); }
