#include "calque/data/line_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "calque/base/error.h"
#include "calque/base/file.h"
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

std::string gzip(const std::string& text, bool two_members = false) {
  const TemporaryFolder folder;
  const auto half = text.size() / 2;
  for (const auto& part :
       two_members ? std::vector{text.substr(0, half), text.substr(half)} : std::vector{text}) {
    const gzFile file = gzopen((folder / "a.gz").c_str(), "ab");
    gzwrite(file, part.data(), static_cast<unsigned>(part.size()));
    gzclose(file);
  }
  return read_file(folder / "a.gz");
}

std::string all_lines(LineReader& reader) {
  std::string all;
  for (std::string_view line; reader.next(line);) all += std::string(line) + "\n";
  return all;
}

// Of several members too, with zeros after the last; and a text that only begins like one.
TEST(LineReader, AGzipFileIsUnzipped) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i * 37) + "\n";
  for (const std::string& bytes : {gzip(text), gzip(text, true), gzip(text, true) + std::string(600, '\0')}) {
    LineReader reader(folder.write("a", bytes));
    EXPECT_EQ(all_lines(reader), text);
  }
  LineReader reader(folder.write("a", "\x1F"));
  EXPECT_EQ(all_lines(reader), "\x1F\n");
}

TEST(LineReader, ADamagedGzipFileIsNamed) {
  const TemporaryFolder folder;
  const std::string bytes = gzip(std::string(1000, 'x') + "\n" + std::string(1000, 'y'), true);
  std::string flipped = bytes;
  flipped[flipped.size() - 6] ^= 1;  // in the checksum
  for (const auto& [damaged, reason] :
       {std::pair(bytes.substr(0, bytes.size() - 1), "unexpected end of file"),
        std::pair(bytes.substr(0, 1 + bytes.size() / 2), "unexpected end of file"),
        std::pair(flipped, "incorrect data check")}) {
    LineReader reader(folder.write("a", damaged));
    try {
      all_lines(reader);
      ADD_FAILURE() << reason;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(),
                  testing::AllOf(testing::HasSubstr((folder / "a").string()), testing::HasSubstr(reason)));
    }
  }
}

// What reads from a slow writer can work meanwhile.
TEST(LineReader, IsReadyWhenAPipeHasALineOrItsEnd) {
  for (const bool zipped : {false, true}) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    LineReader reader(ends[0], "pipe");
    const auto put = [&](const std::string& text) {
      const std::string bytes = zipped ? gzip(text) : text;
      ASSERT_EQ(write(ends[1], bytes.data(), bytes.size()), std::ssize(bytes));
    };
    EXPECT_FALSE(reader.is_ready());
    put("on");
    EXPECT_FALSE(reader.is_ready());
    put("e\ntwo\nthr");
    std::string_view line;
    for (const char* expected : {"one", "two"}) {
      ASSERT_TRUE(reader.is_ready());
      ASSERT_TRUE(reader.next(line));
      EXPECT_EQ(line, expected);
    }
    EXPECT_FALSE(reader.is_ready());
    close(ends[1]);
    EXPECT_TRUE(reader.is_ready());
    ASSERT_TRUE(reader.next(line));
    EXPECT_EQ(line, "thr");
    EXPECT_TRUE(reader.is_ready());
    EXPECT_FALSE(reader.next(line));
  }
}

// Nor does it wait for what a writer has begun: an empty first line, the header of a gzip file.
TEST(LineReader, IsNotReadyWhenAPipeHasPartOfAGzipFile) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  LineReader reader(ends[0], "pipe");
  const std::string bytes = gzip("one\n");
  for (const size_t begin : {0, 10}) {
    const std::string part = bytes.substr(begin, begin == 0 ? 10 : std::string::npos);
    ASSERT_EQ(write(ends[1], part.data(), part.size()), std::ssize(part));
    EXPECT_EQ(reader.is_ready(), begin == 10);
  }
  std::string_view line;
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "one");
  close(ends[1]);
}

TEST(LineReader, AnEmptyFirstLineOfAPipeIsReadAtOnce) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  LineReader reader(ends[0], "pipe");
  ASSERT_EQ(write(ends[1], "\n", 1), 1);
  ASSERT_TRUE(reader.is_ready());
  std::string_view line;
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "");
  close(ends[1]);
}

TEST(LineReader, BytesReadAreThoseOfTheLinesSoFar) {
  const TemporaryFolder folder;
  LineReader reader(folder.write("a", "one\ntwo\n"));
  std::string_view line;
  EXPECT_EQ(reader.bytes_read(), 0);
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(reader.bytes_read(), 4);
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
