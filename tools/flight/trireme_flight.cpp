// Reads the files of the flight recorder and prints what the ranks of a job did last. See docs/failures.md.
//   trireme-flight DIR [--json]

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command_line.hpp"
#include "verdict.hpp"

using namespace trireme::comm;

namespace {

enum ExitCode { all_well = 0, something_wrong = 1, nothing_readable = 2, still_running = 3 };

std::string state_text(const RankView& view) {
  const auto since = [&](std::string_view verb) {
    const FlightEntry* entry = view.stuck_in();
    return fmt::format("{} {} since {:.1f} s", verb, entry != nullptr ? describe(view, *entry) : "something", view.waited);
  };
  const auto in = [&](std::string text) {
    const FlightEntry* entry = view.stuck_in();
    return entry == nullptr ? text : fmt::format("{} in {}", text, describe(view, *entry));
  };
  switch (view.state) {
    case RankState::missing: return "missing";
    case RankState::finished:
      return view.header().exit_code == 0 ? "finished" : fmt::format("finished with exit code {}", view.header().exit_code);
    case RankState::failed: return in("failed");
    case RankState::vanished: return in(view.end_text());
    case RankState::stopped: return in("stopped");
    case RankState::waiting: return since("waiting in");
    case RankState::running: return fmt::format("running, last sign of life {:.1f} s ago", view.age);
  }
  return "unknown";
}

std::string last_text(const RankView& view) {
  const FlightEntry* last = view.last();
  return last == nullptr ? "" : describe(view, *last);
}

bool all_finished(const Job& job) {
  return std::ranges::all_of(job.ranks, [](const RankView& view) { return view.state == RankState::finished; });
}

void print(const Job& job, const std::vector<Finding>& findings) {
  fmt::print("{:>5}  {:<16} {:>8}  {}\n", "rank", "host", "pid", "state");
  for (const RankView& view : job.ranks) {
    if (!view.file) {
      fmt::print("{:>5}  {:<16} {:>8}  missing\n", view.rank, "-", "-");
      continue;
    }
    const FlightHeader& header = view.header();
    fmt::print("{:>5}  {:<16} {:>8}  {}\n", view.rank, plain(header.host.data(), header.host.size()), header.process,
               state_text(view));
    if (view.stuck_in() == nullptr && view.last() != nullptr) fmt::print("{:>33}last call: {}\n", "", last_text(view));
    if (view.state == RankState::failed) fmt::print("{:>33}error: {}\n", "", view.error());
  }
  fmt::print("\n");
  if (findings.empty())
    fmt::print("{}\n", all_finished(job) ? "all ranks finished" : "the job is running; nothing is wrong so far");
  for (const Finding& finding : findings) fmt::print("{}\n", finding.text);
}

nlohmann::json json_of(const RankView& view, const FlightEntry& entry) {
  const FlightFile& file = *view.file;
  const auto time = [&](std::int64_t value) {
    return value == 0 ? nlohmann::json() : nlohmann::json(wall_seconds(file, value));
  };
  static constexpr std::array fates = {"under way", "done", "failed"};
  return {{"sequence", entry.sequence},
          {"group", plain(file.groups[entry.group].label.data(), file.groups[entry.group].label.size())},
          {"call", describe(view, entry)},
          {"name", plain(entry.name.data(), entry.name.size())},
          {"count", entry.count},
          {"issued", time(entry.issued)},
          {"started", time(entry.started)},
          {"ended", time(entry.ended)},
          {"fate", fates[static_cast<std::size_t>(entry.fate)]}};
}

nlohmann::json json_of(const RankView& view, std::size_t num_calls) {
  nlohmann::json rank = {{"rank", view.rank}, {"state", name_of(view.state)}};
  if (!view.file) return rank;
  const FlightHeader& header = view.header();
  rank["host"] = plain(header.host.data(), header.host.size());
  rank["pid"] = header.process;
  rank["file"] = view.file->path.string();
  rank["exit_code"] = header.exit_code;
  rank["signal"] = header.signal;
  rank["entries"] = header.num_entries;
  rank["last_sign_seconds_ago"] = view.age;
  if (view.state == RankState::failed) rank["error"] = view.error();
  if (const FlightEntry* entry = view.stuck_in()) {
    rank["stuck_in"] = json_of(view, *entry);
    rank["waited_seconds"] = view.waited;
  }
  if (const FlightEntry* entry = view.last()) rank["last"] = json_of(view, *entry);
  rank["calls"] = nlohmann::json::array();
  const std::vector<FlightEntry>& entries = view.file->entries;
  for (std::size_t index = entries.size() - std::min(num_calls, entries.size()); index < entries.size(); ++index) {
    rank["calls"].push_back(json_of(view, entries[index]));
  }
  return rank;
}

void print_json(const std::optional<Job>& job, const std::vector<Finding>& findings, const std::vector<std::string>& notes,
                std::size_t num_calls) {
  nlohmann::json result = {{"ranks", nlohmann::json::array()}, {"findings", nlohmann::json::array()}, {"notes", notes}};
  if (job) {
    for (const RankView& view : job->ranks) result["ranks"].push_back(json_of(view, num_calls));
  }
  for (const Finding& finding : findings) {
    result["findings"].push_back({{"kind", finding.kind}, {"ranks", finding.ranks}, {"text", finding.text}});
  }
  fmt::print("{}\n", result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

int look(const std::string& folder, bool json, std::size_t num_calls) {
  std::vector<std::string> notes;
  const std::optional<Job> job = read_job(folder, notes);
  for (const std::string& note : notes) fmt::print(stderr, "trireme-flight: {}\n", note);
  const std::vector<Finding> findings = job ? find_causes(*job) : std::vector<Finding>{};
  if (json) {
    print_json(job, findings, notes, num_calls);
  } else if (job) {
    print(*job, findings);
  }
  if (!job) return nothing_readable;
  if (!findings.empty()) return something_wrong;
  return all_finished(*job) ? all_well : still_running;
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder;
  bool json = false;
  std::size_t num_calls = 20;
  CLI::App app(
      "Reads the files of the flight recorder and says what each rank did last, which one is behind, and in which operation.\n"
      "Exit codes: 0 all ranks finished, 1 something is wrong and named, 2 nothing readable, 3 the job is still running.",
      "trireme-flight");
  app.add_option("DIR", folder, "the folder given to --flight-dir or TRIREME_FLIGHT_DIR")->required();
  app.add_flag("--json", json, "print one JSON object instead of a table");
  trireme::add_number(app, "--calls", num_calls, "last calls of each rank in the JSON object");
  if (const auto code = trireme::parse_command_line(app, argc, argv)) return *code;
  return trireme::run_tool(app.get_name(), [&] { return look(folder, json, num_calls); });
}
