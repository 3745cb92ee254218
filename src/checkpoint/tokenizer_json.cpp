#include "tokenizer_json.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "calque/base/text.h"
#include "calque/data/sentence_piece_file.h"
#include "gguf_names.h"

namespace calque {
namespace {

using nlohmann::json;
using Kind = SentencePiece::Kind;

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i)
      group = group << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0);
    for (size_t i = 0; i < 4; ++i) text += at + i > bytes.size() ? '=' : digits[group >> (18 - 6 * i) & 63];
  }
  return text;
}

// SentencePiece's own rule "nfkc" is Unicode's NFKC but for rare sequences of combining marks. Its table
// (Precompiled) would decompose more than SentencePiece does: Hangul and Arabic forms come out differently.
json normalizer(const SentencePieceSettings& settings) {
  json steps = json::array();
  if (!settings.charsmap.empty()) {
    const bool nfkc = settings.normalizer == "nfkc";
    if (nfkc || settings.normalizer == "nmt_nfkc") steps.push_back({{"type", "NFKC"}});
    if (!nfkc)
      steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", base64(settings.charsmap)}});
  }
  const auto replace = [&](json pattern, const char* content) {
    steps.push_back({{"type", "Replace"}, {"pattern", std::move(pattern)}, {"content", content}});
  };
  if (settings.remove_extra_whitespaces) replace({{"Regex", "\\A +| +(?= )|[ ▁]+\\z"}}, "");
  if (settings.add_dummy_prefix) steps.push_back({{"type", "Prepend"}, {"prepend", space_mark}});
  replace({{"String", " "}}, "▁");
  return {{"type", "Sequence"}, {"normalizers", steps}};
}

// SentencePiece merges the two neighbours whose union has the best score: the rules are all pairs of pieces
// that form a piece, the best first.
json merges(const std::vector<SentencePiece>& pieces) {
  std::map<std::string_view, size_t> ids;
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].kind == Kind::normal) ids[pieces[id].text] = id;
  }
  std::vector<std::tuple<float, size_t, size_t>> rules;  // -score, id, where it is cut
  for (const auto& [text, id] : ids) {
    for (size_t cut = 0; next_code_point(text, cut), cut < text.size();) {
      if (ids.contains(text.substr(0, cut)) && ids.contains(text.substr(cut)))
        rules.emplace_back(-pieces[id].score, id, cut);
    }
  }
  std::sort(rules.begin(), rules.end());
  json all = json::array();
  for (const auto& [score, id, cut] : rules)
    all.push_back({pieces[id].text.substr(0, cut), pieces[id].text.substr(cut)});
  return all;
}

json model(const std::vector<SentencePiece>& pieces, const SentencePieceSettings& settings,
           int32_t unknown_id) {
  if (settings.is_unigram) {
    json vocabulary = json::array();
    for (const SentencePiece& piece : pieces) vocabulary.push_back({piece.text, piece.score});
    return {{"type", "Unigram"},
            {"unk_id", unknown_id},
            {"byte_fallback", settings.byte_fallback},
            {"vocab", vocabulary}};
  }
  json vocabulary = json::object();
  for (size_t id = 0; id < pieces.size(); ++id) vocabulary[pieces[id].text] = id;
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", pieces[static_cast<size_t>(unknown_id)].text},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", true},
          {"byte_fallback", settings.byte_fallback},
          {"ignore_merges", false},
          {"vocab", vocabulary},
          {"merges", merges(pieces)}};
}

json added_tokens(const std::vector<SentencePiece>& pieces) {
  json all = json::array();
  for (size_t id = 0; id < pieces.size(); ++id) {
    const bool special = pieces[id].kind == Kind::control || pieces[id].kind == Kind::unknown;
    const bool user_defined = pieces[id].kind == Kind::user_defined;
    if (!special && !user_defined) continue;
    all.push_back({{"id", id},
                   {"content", pieces[id].text},
                   {"single_word", false},
                   {"lstrip", false},
                   {"rstrip", false},
                   {"normalized", user_defined},  // matched where spaces are "▁" already
                   {"special", special}});
  }
  return all;
}

// Unigram would find control and byte pieces in a text: it is cut behind the "<" of what looks like one.
json pre_tokenizer(const std::vector<SentencePiece>& pieces, const SentencePieceSettings& settings) {
  if (!settings.is_unigram) return nullptr;
  std::string names;
  for (const SentencePiece& piece : pieces) {
    if ((piece.kind == Kind::control || piece.kind == Kind::unknown) && piece.text.starts_with('<') &&
        piece.text.ends_with('>'))
      names += piece.text.substr(1, piece.text.size() - 2) + "|";
  }
  return {{"type", "Split"},
          {"pattern", {{"Regex", "<(?=(?:" + names + "0x[0-9A-F]{2})>)"}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

json post_processor(const std::vector<SentencePiece>& pieces, const SequenceFormat& format) {
  const auto special = [](const char* name) {
    return json{{"SpecialToken", {{"id", name}, {"type_id", 0}}}};
  };
  const auto sequence = [](const char* name) { return json{{"Sequence", {{"id", name}, {"type_id", 0}}}}; };
  const auto tokens = [&](const char* name, const std::vector<int32_t>& ids) {
    json texts = json::array();
    for (const int32_t id : ids) texts.push_back(pieces[static_cast<size_t>(id)].text);
    return json{{"id", name}, {"ids", ids}, {"tokens", texts}};
  };
  return {{"type", "TemplateProcessing"},
          {"single", {special("begin"), sequence("A"), special("separator")}},
          {"pair", {special("begin"), sequence("A"), special("separator"), sequence("B"), special("end")}},
          {"special_tokens",
           {{"begin", tokens("begin", format.begin)},
            {"separator", tokens("separator", format.separator)},
            {"end", tokens("end", {format.end})}}}};
}

}  // namespace

std::optional<json> sentence_piece_json(const Tokenizer& tokenizer, const SequenceFormat& format) {
  const std::vector<SentencePiece> pieces = read_sentence_pieces(tokenizer.serialized());
  const SentencePieceSettings settings = read_sentence_piece_settings(tokenizer.serialized());
  const bool user_defined = std::any_of(pieces.begin(), pieces.end(), [](const SentencePiece& piece) {
    return piece.kind == Kind::user_defined;
  });
  // Their text would get the dummy prefix too.
  if (user_defined && settings.add_dummy_prefix) return std::nullopt;
  json strip = json::array({{{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}},
                            {{"type", "ByteFallback"}},
                            {{"type", "Fuse"}}});
  if (settings.add_dummy_prefix)
    strip.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return json{{"version", "1.0"},
              {"truncation", nullptr},
              {"padding", nullptr},
              {"added_tokens", added_tokens(pieces)},
              {"normalizer", normalizer(settings)},
              {"pre_tokenizer", pre_tokenizer(pieces, settings)},
              {"post_processor", post_processor(pieces, format)},
              {"decoder", {{"type", "Sequence"}, {"decoders", strip}}},
              {"model", model(pieces, settings, tokenizer.unknown_id())}};
}

}  // namespace calque
