#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "comm/flight/flight.hpp"
#include "comm/launch/cores.hpp"
#include "comm/launch/launch.hpp"
#include "comm/tcp/hub.hpp"
#include "comm/tcp/tcp_backend.hpp"
#include "trireme/core/log.hpp"

namespace trireme::comm {
namespace {

constexpr std::uint64_t world_id = 0;
constexpr std::uint64_t start_up_id = 1;

// Ranks prove that they belong to the job by its secret. Without a secret rank 0 listens only at the job's address.
Socket open_port(const JobPlace& place, const std::string& secret) {
  if (!secret.empty()) return listen_on(place.port);
  Socket listener = listen_on(place.port, place.address);
  const bool has_ranks_elsewhere = place.local_size < place.size;
  if (has_ranks_elsewhere || !is_of_this_machine_alone(listener)) {
    log(Severity::info,
        "rank 0 listens at {} port {} alone{}; with the same TRIREME_JOB_SECRET for all ranks it listens at all "
        "addresses, and to these ranks only",
        place.address, place.port, is_of_this_machine_alone(listener) ? ", where no other machine's ranks can come" : "");
  }
  return listener;
}

}  // namespace

int launch_tcp(const LaunchOptions& options, const JobPlace& place, const std::function<int(Group)>& main) {
  if (place.size == 1) return launch_alone(options, main);
  const char* variable = std::getenv("TRIREME_JOB_SECRET");
  const std::string secret = variable == nullptr ? "" : variable;
  std::optional<Hub> hub;
  if (place.rank == 0) hub.emplace(open_port(place, secret), place.size, secret, options.deadline);
  const auto link = std::make_shared<HubLink>(
      HubPlace{.address = place.address, .port = place.port, .rank = place.rank, .size = place.size, .secret = secret},
      options.deadline);

  const cpu_set_t cores = own_cores();
  const int core_count = usable_cores(cores, place.local_size, place.local_size);
  set_threads(threads_of_rank(core_count, place.local_size, options.threads_per_rank));
  // The NodeControl belongs to this process alone: the link notes in it what the other ranks do.
  const auto context = std::make_shared<RankContext>(RankContext::Place{.rank = place.rank,
                                                                        .node_rank = place.rank,
                                                                        .shares_all = false,
                                                                        .shares_cores = place.local_size > core_count,
                                                                        .deadline = options.deadline},
                                                     link->node());
  Members members = world_members(place.rank, place.size);
  const std::shared_ptr<Backend> world = make_tcp_group(context, link, members, world_id);
  members.label = "start-up";
  const Group start_up(make_tcp_group(context, link, members, start_up_id));
  const int code = run_rank(*context, world, [&](const Group&) {
    const Exchange exchange = [&](std::string_view text) { return start_up.gather_texts(text, "flight recorder"); };
    context->record_to(open_flight(options.flight_directory, place.rank, place.size, exchange));
    return main(Group(world));
  });
  return link->finish(*context, code);
}

}  // namespace trireme::comm
