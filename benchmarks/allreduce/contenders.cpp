#include "contenders.hpp"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include <sched.h>

#include <atomic>
#include <thread>

#include "comm/reduce/reduce.hpp"
#include "trireme/device/memory.hpp"

namespace {

using trireme::Group;

class OurGroup final : public Contender {
 public:
  OurGroup(std::string_view name, const Group& world, const std::shared_ptr<trireme::device::MemoryResource>& memory,
           std::size_t count, trireme::ReduceOp op = trireme::ReduceOp::sum)
      : name_(name),
        world_(world),
        storage_(memory, count * sizeof(float)),
        buffer_(static_cast<float*>(storage_.data()), count),
        op_(op) {}
  std::string_view name() const override { return name_; }
  std::span<float> buffer() override { return buffer_; }
  void sum(std::size_t count) override { world_.all_reduce(buffer_.first(count), op_).wait_on_host(); }

 private:
  std::string_view name_;
  Group world_;
  trireme::device::Storage storage_;
  std::span<float> buffer_;
  trireme::ReduceOp op_;
};

class Mpi final : public Contender {
 public:
  explicit Mpi(std::size_t count) : buffer_(count) {}
  std::string_view name() const override { return "mpi"; }
  std::span<float> buffer() override { return buffer_; }
  void sum(std::size_t count) override {
    MPI_Allreduce(MPI_IN_PLACE, buffer_.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }

 private:
  std::vector<float> buffer_;
};

class Limit final : public Contender {
 public:
  Limit(const Group& world, std::size_t count)
      : world_(world), from_(static_cast<std::size_t>(world.size())), to_(from_.size()) {
    // Blocks a power of two apart would evict each other from the first-level cache of some processors.
    const auto bytes = static_cast<MPI_Aint>(count * sizeof(float) + 5 * 4096);
    void* mine = nullptr;
    MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window_);
    buffer_ = {static_cast<float*>(mine), count};
    for (int rank = 0; rank < world.size(); ++rank) {
      MPI_Aint size = 0;
      int unit = 0;
      void* block = nullptr;
      MPI_Win_shared_query(window_, rank, &size, &unit, &block);
      blocks_.push_back(static_cast<float*>(block));
    }
  }
  ~Limit() override { MPI_Win_free(&window_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

  std::string_view name() const override { return "limit"; }
  std::span<float> buffer() override { return buffer_; }
  void sum(std::size_t count) override {
    const trireme::Range part = world_.part(static_cast<std::int64_t>(count), world_.rank());
    for (std::size_t rank = 0; rank < blocks_.size(); ++rank) {
      from_[rank] = to_[rank] = reinterpret_cast<std::byte*>(blocks_[rank] + part.begin);
    }
    trireme::comm::reduce(trireme::ReduceOp::sum, trireme::DType::float32, from_, to_, static_cast<std::size_t>(part.count()));
  }

 private:
  Group world_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::span<float> buffer_;
  std::vector<float*> blocks_;
  std::vector<const std::byte*> from_;
  std::vector<std::byte*> to_;
};

// The same with the least synchronisation: each rank sets a flag when its data are ready, and another when they are reduced.
class LimitWithFlags final : public Contender {
 public:
  LimitWithFlags(const Group& world, std::size_t count) : world_(world), limit_(world, count) {
    void* mine = nullptr;
    MPI_Win_allocate_shared(2 * sizeof(Flag), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window_);
    for (int rank = 0; rank < world.size(); ++rank) {
      MPI_Aint size = 0;
      int unit = 0;
      void* block = nullptr;
      MPI_Win_shared_query(window_, rank, &size, &unit, &block);
      flags_.push_back(static_cast<Flag*>(block));
    }
  }
  ~LimitWithFlags() override { MPI_Win_free(&window_); }
  LimitWithFlags(const LimitWithFlags&) = delete;
  LimitWithFlags& operator=(const LimitWithFlags&) = delete;

  std::string_view name() const override { return "flags"; }
  std::span<float> buffer() override { return limit_.buffer(); }
  void sum(std::size_t count) override {
    ++calls_;
    meet(0);
    limit_.sum(count);
    meet(1);
  }

 private:
  struct alignas(64) Flag {
    std::atomic<std::uint64_t> calls;
  };

  void meet(int which) {
    flags_[static_cast<std::size_t>(world_.rank())][which].calls.store(calls_, std::memory_order_release);
    for (Flag* flags : flags_) {
      while (flags[which].calls.load(std::memory_order_acquire) < calls_) {
        if (share_cores_) sched_yield();
      }
    }
  }

  Group world_;
  Limit limit_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<Flag*> flags_;
  std::uint64_t calls_ = 0;
  bool share_cores_ = static_cast<unsigned>(world_.size()) > std::thread::hardware_concurrency();
};

// All ranks are on one machine, and MPI lets them reach each other's memory.
bool share_memory() {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int ranks = 0;
  int all = 0;
  MPI_Comm_size(node, &ranks);
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  MPI_Comm_free(&node);
  return ranks == all;
}

}  // namespace

std::vector<std::unique_ptr<Contender>> make_contenders(const Group& world, std::size_t count) {
  std::vector<std::unique_ptr<Contender>> contenders;
  contenders.push_back(std::make_unique<OurGroup>("group", world, world.memory(), count));
  contenders.push_back(std::make_unique<OurGroup>("heap", world, trireme::device::host_memory(), count));
  contenders.push_back(std::make_unique<OurGroup>("fixed", world, world.memory(), count, trireme::ReduceOp::fixed_sum));
  contenders.push_back(std::make_unique<Mpi>(count));
  if (!share_memory()) return contenders;
  contenders.push_back(std::make_unique<Limit>(world, count));
  contenders.push_back(std::make_unique<LimitWithFlags>(world, count));
  return contenders;
}
