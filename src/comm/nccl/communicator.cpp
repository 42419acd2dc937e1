#include "comm/nccl/communicator.hpp"

#include <fmt/format.h>

#include <exception>
#include <system_error>
#include <utility>

#include "comm/base/waiting.hpp"

namespace trireme::comm {

// Waits for work that NCCL does on its own threads.
class Communicator::Readiness final : public Polled {
 public:
  Readiness(Communicator& communicator, const std::string& what)
      : Polled(*communicator.context_), communicator_(communicator), what_(what) {}

  bool ready() override { return communicator_.is_ready(what_); }
  ErrorFields describe_wait() const override {
    return {.message = fmt::format("{} of group \"{}\"; NCCL is not ready for it", what_, communicator_.label_),
            .hint = "a rank has not made this call, or NCCL can't reach it: NCCL_DEBUG=INFO shows how it tries"};
  }

 private:
  Communicator& communicator_;
  const std::string& what_;
};

Communicator::Communicator(std::shared_ptr<const NcclApi> api, std::shared_ptr<RankContext> context, const Members& members,
                           const ncclUniqueId& id)
    : api_(std::move(api)), context_(std::move(context)), label_(members.label), exceptions_(std::uncaught_exceptions()) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.commName = label_.c_str();
  try {
    const ncclResult_t result = api_->comm_init_rank_config(&communicator_, members.size(), id, members.me, &config);
    if (result != ncclSuccess && result != ncclInProgress) throw nccl_error(*api_, result, nullptr, "ncclCommInitRankConfig");
    wait_until_ready("ncclCommInitRankConfig");
  } catch (...) {
    abort();
    wait_for_abort();
    throw;
  }
}

void Communicator::close() noexcept {
  if (std::uncaught_exceptions() > exceptions_ || context_->node().failed()) return abort();
  try {
    enqueue("ncclCommFinalize", api_->comm_finalize);
  } catch (...) {
    return abort();
  }
  const std::lock_guard lock(mutex_);
  if (communicator_ != nullptr) api_->comm_destroy(std::exchange(communicator_, nullptr));
}

void Communicator::enqueue(const std::string& what, const std::function<ncclResult_t(ncclComm_t)>& put) {
  {
    const std::lock_guard lock(mutex_);
    if (communicator_ != nullptr) {
      const ncclResult_t result = put(communicator_);
      if (result == ncclSuccess) return;
      if (result != ncclInProgress) throw nccl_error(*api_, result, communicator_, what);
    }
  }
  wait_until_ready(what);
}

void Communicator::wait_until_ready(const std::string& what) { Readiness(*this, what).wait(); }

bool Communicator::is_ready(const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (communicator_ == nullptr) {
    context_->check_failure();
    throw Error({.message = fmt::format("{} of group \"{}\" came after the group was given up", what, label_)});
  }
  ncclResult_t state = ncclSuccess;
  const ncclResult_t result = api_->comm_get_async_error(communicator_, &state);
  if (result != ncclSuccess) throw nccl_error(*api_, result, communicator_, what);
  if (state == ncclInProgress) return false;
  if (state != ncclSuccess) throw nccl_error(*api_, state, communicator_, what);
  return true;
}

// Runs ncclCommAbort on a thread of its own: it ends the work at once, but returns only when every graph with some of this work
// is destroyed, possibly by the calling thread.
void Communicator::abort() noexcept {
  const std::lock_guard lock(mutex_);
  if (communicator_ == nullptr) return;
  ncclComm_t const communicator = std::exchange(communicator_, nullptr);
  try {
    aborting_ = std::thread([api = api_, communicator, aborted = aborted_] {
      api->comm_abort(communicator);
      *aborted = true;
    });
  } catch (const std::system_error&) {  // no thread can be started
    api_->comm_abort(communicator);
  }
}

void Communicator::wait_for_abort() noexcept {
  if (!aborting_.joinable()) return;
  const auto end = std::chrono::steady_clock::now() + abort_patience;
  while (!*aborted_ && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(abort_nap);
  *aborted_ ? aborting_.join() : aborting_.detach();
}

std::optional<Error> Communicator::failure() {
  const std::lock_guard lock(mutex_);
  if (communicator_ == nullptr) return std::nullopt;
  ncclResult_t state = ncclSuccess;
  const ncclResult_t result = api_->comm_get_async_error(communicator_, &state);
  if (result != ncclSuccess) state = result;
  if (state == ncclSuccess || state == ncclInProgress) return std::nullopt;
  return nccl_error(*api_, state, communicator_, fmt::format("group \"{}\"", label_));
}

void* Communicator::register_memory(void* data, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  void* registration = nullptr;
  if (communicator_ == nullptr || api_->comm_register(communicator_, data, bytes, &registration) != ncclSuccess) return nullptr;
  return registration;
}

void Communicator::deregister_memory(void* registration) noexcept {
  const std::lock_guard lock(mutex_);
  if (communicator_ != nullptr && registration != nullptr) api_->comm_deregister(communicator_, registration);
}

}  // namespace trireme::comm
