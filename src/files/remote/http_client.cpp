#include "files/remote/http_client.hpp"

#include <curl/curl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>

#include "files/remote/patience.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/version.hpp"

namespace trireme::remote {
namespace {

constexpr std::size_t longest_text = std::size_t{64} << 20;

// A transfer under way, as the callbacks of libcurl see it.
struct Transfer {
  HttpAnswer answer;
  const BodySink& sink;
  bool is_ended = false;  // by the sink
  std::exception_ptr thrown = nullptr;

  std::size_t take(std::span<const std::byte> bytes) {
    try {
      const int status = answer.head.status;
      if (sink && status >= 200 && status < 300) {
        is_ended = !sink(answer, bytes);
        return is_ended ? CURL_WRITEFUNC_ERROR : bytes.size();
      }
      if (answer.text.size() + bytes.size() > longest_text) throw FailedAttempt("an answer of more than 64 MiB came", EIO);
      answer.text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return bytes.size();
    } catch (...) {
      thrown = std::current_exception();
      return CURL_WRITEFUNC_ERROR;
    }
  }
};

std::size_t take_header(char* text, std::size_t, std::size_t count, void* transfer) {
  static_cast<Transfer*>(transfer)->answer.head.add_line({text, count});
  return count;
}

std::size_t take_body(char* bytes, std::size_t, std::size_t count, void* transfer) {
  return static_cast<Transfer*>(transfer)->take(std::as_bytes(std::span(bytes, count)));
}

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

template <typename Value>
void set(CURL* handle, CURLoption option, Value value) {
  if (curl_easy_setopt(handle, option, value) != CURLE_OK) throw std::bad_alloc();
}

std::unique_ptr<curl_slist, FreeList> list_of(const std::vector<std::string>& headers) {
  std::unique_ptr<curl_slist, FreeList> list;
  // What libcurl would add to a body: it waits for the server, and calls it a form.
  const auto add = [&list](const char* line) {
    curl_slist* longer = curl_slist_append(list.get(), line);
    if (longer == nullptr) throw std::bad_alloc();
    if (list == nullptr) list.reset(longer);  // otherwise it is the same list, and longer
  };
  add("Expect:");
  add("Content-Type:");
  for (const std::string& header : headers) add(header.c_str());
  return list;
}

// OpenSSL writes to connections that may have ended, and then SIGPIPE would end the process.
class WithoutPipeSignal {
 public:
  WithoutPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutPipeSignal() {
    constexpr timespec at_once{};
    while (!was_pending_ && sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) continue;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

// What the same request would meet again.
bool is_lasting(CURLcode code) {
  switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_TOO_MANY_REDIRECTS:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM: return true;
    default: return false;
  }
}

int error_number_of(CURLcode code) {
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT: return ETIMEDOUT;
    case CURLE_COULDNT_CONNECT: return ECONNREFUSED;
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING: return ECONNRESET;
    default: return EIO;
  }
}

}  // namespace

// Handles of libcurl, each with the connections that it has kept. A process that was forked makes its own.
class HttpClient::Connections {
 public:
  ~Connections() {
    if (process_ != getpid()) return;
    const WithoutPipeSignal blocked;
    for (CURL* handle : idle_) curl_easy_cleanup(handle);
  }

  CURL* take() {
    static const CURLcode global = curl_global_init(CURL_GLOBAL_DEFAULT);
    const std::scoped_lock lock(mutex_);
    if (process_ != getpid()) {
      idle_.clear();
      process_ = getpid();
    }
    if (idle_.empty()) {
      CURL* handle = global == CURLE_OK ? curl_easy_init() : nullptr;
      if (handle == nullptr) throw std::bad_alloc();
      return handle;
    }
    CURL* handle = idle_.back();
    idle_.pop_back();
    return handle;
  }

  void give_back(CURL* handle) {
    constexpr std::size_t most = 64;
    const std::scoped_lock lock(mutex_);
    if (idle_.size() == most) {
      curl_easy_cleanup(handle);
    } else {
      idle_.push_back(handle);
    }
  }

 private:
  std::mutex mutex_;
  std::vector<CURL*> idle_;
  pid_t process_ = getpid();
};

HttpClient::HttpClient(const RemoteOptions& options) : options_(options), connections_(std::make_unique<Connections>()) {
  require(options.attempts >= 1 && options.connections >= 1, "{} attempts over {} connections: 1 or more of each",
          options.attempts, options.connections);
  require(options.stall.count() >= 1 && options.slowest >= 1 && options.first_pause.count() >= 0 &&
              options.longest_pause >= options.first_pause,
          "a stall takes 1 s or more, at a rate of 1 byte a second or more, and no pause is below 0 or above the longest");
}

HttpClient::~HttpClient() = default;

HttpAnswer HttpClient::perform(const HttpRequest& request, const BodySink& sink) const {
  const WithoutPipeSignal blocked;
  CURL* const handle = connections_->take();
  const auto give_back = [this](CURL* used) {
    curl_easy_reset(used);  // it points to what ends here
    connections_->give_back(used);
  };
  const std::unique_ptr<CURL, decltype(give_back)> owner(handle, give_back);
  Transfer transfer{.answer = {}, .sink = sink};
  const auto headers = list_of(request.headers);
  std::array<char, CURL_ERROR_SIZE> text{};

  set(handle, CURLOPT_URL, request.url.c_str());
  set(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  set(handle, CURLOPT_PATH_AS_IS, 1L);
  set(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(handle, CURLOPT_USERAGENT, fmt::format("trireme/{}", version()).c_str());
  set(handle, CURLOPT_NOSIGNAL, 1L);
  set(handle, CURLOPT_ERRORBUFFER, text.data());
  set(handle, CURLOPT_HTTPHEADER, headers.get());
  set(handle, CURLOPT_HEADERFUNCTION, take_header);
  set(handle, CURLOPT_HEADERDATA, &transfer);
  set(handle, CURLOPT_WRITEFUNCTION, take_body);
  set(handle, CURLOPT_WRITEDATA, &transfer);
  set(handle, CURLOPT_CONNECTTIMEOUT, static_cast<long>(options_.stall.count()));
  const std::chrono::seconds stall = options_.stall * (request.takes_long ? 15 : 1);
  set(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(stall.count()));
  set(handle, CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(options_.slowest));
  curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, 256L << 10);  // refused where the handle has one of an attempt that failed
  for (const char* name : {"AWS_CA_BUNDLE", "SSL_CERT_FILE"}) {
    if (const char* bundle = std::getenv(name); bundle != nullptr && *bundle != '\0') set(handle, CURLOPT_CAINFO, bundle);
  }
  if (request.follows_redirects) {
    set(handle, CURLOPT_FOLLOWLOCATION, 1L);
    set(handle, CURLOPT_MAXREDIRS, 5L);
    set(handle, CURLOPT_REDIR_PROTOCOLS_STR, request.url.starts_with("https:") ? "https" : "http,https");
  }
  if (request.method == "HEAD") {
    set(handle, CURLOPT_NOBODY, 1L);
  } else if (request.method == "PUT" || request.method == "POST") {
    set(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(handle, CURLOPT_POSTFIELDS, request.body.empty() ? "" : reinterpret_cast<const char*>(request.body.data()));
    set(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  } else if (request.method != "GET") {
    set(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }

  const CURLcode code = curl_easy_perform(handle);
  if (transfer.thrown) std::rethrow_exception(transfer.thrown);
  if (code == CURLE_OK && !transfer.answer.head.is_whole) {
    throw FailedAttempt("the connection ended within the head of the answer", ECONNRESET);
  }
  if (code == CURLE_OK || transfer.is_ended) return std::move(transfer.answer);
  if (code == CURLE_OPERATION_TIMEDOUT) {
    throw FailedAttempt(
        fmt::format("the server stalled: less than {} bytes a second for {} s", options_.slowest, stall.count()), ETIMEDOUT);
  }
  throw FailedAttempt(text[0] != '\0' ? text.data() : curl_easy_strerror(code), error_number_of(code), !is_lasting(code));
}

std::string url_of(std::string_view text) {
  std::string url;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte >= 0x7f || std::string_view("#\"<>\\^`{|}").find(c) != std::string_view::npos) {
      url += fmt::format("%{:02X}", byte);
    } else {
      url += c;
    }
  }
  return url;
}

}  // namespace trireme::remote
