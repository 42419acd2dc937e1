#include "files/remote/s3_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme::remote {
namespace {

constexpr const char* mark_header = "x-amz-meta-trireme-write";
constexpr std::size_t most_parts = 10'000;
constexpr const char* no_write = "the object cannot be written";

std::string random_mark() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}", device(), device(), device());
}

std::span<const std::byte> bytes_in(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string begin_upload(const S3Client& client, const Location& location, const S3Place& place, S3Call call) {
  call.method = "POST";
  call.query = {{"uploads", ""}};
  return parse_upload_id(client.send_well(location, no_write, place, call).text, location);
}

// One attempt: those who call it have nobody to tell, and should not wait.
void abort_upload(const S3Client& client, const Location& location, const S3Place& place, const std::string& upload) noexcept {
  try {
    client.http()->perform(client.request(location, place, {.method = "DELETE", .query = {{"uploadId", upload}}}));
  } catch (const std::exception&) {  // its parts stay until the bucket's rules or remove_all() take them
  }
}

std::string part_query_number(std::size_t index) { return std::to_string(index + 1); }

}  // namespace

S3Output::S3Output(std::shared_ptr<const S3Client> client, const Location& location, bool is_first)
    : client_(std::move(client)),
      location_(location),
      place_(place_of(location)),
      is_first_(is_first),
      mark_(random_mark()),
      part_bytes_(static_cast<std::size_t>(client_->options().part_bytes)) {}

S3Output::~S3Output() {
  if (is_closed_ || upload_.empty()) return;
  for (const auto& part : under_way_) part.wait();
  abort_upload(*client_, location_, place_, upload_);
}

void S3Output::reserve(std::uint64_t bytes) {
  constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
  const std::uint64_t least = bytes / (most_parts - 1) / mebibyte + 1;
  is_reserved_ = true;
  if (upload_.empty()) part_bytes_ = std::max<std::size_t>(part_bytes_, least * mebibyte);
}

void S3Output::write(std::span<const std::byte> bytes) {
  is_whole_ = false;
  while (!bytes.empty()) {
    if (part_.size() == part_bytes_) send_part();
    const std::size_t count = std::min(bytes.size(), part_bytes_ - part_.size());
    part_.insert(part_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
    bytes = bytes.subspan(count);
  }
  is_whole_ = true;
}

void S3Output::sync() {
  is_whole_ = false;
  await_parts(0);
  is_whole_ = true;
}

void S3Output::close() {
  if (is_closed_) return;
  if (!is_whole_) {
    throw Error(
        {.code = ErrorCode::io, .message = "the object is not written: a part of it failed", .path = location_.string()});
  }
  if (upload_.empty()) {
    put_whole();
  } else {
    if (!part_.empty()) send_part();
    await_parts(0);
    complete();
  }
  is_closed_ = true;
}

S3Call S3Output::marked(S3Call call) const {
  call.headers[mark_header] = mark_;
  return call;
}

S3Call S3Output::finishing(S3Call call) const {
  if (is_first_) call.headers["if-none-match"] = "*";
  return call;
}

void S3Output::begin() { upload_ = begin_upload(*client_, location_, place_, marked({})); }

void S3Output::send_part() {
  constexpr std::size_t parts_of_a_size = 1000;  // then they grow, unless reserve() has said how much is to come
  if (upload_.empty()) begin();
  await_parts(static_cast<std::size_t>(client_->options().remote.connections) - 1);
  const std::size_t index = tags_.size() + under_way_.size();
  auto send = [client = client_, location = location_, place = place_, upload = upload_, index, bytes = std::move(part_)] {
    const S3Call call{
        .method = "PUT", .query = {{"partNumber", part_query_number(index)}, {"uploadId", upload}}, .body = bytes};
    std::string tag(client->send_well(location, no_write, place, call).head.field("etag"));
    if (tag.empty()) {
      throw Error({.code = ErrorCode::io, .message = "the server gives no ETag for a part", .path = location.string()});
    }
    return tag;
  };
  under_way_.push_back(std::async(std::launch::async, std::move(send)));
  part_ = {};
  if (!is_reserved_ && (index + 1) % parts_of_a_size == 0) part_bytes_ *= 2;
}

void S3Output::await_parts(std::size_t left) {
  while (under_way_.size() > left) {
    auto part = std::move(under_way_.front());
    under_way_.pop_front();
    tags_.push_back(part.get());
  }
}

void S3Output::put_whole() { finish(finishing(marked({.method = "PUT", .body = part_}))); }

void S3Output::complete() {
  const std::string body = completion_of(tags_);
  finish(finishing({.method = "POST", .query = {{"uploadId", upload_}}, .body = bytes_in(body), .takes_long = true}));
}

// An attempt whose answer was lost may have done it: the next one then finds an object, or no upload.
void S3Output::finish(const S3Call& call) {
  HttpAnswer answer = client_->send(location_, no_write, place_, call);
  if (answer.head.status == 501 && is_first_) {  // it knows no such condition, and create() has looked
    S3Call without = call;
    without.headers.erase("if-none-match");
    answer = client_->send(location_, no_write, place_, without);
  }
  const int status = answer.head.status;
  const bool is_done = status >= 200 && status < 300 && parse_refusal(answer.text).code.empty();
  if (is_done || ((status == 412 || status == 409 || status == 404) && has_arrived())) return;
  if (status != 412 && status != 409) refuse_call(location_, no_write, answer);
  throw Error({.code = ErrorCode::io,
               .message = "the object cannot be created: there is one by now",
               .path = location_.string(),
               .error_number = EEXIST});
}

bool S3Output::has_arrived() const {
  const HttpAnswer answer = client_->send(location_, no_write, place_, {.method = "HEAD"});
  return answer.head.status == 200 && answer.head.field(mark_header) == mark_;
}

void copy_object(const S3Client& client, const Location& from, const Location& to) {
  const std::string doing = "it cannot be copied to " + to.string();
  const S3Place source = place_of(from), target = place_of(to);
  const HttpAnswer head = client.send(from, doing, source, {.method = "HEAD"});
  if (head.head.status != 200) refuse_call(from, doing, head);
  const std::string name = "/" + source.bucket + "/" + s3_encoded(source.key, true);
  const std::uint64_t size = head.head.content_length().value_or(0);
  const auto piece = static_cast<std::uint64_t>(client.options().copy_bytes);
  if (size <= piece) {
    client.send_well(from, doing, target, {.method = "PUT", .headers = {{"x-amz-copy-source", name}}, .takes_long = true});
    return;
  }
  const std::string upload = begin_upload(client, to, target, {});
  try {
    std::vector<std::string> tags;
    for (std::uint64_t begin = 0; begin < size; begin += piece) {
      S3Call call{
          .method = "PUT",
          .query = {{"partNumber", part_query_number(tags.size())}, {"uploadId", upload}},
          .headers = {{"x-amz-copy-source", name},
                      {"x-amz-copy-source-if-match", std::string(head.head.field("etag"))},
                      {"x-amz-copy-source-range", fmt::format("bytes={}-{}", begin, std::min(size, begin + piece) - 1)}},
          .takes_long = true};
      tags.push_back(parse_copied_tag(client.send_well(from, doing, target, call).text, from));
    }
    const std::string body = completion_of(tags);
    client.send_well(to, doing, target,
                     {.method = "POST", .query = {{"uploadId", upload}}, .body = bytes_in(body), .takes_long = true});
  } catch (...) {
    abort_upload(client, to, target, upload);
    throw;
  }
}

}  // namespace trireme::remote
