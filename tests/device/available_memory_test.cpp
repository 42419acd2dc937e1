#include "device/available_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <memory>
#include <string>

#include "catch.hpp"
#include "device/taken_blocks.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/device/core_quota.hpp"
#include "trireme/tensor/tensor.hpp"

using namespace trireme;
using namespace trireme::device;
using trireme::tests::TemporaryFolder;

namespace {

// What /proc and /sys of a machine say.
class Machine {
 public:
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root() / file).parent_path());
    std::ofstream(root() / file) << text;
  }
  std::size_t available() const { return available_host_memory(root()); }
  int cores() const { return core_quota(root()); }

 private:
  std::filesystem::path root() const { return folder_.path(); }
  TemporaryFolder folder_;
};

constexpr std::size_t mib = std::size_t{1} << 20;

}  // namespace

TEST_CASE("available memory is that of the machine and its swap") {
  Machine machine;
  CHECK(machine.available() == std::numeric_limits<std::size_t>::max());  // it does not say
  machine.write("proc/meminfo", "MemTotal:  9000 kB\nMemAvailable:    2048 kB\nSwapFree:   1024 kB\n");
  CHECK(machine.available() == 3 * mib);
}

TEST_CASE("a control group leaves less, in both versions, and so does one around it") {
  Machine machine;
  machine.write("proc/meminfo", "MemAvailable: 1048576 kB\n");
  SECTION("version 2") {
    machine.write("proc/self/cgroup", "0::/slurm/job_7\n");
    machine.write("sys/fs/cgroup/slurm/job_7/memory.max", "max\n");
    machine.write("sys/fs/cgroup/slurm/job_7/memory.current", "123456\n");
    CHECK(machine.available() == 1024 * mib);
    machine.write("sys/fs/cgroup/slurm/memory.max", std::to_string(100 * mib) + "\n");
    machine.write("sys/fs/cgroup/slurm/memory.current", std::to_string(90 * mib) + "\n");
    CHECK(machine.available() == 10 * mib);
    machine.write("sys/fs/cgroup/slurm/memory.stat", "anon 5\nfile 9\ninactive_file " + std::to_string(20 * mib) + "\n");
    CHECK(machine.available() == 30 * mib);
  }
  SECTION("version 1, in a container that sees its own group at the top") {
    machine.write("proc/self/cgroup", "5:devices:/docker/1\n4:cpu,memory:/docker/1\n0::/\n");
    machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(64 * mib) + "\n");
    machine.write("sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(70 * mib) + "\n");
    CHECK(machine.available() == 0);
  }
}

TEST_CASE("what was taken and not written to yet is none that is left") {
  constexpr std::size_t bytes = 8 * mib;
  void* const mapped = mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapped != MAP_FAILED);
  const auto memory =
      std::shared_ptr<std::byte>(static_cast<std::byte*>(mapped), [](std::byte* block) { munmap(block, 2 * bytes); });
  TakenBlocks blocks;
  CHECK(blocks.untouched() == 0);
  blocks.add(memory.get(), bytes);
  blocks.add(memory.get() + bytes, bytes);
  CHECK(blocks.untouched() == 2 * bytes);
  std::fill_n(memory.get(), bytes / 2, std::byte{1});
  CHECK(blocks.untouched() <= 2 * bytes - bytes / 2);
  CHECK(blocks.untouched() >= bytes);
  std::fill_n(memory.get(), bytes - mib / 2, std::byte{1});  // the rest is what rounding up has added
  CHECK(blocks.untouched() == bytes);
  blocks.remove(memory.get() + bytes);
  CHECK(blocks.untouched() == 0);
}

TEST_CASE("the quota of cores is that of the group and of those around it, rounded up") {
  Machine machine;
  CHECK(machine.cores() == std::numeric_limits<int>::max());
  SECTION("version 2") {
    machine.write("proc/self/cgroup", "0::/pod/container\n");
    machine.write("sys/fs/cgroup/pod/container/cpu.max", "max 100000\n");
    CHECK(machine.cores() == std::numeric_limits<int>::max());
    machine.write("sys/fs/cgroup/pod/cpu.max", "250000 100000\n");
    CHECK(machine.cores() == 3);
    machine.write("sys/fs/cgroup/pod/container/cpu.max", "1000 100000\n");
    CHECK(machine.cores() == 1);
  }
  SECTION("version 1, in a container that sees its own group at the top") {
    machine.write("proc/self/cgroup", "5:devices:/docker/1\n4:cpu,cpuacct:/docker/1\n");
    machine.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "50000\n");
    machine.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    CHECK(machine.cores() == std::numeric_limits<int>::max());
    machine.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
    CHECK(machine.cores() == 4);
  }
}

TEST_CASE("a tensor that the machine's memory can't hold is an error, not the end of the process") {
  const std::size_t available = available_host_memory();
  if (available > std::size_t{1} << 50) return;  // this system does not say
  try {
    const Tensor<float> tensor({static_cast<std::int64_t>(available / sizeof(float)), 2});
    FAIL("there is a tensor of twice the available memory");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::out_of_memory);
    CHECK(error.fields().hint.find("smaller batch") != std::string::npos);
  }
}
