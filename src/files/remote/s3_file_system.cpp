#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "files/remote/s3_client.hpp"
#include "files/remote/s3_output.hpp"
#include "trireme/core/error.hpp"

namespace trireme {
namespace remote {
namespace {

// What names of objects in a folder begin with.
S3Place folder_at(const Location& location) {
  S3Place place = place_of(location);
  while (place.key.ends_with('/')) place.key.pop_back();
  if (!place.key.empty()) place.key += '/';
  return place;
}

class S3FileSystem final : public FileSystem {
 public:
  explicit S3FileSystem(const S3Options& options) : client_(std::make_shared<S3Client>(options)) {}

  std::unique_ptr<OutputFile> create(const Location& location) override {
    require_key(location);
    if (is_remote_file(*client_->http(), location, client_->file_at(location))) {
      throw Error({.code = ErrorCode::io,
                   .message = "the object cannot be created: there is one",
                   .path = location.string(),
                   .error_number = EEXIST});
    }
    return std::make_unique<S3Output>(client_, location, true);
  }
  std::unique_ptr<InputFile> open(const Location& location) const override {
    require_key(location);
    return std::make_unique<Input>(client_, open_remote(client_->http(), location, client_->file_at(location)));
  }
  std::unique_ptr<OutputFile> replace(const Location& location) override {
    require_key(location);
    return std::make_unique<S3Output>(client_, location, false);
  }
  bool is_object_store() const override { return true; }

  void create_folder(const Location& location) override { place_of(location); }
  void sync_folder(const Location& location) override { place_of(location); }

  void rename(const Location& from, const Location& to) override {
    require_key(from);
    require_key(to);
    switch (kind_of(from)) {
      case FileKind::file:
        copy_object(*client_, from, to);
        remove(from, place_of(from));
        return;
      case FileKind::folder: return rename_folder(from, to);
      default:
        throw Error({.code = ErrorCode::io,
                     .message = "it cannot be renamed to " + to.string(),
                     .path = from.string(),
                     .error_number = ENOENT});
    }
  }

  void remove_all(const Location& location) override {
    require_key(location);
    const S3Place folder = folder_at(location);
    for (const std::string& key : keys_below(location)) remove(location, {.bucket = folder.bucket, .key = key});
    // A server that keeps objects in folders would remove a folder, too, and may fail to.
    if (is_remote_file(*client_->http(), location, client_->file_at(location))) remove(location, place_of(location));
    abort_uploads(location, folder);
  }

  FileKind kind_of(const Location& location) const override {
    const S3Place place = place_of(location);
    if (!place.key.empty() && !place.key.ends_with('/') &&
        is_remote_file(*client_->http(), location, client_->file_at(location))) {
      return FileKind::file;
    }
    const S3Place folder = folder_at(location);
    const std::string doing = "it cannot be looked for";
    const HttpAnswer answer = client_->send(location, doing, {.bucket = folder.bucket, .key = {}},
                                            {.query = {{"list-type", "2"}, {"max-keys", "1"}, {"prefix", folder.key}}});
    if (answer.head.status == 404) return FileKind::none;
    if (answer.head.status != 200) refuse_call(location, doing, answer);
    return folder.key.empty() || !parse_listing(answer.text, location).keys.empty() ? FileKind::folder : FileKind::none;
  }

  std::vector<FolderEntry> entries_of(const Location& location) const override {
    const S3Place folder = folder_at(location);
    std::vector<FolderEntry> entries;
    bool is_there = folder.key.empty();
    client_->list(location, folder, "/", [&](const S3Listing& page) {
      const auto add = [&](const std::string& key, FileKind kind) {
        is_there = true;  // a key that is the prefix itself stands for the folder
        if (key.size() <= folder.key.size() || !key.starts_with(folder.key)) return;
        entries.push_back({.name = checked_name(key.substr(folder.key.size()), location), .kind = kind});
      };
      for (const std::string& key : page.keys) add(key, FileKind::file);
      for (const std::string& prefix : page.prefixes) add(prefix.substr(0, prefix.size() - 1), FileKind::folder);
    });
    if (!is_there) {
      throw Error({.code = ErrorCode::io,
                   .message = "the folder cannot be read: no name begins with it",
                   .path = location.string(),
                   .error_number = ENOENT});
    }
    std::ranges::sort(entries, {}, &FolderEntry::name);
    return entries;
  }

 private:
  // Keeps what signs its requests.
  class Input final : public InputFile {
   public:
    Input(std::shared_ptr<const S3Client> client, std::unique_ptr<InputFile> file)
        : client_(std::move(client)), file_(std::move(file)) {}
    std::uint64_t size() const override { return file_->size(); }
    std::string version() const override { return file_->version(); }
    Location location() const override { return file_->location(); }
    void read_at(std::span<std::byte> into, std::uint64_t offset) const override { file_->read_at(into, offset); }

   private:
    std::shared_ptr<const S3Client> client_;
    std::unique_ptr<InputFile> file_;
  };

  static void require_key(const Location& location) {
    if (!place_of(location).key.empty()) return;
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "a bucket is no file, and is neither renamed nor removed",
                 .path = location.string(),
                 .hint = "name what lies in it: s3://bucket/name"});
  }

  std::vector<std::string> keys_below(const Location& location) const {
    std::vector<std::string> keys;
    client_->list(location, folder_at(location), {},
                  [&](const S3Listing& page) { keys.insert(keys.end(), page.keys.begin(), page.keys.end()); });
    return keys;
  }

  void remove(const Location& location, const S3Place& place) const {
    const std::string doing = "it cannot be removed";
    const HttpAnswer answer = client_->send(location, doing, place, {.method = "DELETE"});
    const int status = answer.head.status;
    if (status != 404 && (status < 200 || status > 299)) refuse_call(location, doing, answer);
  }

  // Nobody sees them, and they take room. A server that does not list them has none to see.
  void abort_uploads(const Location& location, const S3Place& folder) const {
    const std::string file = folder.key.substr(0, folder.key.size() - 1), doing = "uploads cannot be listed";
    S3Call call{.query = {{"uploads", ""}, {"prefix", file}}};
    for (S3Uploads page{.is_truncated = true}; page.is_truncated;) {
      const HttpAnswer answer = client_->send(location, doing, {.bucket = folder.bucket, .key = {}}, call);
      if (answer.head.status == 404 || answer.head.status == 405 || answer.head.status == 501 || answer.head.status == 403)
        return;
      if (answer.head.status != 200) refuse_call(location, doing, answer);
      page = parse_uploads(answer.text, location);
      for (const auto& [key, id] : page.keys_and_ids) {
        if (key != file && !key.starts_with(folder.key)) continue;
        client_->send(location, doing, {.bucket = folder.bucket, .key = key},
                      {.method = "DELETE", .query = {{"uploadId", id}}});
      }
      if (page.is_truncated && page.next_key == call.query["key-marker"] && page.next_id == call.query["upload-id-marker"])
        return;
      call.query["key-marker"] = page.next_key;
      call.query["upload-id-marker"] = page.next_id;
    }
  }

  void rename_folder(const Location& from, const Location& to) {
    const std::string before = folder_at(from).key;
    const std::vector<std::string> keys = keys_below(from);
    const Location bucket("s3://" + place_of(from).bucket);
    for (const std::string& key : keys)
      copy_object(*client_, bucket.beside("/" + key), to.beside("/" + key.substr(before.size())));
    for (const std::string& key : keys) remove(from, {.bucket = place_of(from).bucket, .key = key});
  }

  std::shared_ptr<const S3Client> client_;
};

}  // namespace
}  // namespace remote

std::shared_ptr<FileSystem> s3_file_system(const S3Options& options) { return std::make_shared<remote::S3FileSystem>(options); }

}  // namespace trireme
