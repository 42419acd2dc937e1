#include "comm/shared_segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme::comm {
namespace {

constexpr std::string_view failed_prefix = "!";  // no segment is called so

[[noreturn]] void refuse(std::string_view call, const std::string& name, std::size_t bytes, int error_number) {
  throw Error({.code = error_number == ENOSPC || error_number == ENOMEM ? ErrorCode::out_of_memory : ErrorCode::io,
               .message = fmt::format("{} refused {} bytes of shared memory", call, bytes),
               .path = "/dev/shm" + name,
               .error_number = error_number,
               .hint = "enlarge /dev/shm (containers: --shm-size)"});
}

std::string unpredictable_name() {
  std::random_device random;
  return fmt::format("/trireme-{:08x}{:08x}{:08x}", random(), random(), random());
}

}  // namespace

std::shared_ptr<SharedSegment> SharedSegment::create(std::size_t bytes) {
  const std::string name = unpredictable_name();
  const int descriptor = shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
  if (descriptor < 0) refuse("shm_open", name, bytes, errno);
  std::shared_ptr<SharedSegment> segment(new SharedSegment(name, bytes, descriptor, true));
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) refuse("ftruncate", name, bytes, errno);
  return segment;
}

std::shared_ptr<SharedSegment> SharedSegment::open(const std::string& name, std::size_t bytes) {
  const int descriptor = shm_open(name.c_str(), O_RDWR, 0600);
  if (descriptor < 0) refuse("shm_open", name, bytes, errno);
  return std::shared_ptr<SharedSegment>(new SharedSegment(name, bytes, descriptor, false));
}

SharedSegment::SharedSegment(std::string name, std::size_t bytes, int descriptor, bool owner)
    : name_(std::move(name)), bytes_(bytes), descriptor_(descriptor), owner_(owner) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) {
    const int reason = errno;
    seal();
    refuse("mmap", name_, bytes, reason);
  }
  data_ = static_cast<std::byte*>(memory);
}

SharedSegment::~SharedSegment() {
  seal();
  munmap(data_, bytes_);
}

void SharedSegment::reserve(std::size_t offset, std::size_t bytes) {
  const int reason = posix_fallocate(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  if (reason != 0) refuse("posix_fallocate", name_, bytes, reason);
}

void SharedSegment::seal() {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
  if (std::exchange(owner_, false)) shm_unlink(name_.c_str());
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
      failure.empty() ? (creator ? result.segment->name() : "") : fmt::format("{}{}", failed_prefix, failure);
  const std::vector<std::string> offers = exchange(offer);
  if (!plan.sharers.empty()) {
    result.name = offers[static_cast<std::size_t>(plan.sharers.front())];
    if (result.name.starts_with(failed_prefix)) {
      failure = result.name.substr(failed_prefix.size());
    } else {
      failure = attempt([&] {
        if (!creator) result.segment = SharedSegment::open(result.name, plan.bytes);
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
