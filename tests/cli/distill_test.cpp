// calque distill as a person uses it: killed, resumed, and a student trained on the result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/run_calque.h"

namespace calque {
namespace {

using testing::HasSubstr;

}  // namespace

TEST(DistillCommand, KilledAndResumedItWritesTheSameAndAStudentLearnsIt) {
  const TemporaryFolder folder;
  const std::string root = CALQUE_SOURCE_FOLDER;
  folder.write("a.yaml", "data: {train: {pairs: " + root +
                             "/data/everyday/natural-train.tsv, first: 60}, max_tokens: 100}\n"
                             "tokenizer: {path: " +
                             root +
                             "/tests/golden/tokenizer/bpe.model}\n"
                             "model: {size: tiny, context_length: 128}\n"
                             "train: {batch_tokens: 1024, steps: 12, warmup_steps: 2, learning_rate: 1e-2, "
                             "threads: 1}\n");
  ASSERT_EQ(run_calque(folder, "train a.yaml").code, 0);
  const std::string distill = "distill a a.yaml --choose-by first --beam 2 --batch 4 --max-length-extra 4 ";
  const Outcome straight = run_calque(folder, distill + "run=straight");
  ASSERT_THAT(straight.code, testing::AnyOf(0, 2)) << straight.err;  // 2: nothing that it says can be used
  const std::string command = "cd '" + folder.path().string() + "' && { '" CALQUE_BINARY "' " + distill +
                              " >stdout 2>stderr & pid=$!; for i in $(seq 3000); do"
                              " [ -s runs/a-distill/translations.tsv ] && break; sleep 0.01; done;"
                              " kill -KILL $pid; wait $pid; }";
  std::system(command.c_str());
  EXPECT_EQ(run_calque(folder, distill + "--resume").code, straight.code);
  EXPECT_EQ(read_file(folder / "runs/a-distill/translations.tsv"),
            read_file(folder / "runs/straight-distill/translations.tsv"));
  folder.write("a.en", "One line for sixty pairs.\n");
  EXPECT_EQ(run_calque(folder, "distill a.en a.yaml run=file").code, 2);
  std::string lines;
  for (int i = 0; i < 60; ++i) lines += "A sentence of the teacher, number " + std::to_string(i) + ".\n";
  folder.write("a.en", lines);
  const Outcome file = run_calque(folder, "distill a.en a.yaml run=file --fresh");
  ASSERT_EQ(file.code, 0) << file.err;
  EXPECT_THAT(file.err, HasSubstr("`calque train runs/file-distill/student.yaml` trains it"));
  EXPECT_EQ(run_calque(folder, "train runs/file-distill/student.yaml").code, 0);
}

}  // namespace calque
