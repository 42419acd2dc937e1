#include "device/available_memory.hpp"

#include <fstream>
#include <limits>
#include <string>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
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
