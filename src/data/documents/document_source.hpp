#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "trireme/data/documents/document_piece.hpp"
#include "trireme/data/documents/documents.hpp"
#include "trireme/data/shards/token_shards.hpp"

namespace trireme::data {

// Documents in memory or in files. The functions may be called from several threads.
class DocumentSource {
 public:
  virtual ~DocumentSource() = default;

  virtual std::int64_t size() const = 0;
  // The lengths of the documents [first, first + into.size()).
  virtual void read_lengths(std::int64_t first, std::span<std::int64_t> into) const = 0;
  // tokens and targets [piece.count]; a target is the next token of the document, or what Documents say.
  virtual void read(const DocumentPiece& piece, std::int32_t* tokens, std::int32_t* targets) const = 0;
  virtual std::string content() const = 0;
  virtual bool reads_by_requests() const { return false; }  // whether read() may have to ask a server
};

// A piece of a document, and the memory for its tokens and targets.
struct PlacedPiece {
  DocumentPiece piece;
  std::int32_t* tokens;
  std::int32_t* targets;
};

// Reads all pieces. If documents are read by requests, several requests are under way at the same time.
void read_pieces(const DocumentSource& documents, std::span<const PlacedPiece> pieces);

std::shared_ptr<const DocumentSource> source_of(Documents documents);
std::shared_ptr<const DocumentSource> source_of(TokenShards documents);

}  // namespace trireme::data
