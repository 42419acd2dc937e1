#include "data/sources/gzip.hpp"
#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

[[noreturn]] void refuse_gzip(const Location& path) {
  throw Error({.code = ErrorCode::not_available,
               .message = "this build has no zlib: a gzip file cannot be read",
               .path = path.string(),
               .hint = "unpack it with gunzip, or install zlib1g-dev and build again"});
}

}  // namespace

struct Gunzip::Impl {};

Gunzip::Gunzip(Location path) { refuse_gzip(path); }
Gunzip::~Gunzip() = default;
void Gunzip::unpack(std::span<const std::uint8_t>, const std::function<void(std::span<const std::uint8_t>)>&) {}
void Gunzip::finish() const {}

std::vector<std::uint8_t> gunzip(std::span<const std::uint8_t>, const Location& path) { refuse_gzip(path); }

}  // namespace trireme::data
