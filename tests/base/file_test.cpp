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

TEST(AtomicFile, ALinkStaysAndItsTargetIsReplaced) {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  fs::create_symlink("a", folder / "link");
  write_file(folder / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(read_file(folder / "a"), "new");
  fs::create_symlink("none", folder / "dangling");
  write_file(folder / "dangling", "new");
  EXPECT_EQ(read_file(folder / "none"), "new");
  // A link is relative to the folder that it really stands in.
  fs::create_directories(folder / "real/inner");
  fs::create_symlink("../beside", folder / "real/inner/out");
  fs::create_symlink("real/inner", folder / "linked");
  write_file(folder / "linked/out", "new");
  EXPECT_EQ(read_file(folder / "real/beside"), "new");
  fs::create_symlink("/dev/stdout", folder / "out");
  fs::create_symlink("loop", folder / "loop");
  for (const fs::path& path : {fs::path("/dev/stdout"), folder / "out", folder / "loop"})
    EXPECT_THAT([&] { AtomicFile{path}; },
                testing::ThrowsMessage<UserError>(testing::HasSubstr("not a regular file")));
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

TEST(AtomicFile, LeavesTheTemporaryFilesOfOtherMachinesAndOfLivingWriters) {
  const TemporaryFolder folder;
  // A process number that is free here may be in use on another machine of a shared file system.
  folder.write("a.tmp-4194300", "by an unknown machine");
  folder.write("a.tmp-00000000-4194300-0a1b2c3d", "by another machine");
  AtomicFile living(folder / "a");
  living.write("by this process");
  std::string own;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    const std::string name = entry.path().filename().string();
    if (name.find(fmt::format("-{}-", getpid())) != std::string::npos) own = name;
  }
  ASSERT_FALSE(own.empty());
  // The same machine, and no process of this number here: but who writes it, in another container, holds a
  // lock.
  std::string elsewhere = own;
  elsewhere.replace(own.find(fmt::format("-{}-", getpid())), fmt::format("-{}-", getpid()).size(),
                    "-4194300-");
  fs::rename(folder / own, folder / elsewhere);
  write_file(folder / "a", "next");
  EXPECT_TRUE(fs::exists(folder / "a.tmp-4194300"));
  EXPECT_TRUE(fs::exists(folder / "a.tmp-00000000-4194300-0a1b2c3d"));
  EXPECT_TRUE(fs::exists(folder / elsewhere));
  fs::rename(folder / elsewhere, folder / own);
  living.commit();
  EXPECT_EQ(read_file(folder / "a"), "by this process");
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
