// What is specific to byte-level BPE; tokenizer_test.cpp compares its ids with those of Hugging Face.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/data/tokenizer_model.h"
#include "temporary_folder.h"

namespace calque {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

// A tokenizer of a few letters. Ġ is a space, ċ a vertical tab (0x0B); id 14 has no piece.
json letters() {
  json file = json::parse(R"({
    "added_tokens": [{"id": 0, "content": "<s>", "special": true},
                     {"id": 1, "content": "</s>", "special": true},
                     {"id": 13, "content": "漢", "special": false},
                     {"id": 15, "content": "<x>"}],
    "pre_tokenizer": {"type": "ByteLevel", "use_regex": true},
    "model": {"type": "BPE",
              "vocab": {"a": 2, "b": 3, "c": 4, "ab": 5, "bc": 6, "abc": 7, "Ġ": 8, "Ġa": 9, "aĠ": 10,
                        "ċ": 11, "aċ": 12, "1": 16, "2": 17, "12": 18, "s": 19, "\\": 20, "\\s": 21},
              "merges": ["a b", "b c", ["ab", "c"], "Ġ a", "a Ġ", "a ċ", "1 2", "\\ s"]}})");
  set_begin_and_end(file, 0, 1);
  return file;
}

std::shared_ptr<const TokenizerModel> letters_model(const json& file) {
  return make_byte_level_bpe(file.dump(), "t.json");
}

std::string json_refusal(const json& file) {
  try {
    letters_model(file);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

// A golden tokenizer, which has all 256 bytes, with other settings.
std::shared_ptr<const TokenizerModel> golden(const json& changes = json::object()) {
  json file = json::parse(read_file(source_folder() / "tests/golden/tokenizer/byte-level.json"));
  file.update(changes);
  return letters_model(file);
}

json before_bytes(const json& step) {
  return {{"type", "Sequence"}, {"pretokenizers", {step, {{"type", "ByteLevel"}, {"use_regex", false}}}}};
}

}  // namespace

TEST(ByteLevelBpe, MergesTheLowestRankFirst) {
  json file = letters();
  EXPECT_EQ(letters_model(file)->encode("abc"), Ids{7});
  EXPECT_EQ(letters_model(file)->encode("bc"), Ids{6});
  EXPECT_EQ(letters_model(file)->encode("cab ab"), (Ids{4, 5, 8, 5}));  // "ab" before "Ġa"
  EXPECT_EQ(letters_model(file)->encode("axb"), Ids{5});                // no piece for x: it is left out
  EXPECT_EQ(letters_model(file)->encode("x"), Ids{});
  EXPECT_EQ(letters_model(file)->encode(""), Ids{});
  file["model"]["merges"] = {"b c", "a b", "ab c"};
  EXPECT_EQ(letters_model(file)->encode("abc"), (Ids{2, 6}));
  file["model"]["merges"] = {"a b", "a b", "b c", "ab c"};  // the first of two counts
  EXPECT_EQ(letters_model(file)->encode("abc"), Ids{7});
}

TEST(ByteLevelBpe, PartsAreThoseThatMergingPassesThrough) {
  json file = letters();
  EXPECT_EQ(letters_model(file)->parts_of(7), (Ids{7, 2, 3, 4, 5, 7}));
  EXPECT_EQ(letters_model(file)->parts_of(0), Ids{0});
  file["model"]["merges"] = {"b c", "a b", "ab c"};
  EXPECT_EQ(letters_model(file)->parts_of(7), (Ids{7, 2, 3, 4, 6}));
}

TEST(ByteLevelBpe, KnowsItsPieces) {
  const auto tokenizer = letters_model(letters());
  EXPECT_EQ(tokenizer->size(), 22);
  EXPECT_EQ(tokenizer->begin_id(), 0);
  EXPECT_EQ(tokenizer->end_id(), 1);
  EXPECT_EQ(tokenizer->unknown_id(), -1);
  EXPECT_EQ(tokenizer->piece(5), "ab");
  EXPECT_EQ(tokenizer->find("ab"), 5);
  EXPECT_EQ(tokenizer->find("<s>"), 0);
  EXPECT_EQ(tokenizer->find("zz"), std::nullopt);
  EXPECT_TRUE(tokenizer->begins_word(9) && !tokenizer->begins_word(2));
  EXPECT_TRUE(tokenizer->is_byte(2) && tokenizer->is_byte(8) && !tokenizer->is_byte(5));
  EXPECT_FALSE(tokenizer->is_byte(14));
  EXPECT_TRUE(tokenizer->is_control(0) && tokenizer->is_control(14) && tokenizer->is_control(15));
  EXPECT_FALSE(tokenizer->is_control(2) || tokenizer->is_control(13));
  EXPECT_EQ(tokenizer->decode(Ids{0, 2, 9, 14, 13, 15, 1}), "a a漢");
}

TEST(ByteLevelBpe, WholePartsMayBeTakenWithoutMerges) {
  json file = letters();
  file["model"]["merges"] = json::array();
  EXPECT_EQ(letters_model(file)->encode("abc ab"), (Ids{2, 3, 4, 8, 2, 3}));
  file["model"]["ignore_merges"] = true;
  EXPECT_EQ(letters_model(file)->encode("abc ba"), (Ids{7, 8, 3, 2}));
  EXPECT_EQ(letters_model(file)->encode_sampled("abc", 0, 1), (Ids{2, 3, 4}));
}

// A stranger's tokenizer must neither run forever nor give other ids than it would elsewhere, in silence.
TEST(ByteLevelBpe, ARegularExpressionThatTakesTooLongIsRefusedOnItsText) {
  const auto slow =
      golden({{"pre_tokenizer", before_bytes({{"type", "Split"},
                                              {"pattern", {{"Regex", "(a+)+$|(a|a)*b|(x+x+)+y"}}},
                                              {"behavior", "Isolated"},
                                              {"invert", false}})}});
  EXPECT_THROW(slow->encode(std::string(38, 'a') + "c"), UserError);
  EXPECT_FALSE(slow->encode("aab").empty());
}

TEST(ByteLevelBpe, SettingsThatWouldChangeTheIdsAreRefused) {
  for (const auto& [key, value] : {std::pair<std::string, json>{"end_of_word_suffix", "</w>"},
                                   {"continuing_subword_prefix", "##"},
                                   {"dropout", 0.1}}) {
    json file = letters();
    file["model"][key] = value;
    EXPECT_THAT(json_refusal(file), testing::HasSubstr(key));
    file["model"][key] = nullptr;
    EXPECT_EQ(json_refusal(file), "accepted") << key;
  }
}

TEST(ByteLevelBpe, NormalisationAndPrefixSpaceFollowTheFile) {
  const auto plain = golden();
  EXPECT_NE(plain->encode("e\u0301"), plain->encode("é"));
  EXPECT_EQ(golden({{"normalizer", {{"type", "NFC"}}}})->encode("e\u0301"), plain->encode("é"));
  const auto spaced = golden({{"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", true}}}});
  EXPECT_EQ(spaced->encode("chat"), plain->encode(" chat"));
  EXPECT_EQ(spaced->encode(" chat"), plain->encode(" chat"));
  EXPECT_EQ(spaced->encode(""), Ids{});
  EXPECT_NE(plain->encode("chat"), plain->encode(" chat"));
}

TEST(ByteLevelBpe, PreTokenizersSplitBeforeMerging) {
  json file = letters();
  EXPECT_EQ(letters_model(file)->encode("a b"),
            (Ids{2, 8, 3}));  // GPT-2's pattern keeps a space with what follows
  file["pre_tokenizer"]["use_regex"] = false;
  EXPECT_EQ(letters_model(file)->encode("a b"), (Ids{10, 3}));
  const auto split = [&](const json& step, const char* text) {
    file["pre_tokenizer"] = before_bytes(step);
    return letters_model(file)->encode(text);
  };
  EXPECT_EQ(split({{"type", "Digits"}, {"individual_digits", true}}, "12a b"), (Ids{16, 17, 10, 3}));
  EXPECT_EQ(split({{"type", "Digits"}, {"individual_digits", false}}, "12a b"), (Ids{18, 10, 3}));
  EXPECT_EQ(split({{"type", "Digits"}}, "12"), Ids{18});
  const auto regex = [](const char* pattern) {
    return json{{"type", "Split"}, {"behavior", "Isolated"}, {"pattern", {{"Regex", pattern}}}};
  };
  EXPECT_EQ(split(regex("b"), "abc ab"), (Ids{2, 3, 4, 9, 3}));
  // \s and \S as Hugging Face means them: a vertical tab is a space.
  EXPECT_EQ(split(regex("c"), "a\vc"), (Ids{12, 4}));
  EXPECT_EQ(split(regex("\\s"), "a\vc"), (Ids{2, 11, 4}));
  EXPECT_EQ(split(regex("\\S+"), "a\vc"), (Ids{2, 11, 4}));
  EXPECT_EQ(split(regex("\\\\"), "\\s"), (Ids{20, 19}));
  EXPECT_EQ(split(regex("\\\\s"), "\\s\\s"), (Ids{21, 21}));  // a backslash, then the letter s
}

TEST(ByteLevelBpe, ASampleSkipsEachMergeWithTheGivenProbability) {
  const auto tokenizer = letters_model(letters());
  int skipped = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    const Ids ids = tokenizer->encode_sampled("ab", 0.3, seed);
    ASSERT_TRUE(ids == Ids{5} || ids == (Ids{2, 3}));
    skipped += ids.size() == 2;
  }
  EXPECT_NEAR(skipped / 4000.0, 0.3, 0.03);
  EXPECT_EQ(tokenizer->encode_sampled("abc", 0, 1), Ids{7});
  EXPECT_EQ(tokenizer->encode_sampled("abc", 1, 1), (Ids{2, 3, 4}));
  int different = 0;  // the two parts of a text have random numbers of their own
  for (uint64_t seed = 0; seed < 200; ++seed)
    different += tokenizer->encode_sampled("12ab", 0.5, seed).size() == 3;
  EXPECT_NEAR(different / 200.0, 0.5, 0.15);
}

TEST(ByteLevelBpe, PrunedItKeepsTheGivenOrder) {
  const auto pruned = make_byte_level_bpe(letters_model(letters())->pruned(Ids{1, 13, 0, 2, 3, 5}), "pruned");
  EXPECT_EQ(pruned->size(), 6);
  EXPECT_EQ(pruned->end_id(), 0);
  EXPECT_EQ(pruned->begin_id(), 2);
  EXPECT_EQ(pruned->piece(0), "</s>");
  EXPECT_EQ(pruned->piece(1), "漢");
  EXPECT_EQ(pruned->encode("abc"), Ids{5});
  EXPECT_TRUE(pruned->is_control(0) && pruned->is_control(2) && !pruned->is_control(1));
  const json file = json::parse(letters_model(letters())->pruned(Ids{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(file["model"]["merges"], json::parse(R"([["a", "b"], ["b", "c"]])"));
  EXPECT_EQ(file["added_tokens"].size(), 2U);
}

TEST(ByteLevelBpe, OneTokenMayBeginAndEnd) {
  json file = letters();
  set_begin_and_end(file, 5, 5);
  EXPECT_EQ(letters_model(file)->begin_id(), 5);
  EXPECT_EQ(letters_model(file)->end_id(), 5);
  EXPECT_EQ(file["post_processor"]["pair"].size(), 3U);
  set_begin_and_end(file, 1, 2);
  EXPECT_EQ(letters_model(file)->begin_id(), 1);
  EXPECT_EQ(letters_model(file)->end_id(), 2);
  EXPECT_EQ(file["post_processor"], json::parse(R"({
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "</s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"SpecialToken": {"id": "</s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
             {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]},
                       "a": {"id": "a", "ids": [2], "tokens": ["a"]}}})"));
}

TEST(ByteLevelBpe, WhatCannotBeReadIsRefused) {
  EXPECT_EQ(json_refusal(letters()), "accepted");
  const auto changed = [](const char* place, const json& value) {
    json file = letters();
    file[json::json_pointer(place)] = value;
    return json_refusal(file);
  };
  EXPECT_EQ(changed("/model/vocab/a", 10'000'001), "t.json: invalid token id");
  EXPECT_EQ(changed("/added_tokens/0/id", -1), "t.json: invalid token id");
  EXPECT_EQ(changed("/model/merges/0", "ab"),
            "t.json: invalid merge: expected two pieces, separated by a space");
  EXPECT_EQ(changed("/model/merges/2", json::array({"ab", "z"})), "t.json: a merge has unknown pieces: ab z");
  EXPECT_EQ(changed("/model/merges/2", json::array({"b", "a"})), "t.json: a merge has unknown pieces: b a");
  EXPECT_THAT(changed("/model/merges/2", json::array({"a", "b", "c"})), testing::HasSubstr("wrong type"));
  EXPECT_EQ(changed("/model/merges", 3),
            "t.json: vocab or merges has the wrong type: expected an object and a list");
  EXPECT_EQ(changed("/normalizer", {{"type", "NFKC"}}),
            "t.json: the normalizer NFKC is not supported; only NFC is");
  EXPECT_EQ(changed("/normalizer", nullptr), "accepted");
  EXPECT_EQ(changed("/pre_tokenizer", {{"type", "Metaspace"}}),
            "t.json: the pre-tokenizer Metaspace is not supported");
  EXPECT_EQ(changed("/pre_tokenizer", nullptr), "t.json: the tokenizer is not byte-level");
  EXPECT_EQ(changed("/pre_tokenizer", {{"type", "Digits"}}), "t.json: the tokenizer is not byte-level");
  const json split = {{"type", "Split"}, {"behavior", "Isolated"}, {"pattern", {{"Regex", "("}}}};
  EXPECT_EQ(changed("/pre_tokenizer", before_bytes(split)),
            "t.json: the pre-tokenizer has an invalid regular expression");
  const auto split_with = [&](const char* key, const json& value) {
    json step = split;
    step["pattern"]["Regex"] = "a";
    step[key] = value;
    return changed("/pre_tokenizer", before_bytes(step));
  };
  EXPECT_EQ(split_with("invert", false), "accepted");
  for (const auto& [key, value] : std::vector<std::pair<const char*, json>>{
           {"invert", true}, {"behavior", "Removed"}, {"pattern", {{"String", "a"}}}})
    EXPECT_EQ(split_with(key, value), "t.json: the pre-tokenizer Split is not supported") << key;
  const std::string no_ends = "t.json: the post-processor has no begin and end tokens";
  EXPECT_EQ(changed("/post_processor", nullptr), no_ends);
  EXPECT_EQ(changed("/post_processor/type", "ByteLevel"), no_ends);
  EXPECT_EQ(changed("/post_processor/single", json::array()), no_ends);
  EXPECT_EQ(changed("/post_processor/special_tokens/<s>/ids/0", 22), no_ends);
  EXPECT_EQ(changed("/post_processor/special_tokens/<s>/ids/0", 21), "accepted");
}

}  // namespace calque
