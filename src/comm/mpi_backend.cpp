#include "comm/mpi_backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "comm/mismatch.hpp"
#include "comm/mpi_collective.hpp"

namespace trireme::comm {
namespace {

// One collective: first the ranks exchange what they called, then the data move.
struct Flight {
  std::uint64_t sequence = 0;
  Call call;
  std::string name;  // `call.name` points here
  WrittenCall mine;
  std::vector<WrittenCall> all;
  MPI_Request comparison = MPI_REQUEST_NULL;
  bool started = false;
  bool done = false;
  std::vector<MPI_Request> requests;
};

class MpiBackend final : public Backend, public Progress, public std::enable_shared_from_this<MpiBackend> {
 public:
  MpiBackend(std::shared_ptr<RankContext> context, std::shared_ptr<Platform> platform, std::shared_ptr<MpiAlarm> alarm,
             Members members, MPI_Comm calls, MPI_Comm data, std::unique_ptr<Mail> mail)
      : context_(std::move(context)),
        platform_(std::move(platform)),
        alarm_(std::move(alarm)),
        members_(std::move(members)),
        calls_(calls),
        data_(data),
        mail_(std::move(mail)) {
    context_->add(this);
  }
  ~MpiBackend() override {
    context_->remove(this);
    if (!flights_.empty())
      new std::deque<std::shared_ptr<Flight>>(std::move(flights_));  // never freed: MPI may still write to them
  }

  const Members& members() const override { return members_; }
  RankContext& context() override { return *context_; }
  std::unique_ptr<Operation> start(const Call& call) override;
  std::unique_ptr<Operation> receive(const Message& message) override { return mail_->receive(message); }
  void send(const Message& message) override { mail_->send(message); }
  std::shared_ptr<device::MemoryResource> memory() override { return device::host_memory(); }
  bool on_one_node() const override { return false; }
  std::shared_ptr<Backend> make_group(const Members& members) override { return platform_->make_group(*this, members); }

  bool needs_polling() const override { return !flights_.empty(); }
  void advance() override;
  std::optional<int> who_left() const;  // a member that has, of another node

 private:
  bool compare(Flight& flight);

  std::shared_ptr<RankContext> context_;
  std::shared_ptr<Platform> platform_;
  std::shared_ptr<MpiAlarm> alarm_;
  Members members_;
  MPI_Comm calls_;
  MPI_Comm data_;
  std::unique_ptr<Mail> mail_;
  std::uint64_t sequence_ = 0;
  std::optional<Error> mismatch_;
  std::deque<std::shared_ptr<Flight>> flights_;
};

class MpiOperation final : public Operation {
 public:
  MpiOperation(std::shared_ptr<MpiBackend> group, std::shared_ptr<Flight> flight)
      : group_(std::move(group)), flight_(std::move(flight)) {}

  RankContext& context() override { return group_->context(); }
  bool ready() override { return flight_->done; }
  void check_peers() override;
  ErrorFields describe_wait() const override {
    const std::string_view waits_for = flight_->started ? "the network moves its data" : "some rank has not called it";
    return {.message = fmt::format("{} of group \"{}\": {}", describe(flight_->call, flight_->sequence),
                                   group_->members().label, waits_for),
            .sequence = flight_->sequence};
  }
  void abandon() noexcept override {
    // MPI may still write to the caller's memory. The others end up here too, so what has started comes to an end.
    const auto end = std::chrono::steady_clock::now() + grace;
    try {
      while (flight_->started && !flight_->done && std::chrono::steady_clock::now() < end) group_->advance();
    } catch (...) {
    }
  }

 private:
  static constexpr std::chrono::seconds grace{2};
  static constexpr std::chrono::milliseconds last_delivery{500};  // what a rank sent before it left may still be on its way

  std::shared_ptr<MpiBackend> group_;
  std::shared_ptr<Flight> flight_;
  std::optional<std::chrono::steady_clock::time_point> left_since_;
};

std::optional<int> MpiBackend::who_left() const {
  for (const int rank : members_.ranks) {
    if (alarm_->left(rank)) return rank;
  }
  return std::nullopt;
}

// A rank leaves when its calls are done, so it has not made this one.
void MpiOperation::check_peers() {
  const std::optional<int> who = group_->who_left();
  if (!who || flight_->started) return;
  const auto now = std::chrono::steady_clock::now();
  if (!left_since_) left_since_ = now;
  if (now - *left_since_ < last_delivery) return;
  context().check_failure();
  const Error error(
      {.code = ErrorCode::peer_failed,
       .message = fmt::format("rank {} left the group \"{}\" while rank {} waits for it in {}", *who, group_->members().label,
                              context().rank(), describe(flight_->call, flight_->sequence)),
       .rank = *who,
       .sequence = flight_->sequence});
  context().record_failure(error);
  throw error;
}

std::unique_ptr<Operation> MpiBackend::start(const Call& call) {
  auto flight = std::make_shared<Flight>();
  flight->sequence = ++sequence_;
  flight->call = call;
  flight->name = call.name;
  flight->call.name = flight->name;
  flight->mine = write_call(flight->call);
  flight->all.resize(members_.ranks.size());
  const int bytes = static_cast<int>(sizeof(WrittenCall));
  check_mpi(MPI_Iallgather(&flight->mine, bytes, MPI_BYTE, flight->all.data(), bytes, MPI_BYTE, calls_, &flight->comparison),
            "MPI_Iallgather");
  flights_.push_back(flight);
  return std::make_unique<MpiOperation>(shared_from_this(), flight);
}

bool MpiBackend::compare(Flight& flight) {
  int done = 0;
  check_mpi(MPI_Test(&flight.comparison, &done, MPI_STATUS_IGNORE), "MPI_Test");
  if (done == 0) return false;
  if (std::ranges::any_of(flight.all, [&](const WrittenCall& other) { return !same(other, flight.mine); })) {
    std::vector<std::string> texts;
    for (const WrittenCall& written : flight.all) texts.push_back(describe(written, flight.sequence));
    mismatch_ = mismatch_error(texts, members_, flight.sequence);
    throw *mismatch_;
  }
  return true;
}

// Data move in the order of the calls: MPI wants the same order on all ranks.
void MpiBackend::advance() {
  if (mismatch_) throw *mismatch_;
  for (const auto& flight : flights_) {
    if (flight->started) continue;
    if (!compare(*flight)) break;
    flight->requests = start_collective(flight->call, members_.size(), data_);
    flight->started = true;
  }
  for (const auto& flight : flights_) {
    if (!flight->started) break;
    int done = 0;
    check_mpi(MPI_Testall(static_cast<int>(flight->requests.size()), flight->requests.data(), &done, MPI_STATUSES_IGNORE),
              "MPI_Testall");
    if (done == 0) continue;
    if (!flight->done) finish_collective(flight->call, members_.size());
    flight->done = true;
  }
  while (!flights_.empty() && flights_.front()->done) flights_.pop_front();
}

}  // namespace

std::shared_ptr<Backend> make_mpi_backend(std::shared_ptr<RankContext> context, std::shared_ptr<Platform> platform,
                                          std::shared_ptr<MpiAlarm> alarm, const Members& members, MPI_Comm calls,
                                          MPI_Comm data, std::unique_ptr<Mail> mail) {
  return std::make_shared<MpiBackend>(std::move(context), std::move(platform), std::move(alarm), members, calls, data,
                                      std::move(mail));
}

}  // namespace trireme::comm
