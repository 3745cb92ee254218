#include "calque/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "calque/base/error.h"
#include "temporary_folder.h"

namespace calque {
namespace {

using testing::HasSubstr;

// A file with this header and `data_bytes` zero bytes of data.
std::string safetensors_bytes(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data_bytes, '\0');
}

std::string refusal_of_file(const TemporaryFolder& folder, const std::string& bytes) {
  try {
    const Safetensors file(folder.write("x.safetensors", bytes));
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

NamedTensors golden_tensors() {
  return {{"b.weight", torch::arange(6, torch::kFloat32).view({2, 3}) / 4},
          {"a.weight", torch::arange(4, torch::kFloat32) - 2},
          {"half", torch::tensor({1.5, -2.0}).to(torch::kFloat16)},
          {"counts", torch::tensor({{int64_t{1}}, {int64_t{2}}})},
          {"bytes", torch::tensor({0, 255, 7}).to(torch::kUInt8)},
          {"scalar", torch::full({}, 3.25, torch::kFloat64)},
          {"empty", torch::zeros({0, 5})},
          {"nom accentué", torch::tensor({1, 0}).to(torch::kBool)}};
}

}  // namespace

// The golden file was written by the `safetensors` package for the same tensors (tools/make-goldens).
TEST(Safetensors, WritesTheBytesThatThePythonPackageWrites) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a.safetensors", golden_tensors(), {{"format", "pt"}});
  EXPECT_EQ(read_file(folder / "a.safetensors"),
            read_file(source_folder() / "tests/golden/safetensors/mixed.safetensors"));
}

TEST(Safetensors, ReadsThePythonPackagesFile) {
  const Safetensors file(source_folder() / "tests/golden/safetensors/mixed.safetensors");
  EXPECT_EQ(file.entries().size(), 8u);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  for (const auto& [name, expected] : golden_tensors()) {
    const torch::Tensor found = file.tensor(name);
    EXPECT_EQ(found.scalar_type(), expected.scalar_type()) << name;
    EXPECT_TRUE(torch::equal(found, expected)) << name;
  }
}

TEST(Safetensors, ATensorOutlivesItsFile) {
  torch::Tensor tensor;
  {
    const Safetensors file(source_folder() / "tests/golden/safetensors/mixed.safetensors");
    tensor = file.tensor("b.weight");
  }
  EXPECT_EQ(tensor.sum().item<float>(), 3.75F);
}

TEST(Safetensors, AMissingTensorIsReportedWithASuggestion) {
  const Safetensors file(source_folder() / "tests/golden/safetensors/mixed.safetensors");
  EXPECT_THAT([&] { file.tensor("a.weigth"); },
              testing::ThrowsMessage<UserError>(HasSubstr("no tensor a.weigth; did you mean a.weight?")));
}

TEST(Safetensors, MaliciousAndTruncatedFilesAreRefused) {
  const TemporaryFolder folder;
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  EXPECT_EQ(refusal_of_file(folder, safetensors_bytes(good, 8)), "accepted");
  EXPECT_THAT(refusal_of_file(folder, ""), HasSubstr("shorter than eight bytes"));
  EXPECT_THAT(refusal_of_file(folder, std::string(8, '\xff')),
              HasSubstr("a header of 18446744073709551615 bytes"));
  EXPECT_THAT(refusal_of_file(folder, safetensors_bytes(good, 8).substr(0, 20)), HasSubstr("a header of"));
  EXPECT_THAT(refusal_of_file(folder, safetensors_bytes(good, 7)), HasSubstr("larger than the file"));
  EXPECT_THAT(refusal_of_file(folder, safetensors_bytes(good, 9)), HasSubstr("belong to no tensor"));
  EXPECT_THAT(refusal_of_file(folder, safetensors_bytes("{not json", 0)), HasSubstr("not JSON"));
  EXPECT_THAT(refusal_of_file(folder, safetensors_bytes("[1]", 0)), HasSubstr("not an object"));
  EXPECT_THAT(refusal_of_file(folder, safetensors_bytes(std::string(5000, '['), 0)), HasSubstr("not JSON"));
  const auto with = [&](const std::string& entries, size_t bytes) {
    return refusal_of_file(folder, safetensors_bytes("{" + entries + "}", bytes));
  };
  EXPECT_THAT(
      with(
          R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})",
          8),
      HasSubstr("duplicate key \"a\""));
  EXPECT_THAT(
      with(
          R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]})",
          12),
      HasSubstr("overlap"));
  EXPECT_THAT(with(R"("a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]})", 12),
              HasSubstr("belong to no tensor"));
  EXPECT_THAT(with(R"("a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]})", 8),
              HasSubstr("outside the file"));
  EXPECT_THAT(with(R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,16]})", 8),
              HasSubstr("outside the file"));
  EXPECT_THAT(with(R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]})", 8),
              HasSubstr("its shape needs 4 bytes, its offsets give 8"));
  EXPECT_THAT(with(R"("a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})", 0),
              HasSubstr("larger than the file"));
  EXPECT_THAT(with(R"("a":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]})", 0),
              HasSubstr("shape: expected non-negative integers"));
  EXPECT_THAT(with(R"("a":{"dtype":"F99","shape":[0],"data_offsets":[0,0]})", 0),
              HasSubstr("unknown dtype F99"));
  EXPECT_THAT(with(R"("a":{"dtype":"F32"})", 0), HasSubstr("expected dtype, shape and data_offsets"));
  EXPECT_THAT(with(R"("__metadata__":{"a":1})", 0), HasSubstr("__metadata__: expected strings only"));
}

TEST(Safetensors, AnyTruncationOfAGoodFileIsRefused) {
  const TemporaryFolder folder;
  const std::string good = read_file(source_folder() / "tests/golden/safetensors/mixed.safetensors");
  for (size_t size = 0; size < good.size(); size += 3)
    EXPECT_NE(refusal_of_file(folder, good.substr(0, size)), "accepted") << size;
}

// Other programs may write headers of any length, after which the data is not aligned.
TEST(Safetensors, DataThatIsNotAlignedIsReadAsWell) {
  const TemporaryFolder folder;
  for (size_t spaces = 0; spaces < 8; ++spaces) {
    const std::string header =
        R"({"d":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},"h":{"dtype":"F16","shape":[2],"data_offsets":[8,12]}})" +
        std::string(spaces, ' ');
    std::string bytes = safetensors_bytes(header, 12);
    const double value = 0.1;
    std::memcpy(bytes.data() + bytes.size() - 12, &value, 8);
    bytes[bytes.size() - 3] = '\x3C';  // 1 as a half
    torch::Tensor d, h;
    {
      const Safetensors file(folder.write("x.safetensors", bytes));
      d = file.tensor("d");
      h = file.tensor("h");
      // Aligned data is not copied: both tensors are the same memory.
      const bool aligned = (8 + header.size()) % 8 == 0;
      EXPECT_EQ(file.tensor("d").data_ptr() == d.data_ptr(), aligned) << spaces;
    }
    EXPECT_EQ(d.item<double>(), 0.1) << spaces;
    EXPECT_EQ(h[0].item<float>(), 1) << spaces;
    // Only what is aligned may be used where it lies: LibTorch assumes so.
    EXPECT_EQ(reinterpret_cast<uintptr_t>(d.data_ptr()) % 8, 0U);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(h.data_ptr()) % 2, 0U);
  }
}

TEST(Safetensors, EveryTypeReadsBack) {
  const TemporaryFolder folder;
  NamedTensors tensors;
  for (const auto type : {torch::kBool, torch::kUInt8, torch::kInt8, torch::kInt16, torch::kFloat16,
                          torch::kBFloat16, torch::kInt32, torch::kFloat32, torch::kFloat64, torch::kInt64})
    tensors.emplace_back(c10::toString(type), torch::tensor({1, 0, 1}).to(type));
  write_safetensors(folder / "all", tensors, {});
  const Safetensors file(folder / "all");
  EXPECT_EQ(file.entries().size(), 10U);
  EXPECT_TRUE(file.metadata().empty());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_TRUE(file.contains(name));
    EXPECT_EQ(file.tensor(name).scalar_type(), tensor.scalar_type());
    EXPECT_TRUE(torch::equal(file.tensor(name), tensor)) << name;
    file.forget(name);  // and it can be read again
    EXPECT_TRUE(torch::equal(file.tensor(name), tensor)) << name;
  }
  EXPECT_FALSE(file.contains("none"));
  EXPECT_THROW(write_safetensors(folder / "complex", {{"z", torch::zeros({1}, torch::kComplexFloat)}}, {}),
               std::runtime_error);
}

// The format allows headers of up to 100 MB.
TEST(Safetensors, TheLimitOfAHeaderIsTheFormatsOwn) {
  const TemporaryFolder folder;
  for (const uint64_t length : {100'000'000ULL, 100'000'001ULL}) {
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    const auto path = folder.write("large", bytes);
    std::filesystem::resize_file(path, length + 8);  // of zeros, which take no space
    EXPECT_THAT([&] { Safetensors{path}; },
                testing::ThrowsMessage<UserError>(HasSubstr(
                    length == 100'000'000 ? "its header is not JSON" : "a header of 100000001 bytes")));
  }
}

TEST(Safetensors, EachPartOfAnEntryIsNeededWithItsType) {
  const TemporaryFolder folder;
  const auto with = [&](const std::string& entry) {
    return refusal_of_file(folder, safetensors_bytes("{\"a\":" + entry + "}", 4));
  };
  EXPECT_EQ(with(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"), "accepted");
  for (const char* entry :
       {"3", R"({"shape":[1],"data_offsets":[0,4]})", R"({"dtype":"F32","data_offsets":[0,4]})",
        R"({"dtype":"F32","shape":[1]})", R"({"dtype":3,"shape":[1],"data_offsets":[0,4]})",
        R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})",
        R"({"dtype":"F32","shape":[1],"data_offsets":4})",
        R"({"dtype":"F32","shape":[1],"data_offsets":[4]})",
        R"({"dtype":"F32","shape":[1],"data_offsets":[0,4,8]})"})
    EXPECT_THAT(with(entry), HasSubstr("a: expected dtype, shape and data_offsets")) << entry;
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[1],"data_offsets":[0,-4]})"),
              HasSubstr("data_offsets: expected non-neg"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,4]})"),
              HasSubstr("shape: expected non-neg"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[0,18446744073709551615],"data_offsets":[0,0]})"),
              HasSubstr("larger than the file"));
  EXPECT_THAT(refusal_of_file(folder, safetensors_bytes(R"({"__metadata__":3})", 0)),
              HasSubstr("is not an object"));
}

TEST(Safetensors, KeysMayRepeatInDifferentEntriesOnly) {
  const TemporaryFolder folder;
  const std::string two =
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})";
  EXPECT_EQ(refusal_of_file(folder, safetensors_bytes(two, 2)), "accepted");
  EXPECT_THAT(refusal_of_file(
                  folder, safetensors_bytes(
                              R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1)),
              HasSubstr("duplicate key \"dtype\""));
}

}  // namespace calque
