#include "calque/data/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <set>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "temporary_folder.h"

namespace calque {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::vector<std::pair<std::string, std::string>> read_all(const CorpusPart& part,
                                                          int64_t* skipped = nullptr) {
  PairReader reader(part);
  SentencePair pair;
  std::vector<std::pair<std::string, std::string>> all;
  while (reader.next(pair)) all.emplace_back(pair.source, pair.target);
  if (skipped != nullptr) *skipped = reader.skipped_empty();
  return all;
}

std::string error_message(const CorpusPart& part) {
  try {
    read_all(part);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

CorpusPart tsv(const std::filesystem::path& path) {
  CorpusPart part;
  part.pairs = path;
  return part;
}

void write_gzip(const std::filesystem::path& path, const std::string& content) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
}

}  // namespace

TEST(Corpus, ReadsPairsFromTsvPlainAndGzip) {
  const TemporaryFolder folder;
  const std::string content = "Bonjour.\tHello.\nMerci !\tThanks!";
  write_gzip(folder / "a.tsv.gz", content);
  for (const auto& path : {folder.write("a.tsv", content), folder / "a.tsv.gz"}) {
    EXPECT_THAT(read_all(tsv(path)), ElementsAre(Pair("Bonjour.", "Hello."), Pair("Merci !", "Thanks!")));
  }
}

TEST(Corpus, ReadsTwoParallelFilesAndText) {
  const TemporaryFolder folder;
  CorpusPart part;
  part.source = folder.write("a.fr", "un\ndeux\n");
  part.target = folder.write("a.en", "one\ntwo\n");
  EXPECT_THAT(read_all(part), ElementsAre(Pair("un", "one"), Pair("deux", "two")));
  CorpusPart text;
  text.text = folder.write("a.txt", "one\ttab stays\ntwo\n");
  EXPECT_THAT(read_all(text), ElementsAre(Pair("", "one\ttab stays"), Pair("", "two")));
}

TEST(Corpus, SkipsEmptySidesAndRemovesCarriageReturns) {
  const TemporaryFolder folder;
  int64_t skipped = 0;
  EXPECT_THAT(read_all(tsv(folder.write("a.tsv", "a\tb\r\n\n\tc\nd\t\n  e \t f  \n")), &skipped),
              ElementsAre(Pair("a", "b"), Pair("e", "f")));
  EXPECT_EQ(skipped, 3);
}

TEST(Corpus, ErrorsNameFileAndLine) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_message(tsv(folder.write("a.tsv", "a\tb\na b\n"))),
              HasSubstr("a.tsv:2: expected 2 columns (french<TAB>english), found 1"));
  EXPECT_THAT(error_message(tsv(folder.write("b.tsv", "a\tb\tc\n"))),
              HasSubstr("b.tsv:1: expected 2 columns (french<TAB>english), found 3"));
  EXPECT_THAT(error_message(tsv(folder.write("c.tsv", "a\tb\nc\td\xe9\n"))),
              HasSubstr("c.tsv:2: byte 4 is not valid UTF-8 (0xe9)"));
  CorpusPart uneven;
  uneven.source = folder.write("a.fr", "un\ndeux\n");
  uneven.target = folder.write("a.en", "one\n");
  EXPECT_THAT(error_message(uneven), HasSubstr("a.en ends after line 1"));
  EXPECT_THAT(error_message(tsv(folder / "none.tsv")), HasSubstr("No such file"));
  EXPECT_THAT(error_message(tsv(folder.path())), HasSubstr("is a folder"));
}

TEST(Corpus, ColumnsOfATsvCanBeChosen) {
  const TemporaryFolder folder;
  CorpusPart part = tsv(folder.write("a.tsv", "1\tHello.\t7\tBonjour.\tCC BY\n2\tThanks!\t8\tMerci !\n"));
  part.columns = {4, 2};
  EXPECT_THAT(read_all(part), ElementsAre(Pair("Bonjour.", "Hello."), Pair("Merci !", "Thanks!")));
  EXPECT_NE(hash_corpus({part}), hash_corpus({tsv(part.pairs)}));
  part.columns = {2, 5};
  EXPECT_THAT(error_message(part), HasSubstr("a.tsv:2: expected at least 5 columns, found 4"));
}

TEST(Corpus, DamagedGzipIsAnError) {
  const TemporaryFolder folder;
  std::string content;
  for (int i = 0; i < 20000; ++i) content += std::to_string(i * 7919) + "\t" + std::to_string(i) + "\n";
  write_gzip(folder / "a.gz", content);
  const std::string whole = read_file(folder / "a.gz");
  EXPECT_THAT(error_message(tsv(folder.write("cut.gz", whole.substr(0, whole.size() / 2)))),
              HasSubstr("reading failed after line"));
}

TEST(Corpus, RejectsALineOver16Megabytes) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_message(tsv(folder.write("a.tsv", std::string(17 << 20, 'x')))),
              HasSubstr("not a text file"));
}

TEST(Corpus, ReadsLinesLongerThanABlock) {
  const TemporaryFolder folder;
  const std::string lengthy(1 << 20, 'x');
  EXPECT_THAT(read_all(tsv(folder.write("a.tsv", lengthy + "\ty\na\tb\n"))),
              ElementsAre(Pair(lengthy, "y"), Pair("a", "b")));
}

TEST(Corpus, RejectsInvalidCombinationsOfKeys) {
  const TemporaryFolder folder;
  const auto file = folder.write("a", "x\ty\n");
  const auto check_error = [](const Corpus& corpus) {
    try {
      check_corpus(corpus, "data.train");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(check_error({tsv(file)}), "accepted");
  CorpusPart half;
  half.source = file;
  EXPECT_EQ(check_error({half}), "data.train: source and target must be set together; target is missing");
  CorpusPart both = tsv(file);
  both.text = file;
  EXPECT_THAT(check_error({both}), HasSubstr("found 2"));
  CorpusPart text;
  text.text = file;
  EXPECT_THAT(check_error({tsv(file), text}), HasSubstr("cannot be mixed"));
  CorpusPart columns = tsv(file);
  columns.columns = {1, 2, 3};
  EXPECT_THAT(check_error({columns}), HasSubstr("columns: expected the two columns"));
  text.columns = {1, 2};
  EXPECT_THAT(check_error({text}), HasSubstr("columns: expected the two columns"));
  EXPECT_EQ(check_error({tsv(folder / "none")}), "accepted");  // does not check that the file exists
  EXPECT_THROW(check_corpus_files({tsv(folder / "none")}, "data.train"), UserError);
  EXPECT_NO_THROW(check_corpus_files({tsv(file)}, "data.train"));
}

TEST(Corpus, AMissingFileOrAFolderIsNamed) {
  const TemporaryFolder folder;
  const auto check_error = [](const Corpus& corpus) {
    try {
      check_corpus_files(corpus, "data.valid");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const std::string name = (folder / "none").string();
  EXPECT_EQ(check_error({tsv(name)}), "data.valid: " + name + ": no such file");
  EXPECT_EQ(check_error({tsv(folder.path())}),
            "data.valid: " + folder.path().string() + ": is a folder; expected a file");
  CorpusPart part;
  part.source = folder.write("a.fr", "un\n");
  part.target = name;
  EXPECT_EQ(check_error({part}), "data.valid: " + name + ": no such file");
  part.source = "";
  EXPECT_THAT([&] { check_corpus({part}, "data.valid"); },
              testing::ThrowsMessage<UserError>(
                  "data.valid: source and target must be set together; source is missing"));
}

TEST(Corpus, AReaderCountsBytesLinesAndTheFirstPairsItIsAskedFor) {
  const TemporaryFolder folder;
  CorpusPart part;
  part.source = folder.write("a.fr", "un\n\ntrois\nquatre\n");
  part.target = folder.write("a.en", "one\ntwo\nthree\nfour\n");
  EXPECT_EQ(corpus_bytes({part, tsv(part.source)}), 17 + 19 + 17);
  EXPECT_THAT(part.files(), ElementsAre(part.source, part.target));
  {
    PairReader reader(part);
    SentencePair pair;
    EXPECT_EQ(pair.line, 0);
    std::vector<int64_t> lines;
    while (reader.next(pair)) lines.push_back(pair.line);
    EXPECT_THAT(lines, ElementsAre(1, 3, 4));
    EXPECT_EQ(reader.bytes_read(), 17 + 19);
    EXPECT_EQ(reader.skipped_empty(), 1);
  }
  part.first = 2;  // pairs that are used, not lines
  EXPECT_THAT(read_all(part), ElementsAre(Pair("un", "one"), Pair("trois", "three")));
  part.first = 1;
  EXPECT_THAT(read_all(part), ElementsAre(Pair("un", "one")));
  CorpusPart text;
  text.text = folder.write("a.txt", "one\n\ntwo\nthree\n");
  text.first = 2;
  int64_t skipped = 0;
  EXPECT_THAT(read_all(text, &skipped), ElementsAre(Pair("", "one"), Pair("", "two")));
  EXPECT_EQ(skipped, 1);
  EXPECT_EQ(PairReader(tsv(part.source)).skipped_empty(), 0);
}

TEST(Corpus, ErrorsOfTheSecondFileNameIt) {
  const TemporaryFolder folder;
  CorpusPart part;
  part.source = folder.write("a.fr", "un\ndeux\n");
  part.target = folder.write("a.en", "one\ntw\xe9\n");
  EXPECT_THAT(error_message(part), HasSubstr("a.en:2: byte 3 is not valid UTF-8 (0xe9)"));
  part.target = folder.write("b.en", "one\ntwo\nthree\n");
  EXPECT_THAT(error_message(part), HasSubstr("a.fr ends after line 2, but"));
}

TEST(Corpus, TrimRemovesSpacesTabsAndCarriageReturns) {
  EXPECT_EQ(trim(" \t a b\r "), "a b");
  EXPECT_EQ(trim("a"), "a");
  EXPECT_EQ(trim("\t\r "), "");
  EXPECT_EQ(trim(""), "");
}

TEST(Corpus, ColumnsOfALine) {
  const CorpusPart two;
  const TsvColumns columns = tsv_columns(two, "a\tb");
  EXPECT_TRUE(columns.is_valid);
  EXPECT_EQ(columns.source, "a");
  EXPECT_EQ(columns.target, "b");
  EXPECT_EQ(tsv_columns(two, "").found, 1);
  EXPECT_EQ(tsv_columns(two, "a\t").found, 2);
  EXPECT_FALSE(tsv_columns(two, "a\tb\t").is_valid);
  CorpusPart chosen;
  chosen.columns = {3, 1};
  EXPECT_FALSE(tsv_columns(chosen, "a\tb").is_valid);
  EXPECT_TRUE(tsv_columns(chosen, "a\tb\tc").is_valid);
  EXPECT_EQ(tsv_columns(chosen, "a\tb\tc").source, "c");
  EXPECT_EQ(tsv_columns(chosen, "a\tb\tc").target, "a");
  EXPECT_FALSE(TsvColumns{}.is_valid);
  EXPECT_EQ(TsvColumns{}.found, 0);
}

TEST(Corpus, HashDependsOnKindOrderAndLimits) {
  const TemporaryFolder folder;
  const auto a = folder.write("a", "x\ty\n"), b = folder.write("b", "z\tw\n");
  CorpusPart pairs = tsv(a), text, files, limited = tsv(a), columns = tsv(a);
  text.text = a;
  files.source = files.target = a;
  limited.first = 1;
  columns.columns = {1, 2};
  std::set<uint64_t> hashes;
  for (const Corpus& corpus : std::vector<Corpus>{
           {pairs}, {text}, {files}, {limited}, {columns}, {}, {pairs, tsv(b)}, {tsv(b), pairs}})
    hashes.insert(hash_corpus(corpus));
  EXPECT_EQ(hashes.size(), 8U);
  EXPECT_TRUE(is_text({text}));
  EXPECT_FALSE(is_text({pairs}) || is_text({}));
}

TEST(Corpus, HashDependsOnContentNotOnFileNames) {
  const TemporaryFolder folder;
  const auto hash = [&](const std::string& name, const std::string& content) {
    return hash_corpus({tsv(folder.write(name, content))});
  };
  EXPECT_EQ(hash("a", "x\ty\n"), hash("b", "x\ty\n"));
  EXPECT_NE(hash("a", "x\ty\n"), hash("a", "x\tz\n"));
}

TEST(Corpus, AChangeIsOneOfTheContents) {
  const TemporaryFolder folder;
  CorpusPart part;
  part.pairs = folder.write("a.tsv", "un\tone\n");
  const Corpus corpus = {part};
  const CorpusState state = corpus_state(corpus);
  EXPECT_EQ(state.hash, hash_corpus(corpus));
  EXPECT_FALSE(has_changed(corpus, state));
  folder.write("b.tsv", "un\tone\n");
  std::filesystem::rename(folder / "b.tsv", folder / "a.tsv");  // another file with the same content
  EXPECT_NE(corpus_state(corpus).stamp, state.stamp);
  EXPECT_FALSE(has_changed(corpus, state));
  folder.write("b.tsv", "un\tONE\n");
  std::filesystem::rename(folder / "b.tsv", folder / "a.tsv");
  EXPECT_TRUE(has_changed(corpus, state));
}

}  // namespace calque
