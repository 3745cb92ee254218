#include "calque/data/sentence_reader.h"

#include <utility>

#include "calque/base/unicode.h"

namespace calque {

SentenceReader::SentenceReader(Corpus corpus, int64_t stride) : corpus_(std::move(corpus)), stride_(stride) {}

bool SentenceReader::next(std::string& sentence) {
  if (!target_.empty()) {
    sentence = std::exchange(target_, {});
    return true;
  }
  SentencePair pair;
  while (part_ < corpus_.size()) {
    if (!reader_) reader_ = std::make_unique<PairReader>(corpus_[part_]);
    if (!reader_->next(pair)) {
      reader_.reset();
      ++part_;
      continue;
    }
    if (count_++ % stride_ != 0) continue;
    sentence = clean_text(pair.target);
    if (!pair.source.empty()) {
      target_ = std::move(sentence);
      sentence = clean_text(pair.source);
    }
    return true;
  }
  return false;
}

}  // namespace calque
