// The report of a search: one self-contained page with its trials and their curves.
#pragma once

#include <string>

#include "calque/train/tune_folder.h"

namespace calque {

std::string tune_page(const TuneFolder& folder);

}  // namespace calque
