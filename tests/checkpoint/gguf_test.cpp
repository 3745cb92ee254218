#include "calque/checkpoint/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/small_checkpoint.h"

namespace calque {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using testing::HasSubstr;

// A GGUF file put together by hand, after the format's description.
class GgufBytes {
 public:
  template <class T>
  GgufBytes& put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  GgufBytes& text(const std::string& text) {
    put(uint64_t{text.size()});
    bytes_ += text;
    return *this;
  }
  GgufBytes& header(uint64_t tensors, uint64_t values, uint32_t version = 3) {
    bytes_ += "GGUF";
    return put(version).put(tensors).put(values);
  }
  GgufBytes& key(const std::string& name, uint32_t type) { return text(name).put(type); }
  // type 0: F32.
  GgufBytes& tensor(const std::string& name, const std::vector<uint64_t>& shape, uint64_t offset,
                    uint32_t type = 0) {
    text(name).put(static_cast<uint32_t>(shape.size()));
    for (const uint64_t size : shape) put(size);
    return put(type).put(offset);
  }
  GgufBytes& pad(size_t alignment = 32) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment, '\0');
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class GgufTest : public testing::Test {
 protected:
  Gguf open(const GgufBytes& file) const { return Gguf(folder_.write("x.gguf", file.bytes())); }
  std::string error(const GgufBytes& file) const {
    return refusal([&] { open(file); });
  }
  TemporaryFolder folder_;
};

}  // namespace

TEST_F(GgufTest, EveryTypeOfMetadataIsRead) {
  GgufBytes file;
  file.header(0, 14);
  file.key("u8", 0).put(uint8_t{200});
  file.key("i8", 1).put(int8_t{-100});
  file.key("u16", 2).put(uint16_t{60'000});
  file.key("i16", 3).put(int16_t{-30'000});
  file.key("u32", 4).put(uint32_t{4'000'000'000});
  file.key("i32", 5).put(int32_t{-2'000'000'000});
  file.key("f32", 6).put(0.5F);
  file.key("yes", 7).put(uint8_t{1});
  file.key("no", 7).put(uint8_t{0});
  file.key("text", 8).text("é");
  file.key("list", 9).put(uint32_t{3}).put(uint64_t{2}).put(int16_t{-1}).put(int16_t{2});
  file.key("u64", 10).put(uint64_t{1} << 63);
  file.key("i64", 11).put(-(int64_t{1} << 62));
  file.key("f64", 12).put(0.1);
  const json expected = {{"u8", 200},
                         {"i8", -100},
                         {"u16", 60'000},
                         {"i16", -30'000},
                         {"u32", 4'000'000'000},
                         {"i32", -2'000'000'000},
                         {"f32", 0.5},
                         {"yes", true},
                         {"no", false},
                         {"text", "é"},
                         {"list", {-1, 2}},
                         {"u64", uint64_t{1} << 63},
                         {"f64", 0.1},
                         {"i64", -(int64_t{1} << 62)}};
  EXPECT_EQ(open(file).metadata(), expected);
  GgufBytes unknown;
  unknown.header(0, 1).key("k", 13).put(uint64_t{0});
  EXPECT_THAT(error(unknown), HasSubstr("unknown value type 13"));
}

TEST_F(GgufTest, ListsNestFourDeepAndAreNoLongerThanTheFile) {
  const auto nested = [](int levels) {
    GgufBytes file;
    file.header(0, 1).key("k", 9);
    for (int i = 1; i < levels; ++i) file.put(uint32_t{9}).put(uint64_t{1});
    return file.put(uint32_t{0}).put(uint64_t{1}).put(uint8_t{7});
  };
  EXPECT_EQ(open(nested(4)).metadata()["k"], json::parse("[[[[7]]]]"));
  EXPECT_THAT(error(nested(5)), HasSubstr("nested more than 4 levels"));
  GgufBytes bytes;
  bytes.header(0, 1).key("k", 9).put(uint32_t{0}).put(uint64_t{3}).put(uint8_t{1}).put(uint8_t{2});
  EXPECT_THAT(error(bytes), HasSubstr("a list is longer than the file"));
  EXPECT_EQ(open(bytes.put(uint8_t{3})).metadata()["k"], json({1, 2, 3}));
}

TEST_F(GgufTest, VersionsTwoAndThreeAreReadAndNoOthers) {
  for (const uint32_t version : {2U, 3U}) EXPECT_EQ(error(GgufBytes().header(0, 0, version)), "accepted");
  for (const uint32_t version : {1U, 4U})
    EXPECT_THAT(error(GgufBytes().header(0, 0, version)), HasSubstr("expected 2 or 3"));
  EXPECT_THAT(refusal([&] { Gguf(folder_.write("x", std::string(24, 'G'))); }),
              HasSubstr("does not begin with \"GGUF\""));
  EXPECT_TRUE(is_gguf(folder_.write("x", "GGUF")));
  EXPECT_FALSE(is_gguf(folder_.write("x", "GGU")));
  EXPECT_FALSE(is_gguf(folder_.write("x", "GGUGGUF")));
}

TEST_F(GgufTest, TensorsLieAtTheirOffsetsAfterTheAlignedHeader) {
  for (const size_t alignment : {32, 64}) {
    GgufBytes file;
    file.header(3, alignment == 32 ? 0 : 1);
    if (alignment == 64) file.key("general.alignment", 4).put(uint32_t{64});
    file.tensor("matrix", {3, 2}, 0).tensor("scalar", {}, alignment).tensor("half", {2}, 2 * alignment, 1);
    file.pad(alignment);
    for (int i = 0; i < 6; ++i) file.put(static_cast<float>(i));
    file.pad(alignment).put(7.5F).pad(alignment).put(uint16_t{0x3C00}).put(uint16_t{0xC000});
    const Gguf gguf = open(file);
    EXPECT_EQ(gguf.entries().at("matrix").shape, (std::vector<int64_t>{2, 3}));  // the last is contiguous
    EXPECT_TRUE(torch::equal(gguf.tensor("matrix"), torch::arange(6, torch::kFloat32).view({2, 3})));
    EXPECT_EQ(gguf.tensor("scalar").item<float>(), 7.5F);
    EXPECT_TRUE(torch::equal(gguf.tensor("half"), torch::tensor({1.0F, -2.0F})));
    EXPECT_THAT(refusal([&] { gguf.tensor("none"); }), HasSubstr("no tensor none"));
  }
}

TEST_F(GgufTest, AlignmentIsAtMostAMillion) {
  const auto with = [&](uint32_t alignment) {
    GgufBytes file;
    file.header(0, 1).key("general.alignment", 4).put(alignment);
    return error(file);
  };
  for (const uint32_t good : {1U, 1'000'000U}) EXPECT_EQ(with(good), "accepted");
  for (const uint32_t bad : {0U, 1'000'001U}) EXPECT_THAT(with(bad), HasSubstr("general.alignment"));
  GgufBytes negative;
  negative.header(0, 1).key("general.alignment", 5).put(int32_t{-32});
  EXPECT_THAT(error(negative), HasSubstr("general.alignment"));
}

TEST_F(GgufTest, ShapesAreChecked) {
  const auto with = [&](const std::vector<uint64_t>& shape, uint32_t type, size_t bytes) {
    GgufBytes file;
    file.header(1, 0).tensor("t", shape, 0, type).pad();
    for (size_t i = 0; i < bytes; ++i) file.put(uint8_t{0});
    return error(file);
  };
  EXPECT_EQ(with({1, 1, 1, 2}, 0, 8), "accepted");
  EXPECT_THAT(with({1, 1, 1, 1, 1}, 0, 4), HasSubstr("t: 5 dimensions"));
  EXPECT_THAT(with({0}, 0, 4), HasSubstr("invalid shape"));
  EXPECT_THAT(with({1 << 20, 1 << 20}, 0, 4), HasSubstr("outside the file"));
  EXPECT_THAT(with({1 << 20, (1 << 20) + 1}, 0, 4), HasSubstr("invalid shape"));
  EXPECT_THAT(with({(uint64_t{1} << 40) + 1}, 0, 4), HasSubstr("invalid shape"));
  // Q8_0: blocks of 32 values in 34 bytes.
  EXPECT_EQ(with({64, 3}, 8, 6 * 34), "accepted");
  EXPECT_THAT(with({64, 3}, 8, 6 * 34 - 1), HasSubstr("outside the file"));
  EXPECT_THAT(with({48, 2}, 8, 200), HasSubstr("row length 48 is not a multiple of the block size 32"));
  EXPECT_THAT(with({}, 8, 200), HasSubstr("a scalar cannot have a block type"));
  EXPECT_EQ(with({}, 0, 4), "accepted");
  EXPECT_EQ(with({5}, 0, 20), "accepted");
  EXPECT_THAT(with({5}, 0, 19), HasSubstr("outside the file"));
}

TEST_F(GgufTest, TensorsDoNotOverlapAndLieInsideTheFileAtAlignedOffsets) {
  const auto two = [&](uint64_t first, uint64_t second, size_t bytes = 96) {
    GgufBytes file;
    file.header(2, 0).tensor("a", {8}, first).tensor("b", {8}, second).pad();
    for (size_t i = 0; i < bytes; ++i) file.put(uint8_t{0});
    return error(file);
  };
  EXPECT_EQ(two(0, 32), "accepted");
  EXPECT_EQ(two(64, 0), "accepted");
  EXPECT_THAT(two(32, 32), HasSubstr("tensors overlap"));
  EXPECT_THAT(two(0, 16), HasSubstr("b: its data lies outside the file or is not aligned"));
  EXPECT_THAT(two(0, 96), HasSubstr("outside the file"));
  EXPECT_THAT(two(0, uint64_t{1} << 63), HasSubstr("outside the file"));
  GgufBytes cut;  // ends before its data could begin
  EXPECT_THAT(error(cut.header(1, 0).tensor("abc", {1}, 0)), HasSubstr("outside the file"));
}

TEST_F(GgufTest, DuplicatesAndUnknownTypesAreNamed) {
  GgufBytes keys;
  keys.header(0, 2).key("k", 0).put(uint8_t{1}).key("k", 0).put(uint8_t{2});
  EXPECT_THAT(error(keys), HasSubstr("duplicate metadata key k"));
  GgufBytes tensors;
  tensors.header(2, 0).tensor("t", {1}, 0).tensor("t", {1}, 32).pad().put(1.0F).pad().put(1.0F);
  EXPECT_THAT(error(tensors), HasSubstr("duplicate tensor t"));
  GgufBytes other;
  const Gguf gguf = open(other.header(1, 0).tensor("t", {7}, 0, 99).pad());
  EXPECT_EQ(gguf.entries().at("t").type, nullptr);
  EXPECT_EQ(gguf.entries().at("t").type_number, 99U);
  EXPECT_THAT(refusal([&] { gguf.tensor("t"); }), HasSubstr("t: ggml type 99 is not supported"));
  EXPECT_THAT(error(GgufBytes().header(1, 0)), HasSubstr("claims 1 tensors and 0 metadata values"));
  EXPECT_THAT(error(GgufBytes().header(0, 1)), HasSubstr("claims 0 tensors and 1 metadata values"));
}

TEST_F(GgufTest, WhatIsWrittenReadsBack) {
  const ordered_json metadata = {{"text", "é"},
                                 {"yes", true},
                                 {"no", false},
                                 {"half", 0.5},
                                 {"count", 4'000'000'000},
                                 {"negative", -3},
                                 {"counts", {1, 2, 3}},
                                 {"scores", {0.5, -1.5}},
                                 {"words", {"a", "b"}},
                                 {"flags", {true, false}},
                                 {"empty", json::array()}};
  const torch::Tensor matrix = torch::arange(64, torch::kFloat32).view({2, 32}) - 31;
  const torch::Tensor narrow = torch::arange(6, torch::kFloat32).view({2, 3}) / 3;
  const torch::Tensor vector = torch::arange(32, torch::kFloat32) / 7;
  for (const char* name : {"F32", "F16", "Q8_0"}) {
    write_gguf(folder_ / "w.gguf", metadata, {{"matrix", matrix}, {"narrow", narrow}, {"vector", vector}},
               *find_block_type(name));
    const Gguf gguf(folder_ / "w.gguf");
    EXPECT_EQ(gguf.metadata(), json(metadata));
    const std::string type = name;
    EXPECT_EQ(gguf.entries().at("matrix").type->name, type);
    EXPECT_STREQ(gguf.entries().at("vector").type->name, "F32");
    EXPECT_STREQ(gguf.entries().at("narrow").type->name, type == "Q8_0" ? "F32" : name);  // no whole block
    EXPECT_LT((gguf.tensor("matrix") - matrix).abs().max().item<float>(), type == "Q8_0" ? 0.2 : 1e-9);
    EXPECT_LT((gguf.tensor("narrow") - narrow).abs().max().item<float>(), type == "F16" ? 1e-3 : 1e-9);
    EXPECT_TRUE(torch::equal(gguf.tensor("vector"), vector));
    EXPECT_EQ(std::filesystem::file_size(folder_ / "w.gguf") % 32, 0U);
    // llama.cpp reads lists of integers as signed ones: the type follows the list's own.
    const std::string bytes = read_file(folder_ / "w.gguf");
    const size_t at = bytes.find("counts") + 6;
    EXPECT_EQ(bytes.substr(at, 8), std::string("\x09\0\0\0\x05\0\0\0", 8));
  }
}

TEST_F(GgufTest, ValuesThatTheFormatCannotHoldAreNotWritten) {
  EXPECT_ANY_THROW(write_gguf(folder_ / "w.gguf", {{"null", nullptr}}, {}, *find_block_type("F32")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "w.gguf"));
}

}  // namespace calque
