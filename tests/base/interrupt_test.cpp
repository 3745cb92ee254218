#include "calque/base/interrupt.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace calque {

TEST(Interrupt, OneInsideAnotherSharesWhatWasRequested) {
  const Interrupt outer;
  EXPECT_FALSE(outer.requested());
  raise(SIGTERM);
  {
    const Interrupt inner;
    EXPECT_TRUE(inner.requested());
  }
  EXPECT_TRUE(outer.requested());
}

TEST(Interrupt, ANewOneStartsWithoutARequest) {
  {
    const Interrupt first;
    raise(SIGTERM);
  }
  EXPECT_FALSE(Interrupt().requested());
}

}  // namespace calque
