#include "comm/base/shared_segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/files/file.hpp"

namespace trireme::comm {
namespace {

constexpr const char* shared_memory = "/dev/shm";
constexpr std::string_view failed_prefix = "!";  // no place begins with it

[[noreturn]] void refuse(std::string_view call, const std::string& path, std::size_t bytes, int error_number) {
  const bool full = error_number == ENOSPC || error_number == ENOMEM;
  throw Error({.code = full ? ErrorCode::out_of_memory : ErrorCode::io,
               .message = fmt::format("{} refused {} bytes of shared memory", call, bytes),
               .path = path,
               .error_number = error_number,
               .hint = full ? "enlarge /dev/shm (containers: --shm-size)"
                            : "ranks of one machine need /dev/shm, and must see each other's processes in /proc"});
}

// A text that identifies an open file on this machine.
std::string identity_of(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) refuse("fstat", shared_memory, 0, errno);
  return fmt::format("{}.{}", status.st_dev, status.st_ino);
}

}  // namespace

std::shared_ptr<SharedSegment> SharedSegment::create(std::size_t bytes) {
  const int descriptor = ::open(shared_memory, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor < 0) refuse("open", shared_memory, bytes, errno);
  const std::string path = fmt::format("/proc/{}/fd/{}", getpid(), descriptor);
  const int reason = ftruncate(descriptor, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  if (reason != 0) {
    close(descriptor);
    refuse("ftruncate", path, bytes, reason);
  }
  return std::shared_ptr<SharedSegment>(
      new SharedSegment(fmt::format("{} {}", identity_of(descriptor), path), bytes, descriptor));
}

std::shared_ptr<SharedSegment> SharedSegment::open(const std::string& place, std::size_t bytes) {
  const std::size_t space = place.find(' ');
  const std::string path = place.substr(space + 1);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) refuse("open", path, bytes, errno);
  if (identity_of(descriptor) != place.substr(0, space)) {  // another process with the same number, in another container
    close(descriptor);
    refuse("open", path, bytes, ESTALE);
  }
  return std::shared_ptr<SharedSegment>(new SharedSegment(place, bytes, descriptor));
}

SharedSegment::SharedSegment(std::string place, std::size_t bytes, int descriptor)
    : place_(std::move(place)), bytes_(bytes), descriptor_(descriptor) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) {
    const int reason = errno;
    seal();
    refuse("mmap", shared_memory, bytes, reason);
  }
  data_ = static_cast<std::byte*>(memory);
}

SharedSegment::~SharedSegment() {
  seal();
  munmap(data_, bytes_);
}

void SharedSegment::reserve(std::size_t offset, std::size_t bytes) {
  const int reason = reserve_blocks(descriptor_, offset, bytes);
  if (reason != 0) refuse("posix_fallocate", shared_memory, bytes, reason);
}

void SharedSegment::seal() {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
}

Sharing share_segment(const Exchange& exchange, const SharingPlan& plan) {
  const auto attempt = [](const auto& action) -> std::string {
    try {
      action();
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  };
  Sharing result;
  const bool creator = !plan.sharers.empty() && plan.sharers.front() == plan.me;
  std::string failure;
  if (creator) {
    failure = attempt([&] {
      result.segment = SharedSegment::create(plan.bytes);
      plan.on_create(*result.segment);
    });
  }
  const std::string offer =
      failure.empty() ? (creator ? result.segment->place() : "") : fmt::format("{}{}", failed_prefix, failure);
  const std::vector<std::string> offers = exchange(offer);
  if (!plan.sharers.empty()) {
    result.place = offers[static_cast<std::size_t>(plan.sharers.front())];
    if (result.place.starts_with(failed_prefix)) {
      failure = result.place.substr(failed_prefix.size());
    } else {
      failure = attempt([&] {
        if (!creator) result.segment = SharedSegment::open(result.place, plan.bytes);
        plan.on_map(*result.segment);
      });
    }
  }
  const std::vector<std::string> failures = exchange(failure);
  if (result.segment != nullptr) result.segment->seal();
  for (const int sharer : plan.sharers) {
    if (result.failure.empty()) result.failure = failures[static_cast<std::size_t>(sharer)];
  }
  if (!result.failure.empty()) result.segment.reset();
  return result;
}

}  // namespace trireme::comm
