#include "comm/fake_nccl.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "comm/reduce/reduce.hpp"
#include "device/fake_gpu.hpp"

namespace trireme::test {
namespace {

using Bytes = std::vector<std::byte>;

class FakeStream {
 public:
  void put(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    ++given_;
    changed_.notify_all();
  }
  std::uint64_t given() {
    const std::lock_guard lock(mutex_);
    return given_;
  }
  bool done(std::uint64_t count) {
    const std::lock_guard lock(mutex_);
    return done_ >= count;
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_ == given_; });
  }

 private:
  void serve(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return !work_.empty(); })) {
      const std::function<void()> work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      work();
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::function<void()>> work_;
  std::uint64_t given_ = 0;
  std::uint64_t done_ = 0;
  std::jthread thread_{[this](const std::stop_token& stop) { serve(stop); }};
};

// The ranks with one id. For the n-th operation each gives its data and gets the data of all.
struct Clique {
  std::mutex mutex;
  std::condition_variable changed;
  int joined = 0;
  std::map<std::uint64_t, std::vector<std::optional<Bytes>>> rounds;
};

std::mutex cliques_mutex;
std::map<std::uint64_t, std::shared_ptr<Clique>> cliques;
std::atomic<std::uint64_t> next_id = 1;

struct FakeCommunicator {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  int size = 1;
  std::uint64_t operations = 0;
  std::atomic<int> under_way = 0;
  std::atomic<bool> aborted = false;
  std::atomic<ncclResult_t> error = ncclSuccess;
};

thread_local FakeCommunicator* last_communicator = nullptr;
thread_local FakeStream* last_stream = nullptr;
thread_local bool captures = false;
thread_local ncclResult_t next_error = ncclSuccess;

FakeCommunicator& native(ncclComm_t communicator) { return *reinterpret_cast<FakeCommunicator*>(communicator); }

// Nothing when the communicator was aborted meanwhile.
std::optional<std::vector<Bytes>> exchange(FakeCommunicator& mine, std::uint64_t number, const Bytes& given) {
  std::unique_lock lock(mine.clique->mutex);
  auto& round = mine.clique->rounds[number];
  round.resize(static_cast<std::size_t>(mine.size));
  round[static_cast<std::size_t>(mine.rank)] = given;
  mine.clique->changed.notify_all();
  const auto complete = [&round] {
    return std::all_of(round.begin(), round.end(), [](const auto& one) { return one.has_value(); });
  };
  mine.clique->changed.wait(lock, [&] { return mine.aborted || complete(); });
  if (mine.aborted) return std::nullopt;
  std::vector<Bytes> all;
  for (const auto& one : round) all.push_back(*one);
  return all;
}

using Finish = std::function<void(const std::vector<Bytes>&)>;

ncclResult_t put(ncclComm_t communicator, cudaStream_t stream, const void* data, std::size_t bytes, Finish finish) {
  if (captures) return ncclSuccess;
  FakeCommunicator& mine = native(communicator);
  const std::uint64_t number = mine.operations++;
  ++mine.under_way;
  reinterpret_cast<FakeStream*>(stream)->put([&mine, number, data, bytes, finish = std::move(finish)] {
    const std::byte* begin = reach_fake_gpu(data);
    if (const auto all = exchange(mine, number, Bytes(begin, begin + bytes))) finish(*all);
    --mine.under_way;
  });
  return ncclSuccess;
}

DType dtype_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat32: return DType::float32;
    case ncclFloat64: return DType::float64;
    case ncclBfloat16: return DType::bfloat16;
    case ncclFloat16: return DType::float16;
    case ncclInt32: return DType::int32;
    case ncclInt64: return DType::int64;
    case ncclUint64: return DType::uint64;
    default: return DType::uint8;
  }
}

ReduceOp op_of(ncclRedOp_t op) {
  switch (op) {
    case ncclMin: return ReduceOp::min;
    case ncclMax: return ReduceOp::max;
    case ncclAvg: return ReduceOp::mean;
    default: return ReduceOp::sum;
  }
}

// `count` elements from `begin` on of the data of all ranks, reduced.
void reduce_to(void* to, const std::vector<Bytes>& all, std::size_t begin, std::size_t count, ncclDataType_t type,
               ncclRedOp_t op) {
  std::vector<const std::byte*> from;
  for (const Bytes& one : all) {
    if (one.size() != all.front().size()) return;  // NCCL would do anything
    from.push_back(one.data() + begin * size_of(dtype_of(type)));
  }
  std::byte* target = reach_fake_gpu(to);
  comm::reduce(op_of(op), dtype_of(type), from, {&target, 1}, count);
}

ncclResult_t get_version(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t get_unique_id(ncclUniqueId* id) {
  const std::uint64_t number = next_id++;
  std::memcpy(id->internal, &number, sizeof(number));
  return ncclSuccess;
}

ncclResult_t comm_init_rank_config(ncclComm_t* communicator, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config->blocking != 0) return ncclInvalidArgument;
  std::uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof(number));
  const std::lock_guard lock(cliques_mutex);
  auto& clique = cliques[number];
  if (clique == nullptr) clique = std::make_shared<Clique>();
  auto* mine = new FakeCommunicator{.clique = clique, .rank = rank, .size = size};  // never freed: streams may still look at it
  mine->error = std::exchange(next_error, ncclSuccess);
  last_communicator = mine;
  *communicator = reinterpret_cast<ncclComm_t>(mine);
  const std::lock_guard clique_lock(clique->mutex);
  ++clique->joined;
  return ncclInProgress;
}

ncclResult_t comm_get_async_error(ncclComm_t communicator, ncclResult_t* error) {
  FakeCommunicator& mine = native(communicator);
  const std::lock_guard lock(mine.clique->mutex);
  *error = mine.error != ncclSuccess || mine.clique->joined == mine.size ? mine.error.load() : ncclInProgress;
  return ncclSuccess;
}

ncclResult_t comm_finalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t comm_destroy(ncclComm_t) { return ncclSuccess; }
ncclResult_t comm_abort(ncclComm_t communicator) {
  FakeCommunicator& mine = native(communicator);
  if (mine.under_way > 0) ++fake_aborts;
  const std::lock_guard lock(mine.clique->mutex);
  mine.aborted = true;
  mine.clique->changed.notify_all();
  return ncclSuccess;
}

const char* get_error_string(ncclResult_t result) { return result == ncclRemoteError ? "remote error" : "some error"; }
const char* get_last_error(ncclComm_t) { return "the cable is out"; }

ncclResult_t comm_register(ncclComm_t, void* data, std::size_t, void** handle) {
  *handle = data;
  return ncclSuccess;
}
ncclResult_t comm_deregister(ncclComm_t, void*) { return ncclSuccess; }

ncclResult_t mem_alloc(void** block, std::size_t bytes) {
  *block = fake_gpu_memory()->allocate(bytes);
  return ncclSuccess;
}
ncclResult_t mem_free(void* block) {
  fake_gpu_memory()->deallocate(block, 0);
  return ncclSuccess;
}

ncclResult_t all_reduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                        ncclComm_t communicator, cudaStream_t stream) {
  return put(communicator, stream, from, count * size_of(dtype_of(type)),
             [=](const std::vector<Bytes>& all) { reduce_to(to, all, 0, count, type, op); });
}

ncclResult_t reduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                    ncclComm_t communicator, cudaStream_t stream) {
  const bool mine = native(communicator).rank == root;
  return put(communicator, stream, from, count * size_of(dtype_of(type)), [=](const std::vector<Bytes>& all) {
    if (mine) reduce_to(to, all, 0, count, type, op);
  });
}

ncclResult_t reduce_scatter(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                            ncclComm_t communicator, cudaStream_t stream) {
  const auto [rank, size] = std::pair(native(communicator).rank, native(communicator).size);
  return put(
      communicator, stream, from, count * static_cast<std::size_t>(size) * size_of(dtype_of(type)),
      [=](const std::vector<Bytes>& all) { reduce_to(to, all, count * static_cast<std::size_t>(rank), count, type, op); });
}

ncclResult_t all_gather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t communicator,
                        cudaStream_t stream) {
  return put(communicator, stream, from, count * size_of(dtype_of(type)), [=](const std::vector<Bytes>& all) {
    std::byte* target = reach_fake_gpu(to);
    for (const Bytes& one : all) target = std::copy(one.begin(), one.end(), target);
  });
}

ncclResult_t broadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root, ncclComm_t communicator,
                       cudaStream_t stream) {
  return put(communicator, stream, from, count * size_of(dtype_of(type)), [=](const std::vector<Bytes>& all) {
    const Bytes& source = all[static_cast<std::size_t>(root)];
    std::copy(source.begin(), source.end(), reach_fake_gpu(to));
  });
}

ncclResult_t group_start() { return ncclSuccess; }
ncclResult_t group_end() { return ncclSuccess; }

class FakeCompletion final : public comm::Completion {
 public:
  explicit FakeCompletion(std::shared_ptr<FakeStream> stream) : stream_(std::move(stream)), count_(stream_->given()) {}
  bool reached() override { return captured_ || (!captures && stream_->done(count_)); }
  bool captured() const override { return captured_; }
  // The fake GPU computes nothing: the host is its only stream.
  void order_before_current() override {
    while (!captured_ && !stream_->done(count_)) std::this_thread::yield();
  }

 private:
  std::shared_ptr<FakeStream> stream_;
  std::uint64_t count_;
  bool captured_ = captures;
};

class FakeCommunicationStream final : public comm::CommunicationStream {
 public:
  FakeCommunicationStream() { last_stream = stream_.get(); }

  cudaStream_t native() override { return reinterpret_cast<cudaStream_t>(stream_.get()); }
  void order_after_current() override {}
  std::unique_ptr<comm::Completion> completion() override { return std::make_unique<FakeCompletion>(stream_); }
  bool reaches(const void* data) override { return is_on_fake_gpu(data); }
  void use_on_this_thread() override {}
  void wait_for_gpu() noexcept override { stream_->wait(); }
  void to_host(void* host, const void* gpu, std::size_t bytes) override { std::memcpy(host, reach_fake_gpu(gpu), bytes); }
  void to_gpu(void* gpu, const void* host, std::size_t bytes) override { std::memcpy(reach_fake_gpu(gpu), host, bytes); }
  std::shared_ptr<device::MemoryResource> gpu_memory() override { return fake_gpu_memory(); }
  std::shared_ptr<device::MemoryResource> staging_memory() override { return device::host_memory(); }

 private:
  std::shared_ptr<FakeStream> stream_ = std::make_shared<FakeStream>();
};

}  // namespace

std::shared_ptr<const comm::NcclApi> fake_nccl() {
  return std::make_shared<const comm::NcclApi>(comm::NcclApi{.get_version = get_version,
                                                             .get_unique_id = get_unique_id,
                                                             .comm_init_rank_config = comm_init_rank_config,
                                                             .comm_finalize = comm_finalize,
                                                             .comm_destroy = comm_destroy,
                                                             .comm_abort = comm_abort,
                                                             .comm_get_async_error = comm_get_async_error,
                                                             .get_error_string = get_error_string,
                                                             .get_last_error = get_last_error,
                                                             .comm_register = comm_register,
                                                             .comm_deregister = comm_deregister,
                                                             .mem_alloc = mem_alloc,
                                                             .mem_free = mem_free,
                                                             .all_reduce = all_reduce,
                                                             .reduce = reduce,
                                                             .reduce_scatter = reduce_scatter,
                                                             .all_gather = all_gather,
                                                             .broadcast = broadcast,
                                                             .group_start = group_start,
                                                             .group_end = group_end});
}

std::shared_ptr<comm::CommunicationStream> make_fake_stream() { return std::make_shared<FakeCommunicationStream>(); }

Group fake_staged_group(const Group& host) {
  return Group(std::make_shared<comm::StagedBackend>(comm::backend_of(host), make_fake_stream));
}

Group fake_nccl_group(const Group& host) {
  return Group(std::make_shared<comm::NcclBackend>(
      comm::backend_of(host), comm::NcclParts{.api = fake_nccl(),
                                              .make_stream = make_fake_stream,
                                              .watchdog = std::make_shared<comm::Watchdog>(std::chrono::milliseconds(10))}));
}

FakeCapture::FakeCapture() { captures = true; }
FakeCapture::~FakeCapture() { captures = false; }

void break_last_communicator(ncclResult_t error) { last_communicator->error = error; }
void break_next_communicator(ncclResult_t error) { next_error = error; }
void wait_for_last_stream() { last_stream->wait(); }

}  // namespace trireme::test
