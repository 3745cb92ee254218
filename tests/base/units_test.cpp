#include "calque/base/units.h"

#include <gtest/gtest.h>

namespace calque {

TEST(Units, ParsesCountsWithSuffixesAndSeparators) {
  EXPECT_EQ(parse_count("4096"), 4096);
  EXPECT_EQ(parse_count("4k"), 4000);
  EXPECT_EQ(parse_count("1.5M"), 1'500'000);
  EXPECT_EQ(parse_count("2G"), 2'000'000'000);
  EXPECT_EQ(parse_count("1e6"), 1'000'000);
  EXPECT_EQ(parse_count("10_000"), 10'000);
  EXPECT_EQ(parse_count("-3"), -3);
  EXPECT_EQ(parse_count("9007199254740993"), 9007199254740993);  // not exactly representable as a double
}

TEST(Units, RejectsCountsThatAreNotIntegers) {
  for (const char* text : {"", "k", "1.5", "4kk", "four", "1e", "0x10", "nan", "inf", "1e30", " 4"}) {
    EXPECT_FALSE(parse_count(text)) << text;
  }
}

TEST(Units, ParsesDurationsWithAndWithoutUnit) {
  EXPECT_EQ(parse_seconds("20", 60), 1200);
  EXPECT_EQ(parse_seconds("90s", 60), 90);
  EXPECT_EQ(parse_seconds("1.5h", 60), 5400);
  EXPECT_EQ(parse_seconds("1d", 60), 86400);
  EXPECT_FALSE(parse_seconds("m", 60));
  EXPECT_FALSE(parse_seconds("", 60));
  EXPECT_FALSE(parse_seconds("soon", 60));
}

TEST(Units, FormatsNumbersForPeople) {
  EXPECT_EQ(format_count(173320), "173,320");
  EXPECT_EQ(format_count(1, "pair"), "1 pair");
  EXPECT_EQ(format_count(2000, "pair"), "2,000 pairs");
  EXPECT_EQ(format_count(-1000), "-1,000");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1'234'000'000), "1.2 GB");
  EXPECT_EQ(format_seconds(0.012), "12 ms");
  EXPECT_EQ(format_seconds(200), "3 min 20 s");
  EXPECT_EQ(format_seconds(7380), "2 h 03 min");
  EXPECT_EQ(format_shortest(0.001), "0.001");
}

TEST(Units, ACommaMustGroupThousands) {
  EXPECT_EQ(parse_count("1,500"), 1500);
  EXPECT_EQ(parse_count("12,345,678"), 12345678);
  EXPECT_EQ(parse_count("1,500k"), 1500000);
  for (const char* text : {"1,5M", "1,5", "1,50", "1,5000", ",500", "1,,500", "1500,"})
    EXPECT_EQ(parse_count(text), std::nullopt) << text;
}

}  // namespace calque
