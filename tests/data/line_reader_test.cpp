#include "calque/data/line_reader.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calque/base/error.h"
#include "temporary_folder.h"

namespace calque {
namespace {

// A writer of a named pipe that finds no reader between two openings gets SIGPIPE, and the second opening may
// wait forever.
TEST(LineReader, ANamedPipeIsOpenedOnce) {
  const TemporaryFolder folder;
  const auto path = folder / "fifo";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int writer = open(path.c_str(), O_RDWR);  // both ends: no opening waits
  const int watch = inotify_init1(IN_NONBLOCK);
  ASSERT_GE(inotify_add_watch(watch, path.c_str(), IN_OPEN | IN_CLOSE), 0);
  LineReader reader(path);
  alignas(inotify_event) char events[4096];
  // One event: opened. A second opening would add a closing and an opening.
  EXPECT_EQ(read(watch, events, sizeof events), static_cast<ssize_t>(sizeof(inotify_event)));
  ASSERT_EQ(write(writer, "one\ntwo", 7), 7);
  close(writer);
  close(watch);
  std::string_view line;
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "one");
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "two");
  EXPECT_FALSE(reader.next(line));
  EXPECT_EQ(reader.bytes_read(), 0);
}

TEST(LineReader, TheByteOrderMarkOfAFileIsNoTextOfItsFirstLine) {
  const TemporaryFolder folder;
  LineReader reader(folder.write("a", "\uFEFFone\n\uFEFFtwo\n"));
  std::string_view line;
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "one");
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "\uFEFFtwo");
}

TEST(LineReader, ReadsEveryLineAcrossTheBlocksOfAFile) {
  const TemporaryFolder folder;
  std::string content(200'000, 'x');
  content += '\n';
  for (int i = 0; i < 60'000; ++i) content += std::to_string(i * 31) + (i % 100 == 0 ? "\r\n" : "\n");
  content += "last";
  LineReader reader(folder.write("a.txt", content));
  std::string rebuilt;
  std::string_view line;
  int64_t lines = 0;
  while (reader.next(line)) {
    rebuilt += (lines > 0 ? "\n" : "") + std::string(line);
    ASSERT_EQ(reader.line_number(), ++lines);
  }
  EXPECT_EQ(rebuilt, content);
  EXPECT_EQ(lines, 60'002);
  EXPECT_EQ(reader.bytes_read(), std::ssize(content));
  EXPECT_EQ(reader.path(), folder / "a.txt");
  EXPECT_FALSE(reader.next(line));
}

TEST(LineReader, ALineHasAtMost16Megabytes) {
  const TemporaryFolder folder;
  const std::string longest(16 << 20, 'x');
  std::string_view line;
  for (const char* end : {"", "\n", "\nmore\n"}) {
    LineReader reader(folder.write("a.txt", longest + end));
    ASSERT_TRUE(reader.next(line));
    EXPECT_EQ(line.size(), longest.size());
    LineReader over(folder.write("b.txt", "x" + longest + end));
    EXPECT_THROW(over.next(line), UserError);
  }
}

}  // namespace
}  // namespace calque
