#include "calque/base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "temporary_folder.h"

namespace calque {
namespace fs = std::filesystem;

TEST(File, ErrorsNameTheMissingFileOrFolder) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { read_file(folder / "none"); },
              testing::ThrowsMessage<UserError>(testing::HasSubstr("none: No such file")));
  EXPECT_THAT([&] { MappedFile{folder.path()}; },
              testing::ThrowsMessage<UserError>(testing::HasSubstr("is a folder")));
}

TEST(File, EmptyFileMapsToZeroBytes) {
  const TemporaryFolder folder;
  EXPECT_EQ(MappedFile(folder.write("empty", "")).size(), 0u);
}

TEST(AtomicFile, AppearsOnlyWhenCommitted) {
  const TemporaryFolder folder;
  {
    AtomicFile file(folder / "a");
    file.write("half");
    EXPECT_FALSE(fs::exists(folder / "a"));
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
  write_file(folder / "a", "whole");
  EXPECT_EQ(read_file(folder / "a"), "whole");
}

TEST(AtomicFile, KilledWriterKeepsTheOldFileAndItsTemporaryFileIsRemoved) {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  const pid_t child = fork();
  if (child == 0) {
    AtomicFile file(folder / "a");
    file.write("new, but only ha");
    _exit(0);  // no destructors, as if killed
  }
  waitpid(child, nullptr, 0);
  EXPECT_EQ(read_file(folder / "a"), "old");
  write_file(folder / "a", "next");
  EXPECT_EQ(read_file(folder / "a"), "next");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(AtomicFile, WritesAndReadsBackAtOffsets) {
  const TemporaryFolder folder;
  AtomicFile file(folder / "a");
  file.write("0123456789");
  file.write_at(2, "ab", 2);
  char back[4];
  file.read_at(1, back, 4);
  EXPECT_EQ(std::string(back, 4), "1ab4");
  file.commit();
  EXPECT_EQ(read_file(folder / "a"), "01ab456789");
}

TEST(AtomicFile, RefusesAFolder) {
  const TemporaryFolder folder;
  EXPECT_THROW(AtomicFile{folder.path()}, UserError);
}

TEST(Hash, FileAndBytesAgreeAndDifferWithContent) {
  const TemporaryFolder folder;
  const std::string content(1 << 20, 'x');
  EXPECT_EQ(hash_file(folder.write("a", content)), hash_bytes(content));
  EXPECT_NE(hash_bytes("a"), hash_bytes("b"));
  EXPECT_EQ(hex(255), "00000000000000ff");
  EXPECT_EQ(hash_bytes(""), 0x2D06800538D394C2ULL);  // XXH3's published value for the empty input
}

}  // namespace calque
