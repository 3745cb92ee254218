// What training reads, made from a configuration once and kept in a cache folder by content: the tokenizer
// (given, or trained from data.train) and the token stores. The same data and settings find the same files
// again.
#pragma once

#include <filesystem>

#include "calque/data/data_config.h"
#include "calque/data/token_store.h"
#include "calque/data/tokenizer.h"

namespace calque {

// tokenizer.path, or a tokenizer trained from data.train, or that one found in the cache.
Tokenizer prepare_tokenizer(const TokenizerConfig& config, const Corpus& train,
                            const std::filesystem::path& cache);

TokenStore prepare_tokens(const Corpus& corpus, const Tokenizer& tokenizer, const TokenStoreOptions& options,
                          const std::filesystem::path& cache);

}  // namespace calque
