#include "calque/decode/decode_config.h"

#include <gtest/gtest.h>

#include "calque/base/config.h"
#include "calque/base/error.h"
#include "field_bounds.h"

namespace calque {

TEST(DecodeConfig, NumbersHaveTheirLimits) {
  DecodeConfig config;
  expect_bounds(fields(config), {{"beam", "1", "0"},
                                 {"beam", "1000", "1001"},
                                 {"nbest", "1", "0"},
                                 {"nbest", "1000", "1001"},
                                 {"length_penalty", "0", "-0.1"},
                                 {"length_penalty", "10", "10.1"},
                                 {"max_length_ratio", "0.01", "0.009"},
                                 {"max_length_ratio", "1000", "1000.1"},
                                 {"max_length_extra", "0", "-1"},
                                 {"max_length_extra", "1000000", "1000001"},
                                 {"no_repeat_ngram", "0", "-1"},
                                 {"no_repeat_ngram", "1000", "1001"},
                                 {"temperature", "1e-6", "9e-7"},
                                 {"temperature", "1e6", "1.1e6"},
                                 {"top_k", "0", "-1"},
                                 {"top_k", "1000000", "1000001"},
                                 {"top_p", "0", "-0.1"},
                                 {"top_p", "1", "1.1"},
                                 {"seed", "0", "-1"},
                                 {"split_tokens", "1", "0"},
                                 {"batch", "1", "0"},
                                 {"batch", "100000", "100001"}});
}

TEST(DecodeConfig, DefaultsAreTheDocumentedOnes) {
  DecodeConfig config;
  EXPECT_EQ(show_config(fields(config), "", false),
            "beam: 4\nnbest: 1\nlength_penalty: 0.6\nearly_stopping: true\nmax_length_ratio: 2\n"
            "max_length_extra: 20\nno_repeat_ngram: 0\nsample: false\ntemperature: 1\ntop_k: 0\ntop_p: 1\n"
            "seed: 1\nsplit_tokens: 48\nsplit_sentences: false\nbatch: 64\nshots: \n");
}

TEST(DecodeConfig, AListIsNoLongerThanTheBeamUnlessItIsSampled) {
  DecodeConfig config;
  config.nbest = 4;
  EXPECT_NO_THROW(check_decode(config));
  config.nbest = 5;
  EXPECT_THROW(check_decode(config), UserError);
  config.sample = true;
  EXPECT_NO_THROW(check_decode(config));
}

}  // namespace calque
