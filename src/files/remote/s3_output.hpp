#pragma once

#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "files/remote/s3_client.hpp"

namespace trireme::remote {

// An object that is written. It is there once it is closed: a small one by one PUT, a larger one as an upload of parts, some of
// them at the same time.
class S3Output final : public OutputFile {
 public:
  // `is_first`: an object of this name is an Error, with EEXIST.
  S3Output(std::shared_ptr<const S3Client> client, const Location& location, bool is_first);
  ~S3Output() override;

  void reserve(std::uint64_t bytes) override;
  void write(std::span<const std::byte> bytes) override;
  void sync() override;  // what can be sent before close() has arrived
  void close() override;

 private:
  S3Call marked(S3Call call) const;
  S3Call finishing(S3Call call) const;
  void begin();
  void send_part();
  void await_parts(std::size_t left);
  void put_whole();
  void complete();
  bool has_arrived() const;
  void finish(const S3Call& call);

  std::shared_ptr<const S3Client> client_;
  Location location_;
  S3Place place_;
  bool is_first_;
  bool is_closed_ = false;
  bool is_whole_ = true;  // no part of what was written has failed
  bool is_reserved_ = false;
  std::string mark_;  // by which an object is known as this one
  std::size_t part_bytes_;
  std::vector<std::byte> part_;  // the next one
  std::string upload_;           // its id; empty: no part was sent
  std::vector<std::string> tags_;
  std::deque<std::future<std::string>> under_way_;
};

// Copies an object to a name where there may be one.
void copy_object(const S3Client& client, const Location& from, const Location& to);

}  // namespace trireme::remote
