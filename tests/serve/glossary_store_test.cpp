#include "calque/serve/glossary_store.h"

#include <gtest/gtest.h>

#include "calque/serve/api.h"

namespace calque {

TEST(GlossaryStore, KeepsTheNewestHundred) {
  GlossaryStore store;
  const std::string first = store.add("first", {{"chat", "cat"}}).id;
  EXPECT_EQ(store.find(first)->terms->front().target, "cat");
  for (int i = 0; i < 99; ++i) store.add("more", {{"a", "b"}});
  EXPECT_TRUE(store.find(first));
  const std::string last = store.add("last", {{"a", "b"}}).id;
  EXPECT_FALSE(store.find(first));
  EXPECT_EQ(store.list().size(), 100U);
  EXPECT_EQ(store.list().back().id, last);
  EXPECT_TRUE(store.remove(last));
  EXPECT_FALSE(store.remove(last));
  EXPECT_EQ(store.list().size(), 99U);
}

TEST(GlossaryStore, TheOldestMakeRoomForMoreTerms) {
  GlossaryStore store;
  const std::string term(max_term_bytes, 'a');
  const std::vector<Glossary::Term> terms(max_stored_term_bytes / max_term_bytes / 4,
                                          {term, term});  // half of it
  const std::string first = store.add("first", terms).id, second = store.add("second", terms).id;
  EXPECT_TRUE(store.find(first));
  store.add("third", {{"a", "b"}});
  EXPECT_FALSE(store.find(first));
  EXPECT_TRUE(store.find(second));
  EXPECT_EQ(store.find(second)->glossary, store.list().front().glossary);  // one for all requests
}

TEST(GlossaryStore, TermsAreReadFromTsvAndCsv) {
  const auto tsv = parse_terms("chat\tcat\r\n\nchaise\twooden \"stool\"\n", '\t');
  ASSERT_EQ(tsv.size(), 2U);
  EXPECT_EQ(tsv[0].target, "cat");
  EXPECT_EQ(tsv[1].target, "wooden \"stool\"");
  const auto csv = parse_terms("\"a, b\",\"say \"\"c\"\"\"\nd,e,FR,EN", ',');
  ASSERT_EQ(csv.size(), 2U);
  EXPECT_EQ(csv[0].source, "a, b");
  EXPECT_EQ(csv[0].target, "say \"c\"");
  EXPECT_EQ(csv[1].target, "e");
}

TEST(GlossaryStore, BadTermsAreRefused) {
  EXPECT_THROW(parse_terms("chat cat", '\t'), ApiError);
  EXPECT_THROW(parse_terms("\n\n", '\t'), ApiError);
  std::string many;
  for (int i = 0; i < 10'001; ++i) many += "a\tb\n";
  EXPECT_THROW(parse_terms(many, '\t'), ApiError);
}

}  // namespace calque
