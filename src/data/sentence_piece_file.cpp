#include "calque/data/sentence_piece_file.h"

#include <cstring>

#include "calque/base/error.h"

namespace calque {
namespace {

// The parts of the Protocol Buffers wire format that a SentencePiece model needs.
void add_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<char>((value & 0x7F) | 0x80));
  to.push_back(static_cast<char>(value));
}
void add_number(std::string& to, uint32_t field, int64_t value) {
  add_varint(to, field << 3);
  add_varint(to, static_cast<uint64_t>(value));
}
void add_bytes(std::string& to, uint32_t field, const std::string& bytes) {
  add_varint(to, (field << 3) | 2);
  add_varint(to, bytes.size());
  to += bytes;
}
void add_float(std::string& to, uint32_t field, float value) {
  add_varint(to, (field << 3) | 5);
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Fields of ModelProto, TrainerSpec and NormalizerSpec (sentencepiece_model.proto).
enum : uint32_t { model_piece = 1, model_trainer = 2, model_normalizer = 3 };

std::string piece_bytes(const SentencePiece& piece) {
  std::string bytes;
  add_bytes(bytes, 1, piece.text);
  add_float(bytes, 2, piece.score);
  add_number(bytes, 3, static_cast<int64_t>(piece.kind));
  return bytes;
}

void add_ids(std::string& trainer, size_t pieces, int32_t unknown_id, int32_t begin_id, int32_t end_id) {
  add_number(trainer, 4, static_cast<int64_t>(pieces));  // vocab_size
  add_number(trainer, 40, unknown_id);
  add_number(trainer, 41, begin_id);
  add_number(trainer, 42, end_id);
  add_number(trainer, 43, -1);  // no padding
}

uint64_t read_varint(const std::string& bytes, size_t& at) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at >= bytes.size())
      throw UserError("the SentencePiece model ends too early; it is probably truncated");
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  throw UserError("the SentencePiece model is damaged: invalid varint");
}

struct WireField {
  uint32_t number = 0;
  uint32_t kind = 0;       // wire type; 0: varint, 1: eight bytes, 2: bytes, 5: four bytes
  uint64_t value = 0;      // if it is a varint
  std::string_view bytes;  // otherwise
};

WireField read_field(const std::string& model, size_t& at) {
  WireField field;
  const uint64_t key = read_varint(model, at);
  field.number = static_cast<uint32_t>(key >> 3);
  field.kind = static_cast<uint32_t>(key & 7);
  uint64_t size = 0;
  if (field.kind == 0) {
    field.value = read_varint(model, at);
    return field;
  }
  if (field.kind == 1) {
    size = 8;
  } else if (field.kind == 2) {
    size = read_varint(model, at);
  } else if (field.kind == 5) {
    size = 4;
  } else {
    throw UserError("the SentencePiece model is damaged: unknown wire type");
  }
  if (size > model.size() - at)
    throw UserError("the SentencePiece model ends too early; it is probably truncated");
  field.bytes = std::string_view(model).substr(at, size);
  at += size;
  return field;
}

SentencePiece parse_piece(const std::string& message) {
  SentencePiece piece;
  for (size_t at = 0; at < message.size();) {
    const WireField field = read_field(message, at);
    if (field.number == 1 && field.kind == 2) piece.text = field.bytes;
    if (field.number == 2 && field.kind == 5)
      std::memcpy(&piece.score, field.bytes.data(), sizeof piece.score);
    if (field.number == 3 && field.kind == 0 && field.value >= 1 && field.value <= 6)
      piece.kind = static_cast<SentencePiece::Kind>(field.value);
  }
  return piece;
}

}  // namespace

std::vector<SentencePiece> read_sentence_pieces(const std::string& model) {
  std::vector<SentencePiece> pieces;
  for (size_t at = 0; at < model.size();) {
    const WireField field = read_field(model, at);
    if (field.number == model_piece && field.kind == 2)
      pieces.push_back(parse_piece(std::string(field.bytes)));
  }
  return pieces;
}

SentencePieceSettings read_sentence_piece_settings(const std::string& model) {
  SentencePieceSettings settings;
  for (size_t at = 0; at < model.size();) {
    const WireField field = read_field(model, at);
    if (field.kind != 2 || (field.number != model_trainer && field.number != model_normalizer)) continue;
    const std::string message(field.bytes);
    for (size_t inner = 0; inner < message.size();) {
      const WireField one = read_field(message, inner);
      if (field.number == model_trainer) {
        if (one.number == 3) settings.is_unigram = one.value == 1;
        if (one.number == 24) settings.whitespace_as_suffix = one.value != 0;
        if (one.number == 35) settings.byte_fallback = one.value != 0;
      } else if (one.number == 1) {
        settings.normalizer = one.bytes;
      } else if (one.number == 2) {
        settings.charsmap = one.bytes;
      } else if (one.number == 3) {
        settings.add_dummy_prefix = one.value != 0;
      } else if (one.number == 4) {
        settings.remove_extra_whitespaces = one.value != 0;
      } else if (one.number == 5) {
        settings.escape_whitespaces = one.value != 0;
      }
    }
  }
  return settings;
}

std::string SentencePieceFile::serialize() const {
  std::string model, trainer, normalizer;
  int64_t bytes = 0;
  for (const SentencePiece& piece : pieces) {
    add_bytes(model, model_piece, piece_bytes(piece));
    bytes += piece.kind == SentencePiece::Kind::byte;
  }
  add_number(trainer, 3, 2);                     // model_type: BPE
  if (bytes == 256) add_number(trainer, 35, 1);  // byte_fallback
  add_ids(trainer, pieces.size(), unknown_id, begin_id, end_id);
  const std::pair<uint32_t, int32_t> names[] = {{45, unknown_id}, {46, begin_id}, {47, end_id}};
  for (const auto& [field, id] : names) add_bytes(trainer, field, pieces.at(static_cast<size_t>(id)).text);
  add_bytes(model, model_trainer, trainer);
  add_bytes(normalizer, 1, "identity");
  add_number(normalizer, 3, add_dummy_prefix ? 1 : 0);
  add_number(normalizer, 4, remove_extra_whitespaces ? 1 : 0);
  add_number(normalizer, 5, 1);  // escape_whitespaces
  add_bytes(model, model_normalizer, normalizer);
  return model;
}

std::string prune_sentence_piece(const std::string& model, const std::vector<SentencePiece>& kept,
                                 int32_t unknown_id, int32_t begin_id, int32_t end_id) {
  std::string pruned;
  for (const SentencePiece& piece : kept) add_bytes(pruned, model_piece, piece_bytes(piece));
  for (size_t at = 0; at < model.size();) {
    const WireField field = read_field(model, at);
    if (field.kind != 2)
      throw UserError("the SentencePiece model is damaged: expected a message in every field");
    if (field.number == model_piece) continue;
    std::string bytes(field.bytes);
    // If a field occurs twice, its last value counts, so the appended values replace the existing ones.
    if (field.number == model_trainer) add_ids(bytes, kept.size(), unknown_id, begin_id, end_id);
    add_bytes(pruned, field.number, bytes);
  }
  return pruned;
}

}  // namespace calque
