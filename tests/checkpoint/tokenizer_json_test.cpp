// The tokenizer.json that is written beside a SentencePiece model, for transformers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/data/sequence.h"
#include "checkpoint/small_checkpoint.h"

namespace calque {
namespace {

using nlohmann::json;

json tokenizer_json(const std::string& tokenizer, bool tied_to_prompt = false) {
  const TemporaryFolder folder;
  ModelConfig config = tiny_config(Tokenizer::from_bytes(tokenizer, "t").size());
  if (tied_to_prompt) config.prompt = "ab {source}ba{target}";
  return parse_file(write_own(folder, *make_decoder(config), tokenizer) / "tokenizer.json");
}

// Pieces "▁", "a", "b", "ab", "▁ab", with scores that order the merges.
SentencePieceFile letters() {
  using Kind = SentencePiece::Kind;
  SentencePieceFile file;
  file.pieces = {{"<unk>", 0, Kind::unknown}, {"<s>", 0, Kind::control}, {"</s>", 0, Kind::control},
                 {"<sep>", 0, Kind::control}, {"▁", -3, Kind::normal},   {"a", -4, Kind::normal},
                 {"b", -5, Kind::normal},     {"ab", -2, Kind::normal},  {"▁ab", -1, Kind::normal},
                 {"▁a", -1, Kind::normal},    {"off", -1, Kind::unused}};
  return file;
}

std::string from_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    group = group << 6 | static_cast<uint32_t>(digits.find(c));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(group >> bits & 0xFF);
  }
  return bytes;
}

json replace(const json& pattern, const char* content) {
  return {{"type", "Replace"}, {"pattern", pattern}, {"content", content}};
}

}  // namespace

TEST(TokenizerJson, ASmallBpeModelInFull) {
  const json file = tokenizer_json(letters().serialize());
  const auto added = [](int id, const char* text) {
    return json{{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", true}};
  };
  EXPECT_EQ(file["added_tokens"],
            json({added(0, "<unk>"), added(1, "<s>"), added(2, "</s>"), added(3, "<sep>")}));
  EXPECT_EQ(
      file["normalizer"],
      (json{{"type", "Sequence"},
            {"normalizers", {{{"type", "Prepend"}, {"prepend", "▁"}}, replace({{"String", " "}}, "▁")}}}));
  EXPECT_TRUE(file["pre_tokenizer"].is_null());
  EXPECT_EQ(file["decoder"], (json{{"type", "Sequence"},
                                   {"decoders",
                                    {replace({{"String", "▁"}}, " "),
                                     {{"type", "ByteFallback"}},
                                     {{"type", "Fuse"}},
                                     {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}));
  // The best first; those of one piece by where it is cut.
  EXPECT_EQ(file["model"],
            (json{{"type", "BPE"},
                  {"dropout", nullptr},
                  {"unk_token", "<unk>"},
                  {"continuing_subword_prefix", nullptr},
                  {"end_of_word_suffix", nullptr},
                  {"fuse_unk", true},
                  {"byte_fallback", false},
                  {"ignore_merges", false},
                  {"vocab",
                   {{"<unk>", 0},
                    {"<s>", 1},
                    {"</s>", 2},
                    {"<sep>", 3},
                    {"▁", 4},
                    {"a", 5},
                    {"b", 6},
                    {"ab", 7},
                    {"▁ab", 8},
                    {"▁a", 9},
                    {"off", 10}}},
                  {"merges", json::parse(R"([["▁", "ab"], ["▁a", "b"], ["▁", "a"], ["a", "b"]])")}}));
  const auto special = [](const char* name) {
    return json{{"SpecialToken", {{"id", name}, {"type_id", 0}}}};
  };
  const auto sequence = [](const char* name) { return json{{"Sequence", {{"id", name}, {"type_id", 0}}}}; };
  EXPECT_EQ(file["post_processor"]["single"], json({special("begin"), sequence("A"), special("separator")}));
  EXPECT_EQ(file["post_processor"]["pair"],
            json({special("begin"), sequence("A"), special("separator"), sequence("B"), special("end")}));
  EXPECT_EQ(file["post_processor"]["special_tokens"],
            (json{{"begin", {{"id", "begin"}, {"ids", {1}}, {"tokens", {"<s>"}}}},
                  {"separator", {{"id", "separator"}, {"ids", {3}}, {"tokens", {"<sep>"}}}},
                  {"end", {{"id", "end"}, {"ids", {2}}, {"tokens", {"</s>"}}}}}));
}

TEST(TokenizerJson, SettingsOfWhiteSpaceBecomeNormalizers) {
  SentencePieceFile pieces = letters();
  pieces.add_dummy_prefix = false;
  pieces.remove_extra_whitespaces = true;
  const json file = tokenizer_json(pieces.serialize());
  EXPECT_EQ(file["normalizer"]["normalizers"],
            json({replace({{"Regex", "\\A +| +(?= )|[ ▁]+\\z"}}, ""), replace({{"String", " "}}, "▁")}));
  EXPECT_EQ(file["decoder"]["decoders"].size(), 3U);
  pieces.pieces[6] = {"▁▁", 0, SentencePiece::Kind::user_defined};
  const json with_user_defined = tokenizer_json(pieces.serialize());
  const json added = with_user_defined["added_tokens"].back();
  EXPECT_EQ(added["content"], "▁▁");
  EXPECT_EQ(added["normalized"], true);
  EXPECT_EQ(added["special"], false);
}

TEST(TokenizerJson, AnyOtherNormalisationThanNfkcIsATable) {
  for (const char* name : {"bpe", "unigram"}) {
    const std::string model =
        read_file(source_folder() / "tests/golden/tokenizer" / (std::string(name) + ".model"));
    const SentencePieceSettings settings = read_sentence_piece_settings(model);
    ASSERT_EQ(settings.normalizer, "nmt_nfkc");
    const json steps = tokenizer_json(model)["normalizer"]["normalizers"];
    EXPECT_EQ(steps[0], (json{{"type", "NFKC"}}));
    EXPECT_EQ(steps[1]["type"], "Precompiled");
    EXPECT_EQ(from_base64(steps[1]["precompiled_charsmap"]), settings.charsmap);
    // Base64 comes in groups of four.
    EXPECT_EQ(steps[1]["precompiled_charsmap"].get<std::string>().size() % 4, 0U);
    std::string other = model;
    other.replace(other.find("nmt_nfkc"), 8, "xyz_case");  // not NFKC: the table alone
    EXPECT_EQ(tokenizer_json(other)["normalizer"]["normalizers"][0]["type"], "Precompiled");
  }
}

TEST(TokenizerJson, AUnigramModelHasScoresAndIsCutBeforeWhatLooksLikeAControlPiece) {
  const std::string model = read_file(source_folder() / "tests/golden/tokenizer/unigram.model");
  const auto pieces = read_sentence_pieces(model);
  const json file = tokenizer_json(model);
  EXPECT_EQ(file["model"]["type"], "Unigram");
  EXPECT_EQ(file["model"]["unk_id"], Tokenizer::from_bytes(model, "t").unknown_id());
  EXPECT_EQ(file["model"]["byte_fallback"], read_sentence_piece_settings(model).byte_fallback);
  ASSERT_EQ(file["model"]["vocab"].size(), pieces.size());
  for (const size_t i : {size_t{0}, size_t{300}, pieces.size() - 1}) {
    EXPECT_EQ(file["model"]["vocab"][i][0], pieces[i].text);
    EXPECT_EQ(file["model"]["vocab"][i][1].get<float>(), pieces[i].score);
  }
  std::string names;
  for (const SentencePiece& piece : pieces) {
    if (piece.kind == SentencePiece::Kind::control || piece.kind == SentencePiece::Kind::unknown)
      names += piece.text.substr(1, piece.text.size() - 2) + "|";
  }
  EXPECT_EQ(file["pre_tokenizer"], (json{{"type", "Split"},
                                         {"pattern", {{"Regex", "<(?=(?:" + names + "0x[0-9A-F]{2})>)"}}},
                                         {"behavior", "Isolated"},
                                         {"invert", false}}));
  EXPECT_EQ(tokenizer_json(read_file(golden_tokenizer))["model"]["type"], "BPE");
}

TEST(TokenizerJson, ThePromptStandsAroundTheText) {
  const json tokens = tokenizer_json(letters().serialize(), true)["post_processor"]["special_tokens"];
  EXPECT_EQ(tokens["begin"]["tokens"], json({"<s>", "▁ab", "▁"}));
  EXPECT_EQ(tokens["begin"]["ids"], json({1, 8, 4}));
}

}  // namespace calque
