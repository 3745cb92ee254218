#include "calque/runs/candidate_choice.h"

#include <gtest/gtest.h>

namespace calque {

TEST(CandidateChoice, TakesTheOneNearestToTheReference) {
  const std::string source = "Le chat noir dort.", reference = "The black cat is sleeping.";
  const std::vector<std::string> candidates = {"A cat sleeps, and it is black.", "The black cat is asleep.",
                                               "The cat sleeps."};
  EXPECT_EQ(CandidateChoice(ChooseBy::bleu).choose(source, reference, candidates).text, candidates[1]);
  EXPECT_EQ(CandidateChoice(ChooseBy::chrf).choose(source, reference, candidates).text, candidates[1]);
  EXPECT_EQ(CandidateChoice(ChooseBy::first).choose(source, reference, candidates).text, candidates[0]);
}

TEST(CandidateChoice, AFaultOfTheNearestLeavesTheOthers) {
  const CandidateChoice choice(ChooseBy::bleu);
  const Choice found = choice.choose("Oui.", "Yes.", {"", "oui.", "Yes indeed."});
  EXPECT_EQ(found.fault, Fault::none);
  EXPECT_EQ(found.text, "Yes indeed.");
  EXPECT_EQ(choice.choose("Oui.", "Yes.", {"Oui.", ""}).fault, Fault::copied);
  EXPECT_EQ(choice.choose("Oui.", "Yes.", {}).fault, Fault::empty);
}

TEST(CandidateChoice, FindsWhatAPersonWouldReject) {
  EXPECT_EQ(find_fault("Paris.", "Paris.", "Paris."), Fault::none);  // the reference copies it too
  EXPECT_EQ(find_fault("À Paris.", "In Paris.", "à paris."), Fault::copied);
  EXPECT_EQ(find_fault("Non.", "No, no, no!", "no no no"), Fault::none);
  EXPECT_EQ(
      find_fault("Il dort bien.", "He sleeps well now, dear.", "he sleeps he sleeps he sleeps he sleeps"),
      Fault::looped);
  EXPECT_EQ(find_fault("Ha !", "ha ha ha ha ha", "ha ha ha ha"), Fault::none);
  EXPECT_EQ(find_fault("Oui.", "Yes.", "Yes, I do."), Fault::none);
  EXPECT_EQ(find_fault("Oui.", "Yes.", "Yes, that is what I would like to say."), Fault::wrong_length);
  EXPECT_EQ(find_fault("…", "Yes, that is what I would like to say.", "Yes."), Fault::wrong_length);
}

}  // namespace calque
