#include "fuzz/remote_parsers.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "files/remote/answer_head.hpp"
#include "files/remote/hdfs_status.hpp"
#include "files/remote/s3_xml.hpp"
#include "fuzz/inputs.hpp"

namespace trireme::fuzz {
namespace {

// Lines of heads.
void read_heads(Bytes bytes) {
  remote::AnswerHead head;
  std::string_view text = text_of(bytes);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    head.add_line(line);
    check(head.status >= 0 && head.status <= 999, "a status has more than three digits");
    if (const auto range = remote::parse_content_range(line)) {
      check(range->begin <= range->end && (!range->size || range->end <= *range->size),
            "a range ends before it begins, or behind its file");
    }
    remote::parse_http_date(line);
    remote::parse_iso_date(line);
  }
  head.content_length();
  if (const auto range = remote::parse_content_range(head.field("content-range"))) {
    check(range->end == 0 || range->begin < range->end, "a range has no bytes");
  }
}

std::vector<std::string> head_seeds() {
  return {"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/100\r\nETag: \"a\"\r\nContent-Length: 10\r\n\r\n",
          "bytes 5-18446744073709551614/*\nbytes */7\n", "Sun, 06 Nov 1994 08:49:37 GMT\n1994-11-06T08:49:37Z\n"};
}

void read_answers(Bytes bytes) {
  const std::string_view text = text_of(bytes);
  const Location location("s3://bucket/name");
  remote::parse_refusal(text);
  answer([&] {
    const auto listing = remote::parse_listing(text, location);
    check(listing.keys.size() + listing.prefixes.size() <= text.size(), "more names than bytes");
    for (const std::string& prefix : listing.prefixes) check(!prefix.empty(), "an empty prefix");
  });
  answer([&] { remote::parse_uploads(text, location); });
  answer([&] { check(!remote::parse_upload_id(text, location).empty(), "an upload has no id"); });
  answer([&] { remote::parse_copied_tag(text, location); });
}

std::vector<std::string> answer_seeds() {
  return {
      "<?xml version=\"1.0\"?><ListBucketResult><EncodingType>url</EncodingType><Contents><Key>a+b%2Bc</Key></Contents>"
      "<CommonPrefixes><Prefix>d/</Prefix></CommonPrefixes><IsTruncated>true</IsTruncated>"
      "<NextContinuationToken>t</NextContinuationToken></ListBucketResult>",
      "<Error><Code>NoSuchKey</Code><Message>&lt;&#233;&gt;</Message><Region>r</Region></Error>",
      "<ListMultipartUploadsResult><Upload><Key>k</Key><UploadId>1</UploadId></Upload><IsTruncated>false</IsTruncated>"
      "</ListMultipartUploadsResult>",
      "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>",
      "<CopyPartResult><ETag>&quot;a&quot;</ETag></CopyPartResult>"};
}

void read_hdfs_answers(Bytes bytes) {
  const std::string_view text = text_of(bytes);
  const Location location("webhdfs://host:1/name");
  remote::parse_hdfs_refusal(text);
  answer([&] { check(remote::parse_hdfs_status(text, location).length <= std::uint64_t{1} << 60, "a file is too large"); });
  answer([&] { check(remote::parse_hdfs_listing(text, location).size() <= text.size(), "more entries than bytes"); });
}

std::vector<std::string> hdfs_answer_seeds() {
  const std::string entry = R"({"type":"FILE","pathSuffix":"a","length":3000,"modificationTime":-5,"fileId":7,"owner":null})";
  return {R"({"FileStatus":)" + entry + "}", R"({"FileStatuses":{"FileStatus":[)" + entry + "," + entry + "]}}",
          R"({"RemoteException":{"exception":"AccessControlException","message":"not you"}})"};
}

constexpr std::array parsers_of_answers{Parser{"answer_heads", read_heads, head_seeds},
                                        Parser{"s3_answers", read_answers, answer_seeds},
                                        Parser{"hdfs_answers", read_hdfs_answers, hdfs_answer_seeds}};

}  // namespace

std::span<const Parser> remote_parsers() { return parsers_of_answers; }

}  // namespace trireme::fuzz
